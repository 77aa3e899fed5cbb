//! Writes a text file.

use crate::{
    edit::{self, EditedFile},
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
    const DESCRIPTION: &'static str = "Writes a text file, or adds to its end. A file that is there already has to be read before it is replaced or added to.";
    const HAS_PURPOSE: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        check_size(&args.path, args.content.len() as u64)?;
        let mut file = edit::alone(cx, &args.path).await;
        let before = known(&file, &args, cx).await?;
        cx.sandbox.write(&args.path, args.content.as_bytes(), args.append).await.map_err(failed)?;
        let Some(before) = before else { return Ok("OK".to_owned().into()) };
        let kept = if args.append { before.as_slice() } else { &[] };
        let now = [kept, args.content.as_bytes()].concat();
        file.changed(&before, &now);
        let updates = vec![mark(&args.path, &now)];
        Ok(ToolOutput { text: "OK".to_owned(), updates, ..ToolOutput::default() })
    }
}

/// Fails if the agent would replace what it does not know, or add to it. Returns what stands there; `None` where that is
/// too large to be looked at, to which it may add all the same.
async fn known(file: &EditedFile, args: &Args, cx: &ToolCx) -> Result<Option<Vec<u8>>, ToolError> {
    match cx.sandbox.read(&args.path, MAX_FILE_BYTES).await {
        Ok(bytes) if bytes.is_empty() => Ok(Some(bytes)),
        Ok(bytes) => knows(cx, file, &args.path, &bytes).map(|()| Some(bytes)),
        Err(SandboxError::Missing { .. }) => Ok(Some(Vec::new())),
        Err(SandboxError::TooLarge { .. }) if args.append => Ok(None),
        Err(error) => Err(failed(error)),
    }
}
