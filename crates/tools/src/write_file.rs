//! Writes a text file.

use crate::failed;
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path. Missing folders are made.
    path: String,
    /// What to write.
    content: String,
    /// Whether to add to the end of the file instead of replacing it.
    #[serde(default)]
    append: bool,
}

impl TypedTool for WriteFile {
    type Args = Args;
    const NAME: &'static str = "write_file";
    const ABOUT: &'static str = "Writes a text file, replacing what it held, or adds to its end.";

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        cx.sandbox.write(&args.path, args.content.as_bytes(), args.append).await.map_err(failed)?;
        Ok("OK".to_owned().into())
    }
}
