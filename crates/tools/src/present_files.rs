//! Sends files to the users in the chat.

use crate::{names::existing, text_file::failed};
use pudu_base::{MAX_ARTIFACTS, ToolCx, ToolError, ToolOutput, TypedTool, Update};
use schemars::JsonSchema;
use serde::Deserialize;

/// Folder with the files that may be sent.
const OUTPUTS: &str = "/mnt/user-data/outputs/";

pub(crate) struct PresentFiles;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The files' absolute paths, all below `/mnt/user-data/outputs`.
    filepaths: Vec<String>,
}

impl TypedTool for PresentFiles {
    type Args = Args;
    const NAME: &'static str = "present_files";
    const DESCRIPTION: &'static str =
        "Sends files from /mnt/user-data/outputs to the users in the chat, together with your next answer.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.filepaths.is_empty() {
            return Err(ToolError("give at least one file".to_owned()));
        }
        if args.filepaths.len() > MAX_ARTIFACTS {
            let text = format!(
                "{} files are too many: an answer can have at most {MAX_ARTIFACTS}; put them into an archive",
                args.filepaths.len()
            );
            return Err(ToolError(text));
        }
        for path in &mut args.filepaths {
            *path = existing(&*cx.sandbox, std::mem::take(path)).await;
            if !path.starts_with(OUTPUTS) {
                return Err(ToolError(format!("{path} is not below {OUTPUTS}; put a copy there first")));
            }
            // Only checks that the file exists.
            cx.sandbox.measure(path).await.map_err(failed)?;
        }
        let text = format!("{} file(s) will be sent with your answer.", args.filepaths.len());
        let updates = vec![Update::Artifacts { run: cx.run.clone(), paths: args.filepaths }];
        Ok(ToolOutput { text, updates, ..ToolOutput::default() })
    }
}
