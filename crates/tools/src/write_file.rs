//! Writes a text file.

use crate::{
    edit,
    mark::{knows, mark},
    text_file::{MAX_FILE_BYTES, check_size, failed},
};
use pudu_base::{SandboxError, ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path. Missing folders are made.
    path: String,
    /// The text to write.
    content: String,
    /// Whether to add to the end of the file instead of replacing it.
    #[serde(default)]
    append: bool,
}

impl TypedTool for WriteFile {
    type Args = Args;
    const NAME: &'static str = "write_file";
    const DESCRIPTION: &'static str = "Writes a text file, or adds to its end. A file that is there already has to be read before it is replaced.";
    const HAS_PURPOSE: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        check_size(&args.path, args.content.len() as u64)?;
        let _alone = edit::alone(cx, &args.path).await;
        if !args.append {
            check(&args.path, cx).await?;
        }
        cx.sandbox.write(&args.path, args.content.as_bytes(), args.append).await.map_err(failed)?;
        // What stands before an addition may be unknown.
        let updates = if args.append { Vec::new() } else { vec![mark(&args.path, args.content.as_bytes())] };
        Ok(ToolOutput { text: "OK".to_owned(), updates, ..ToolOutput::default() })
    }
}

/// Fails if the agent would replace what it does not know.
async fn check(path: &str, cx: &ToolCx) -> Result<(), ToolError> {
    match cx.sandbox.read(path, MAX_FILE_BYTES).await {
        Ok(bytes) if bytes.is_empty() => Ok(()),
        Ok(bytes) => knows(cx, path, &bytes),
        Err(SandboxError::Missing { .. }) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
