//! Lists the files that users sent.

use crate::text_file::failed;
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool, foreign};
use schemars::JsonSchema;
use serde::Deserialize;

/// Folder with the users' files, as seen by the agent.
const UPLOADS: &str = "/mnt/user-data/uploads";
/// Maximum number of uploads listed.
const MAX_UPLOADS: usize = 500;

pub(crate) struct ListUploadedFiles;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Lists only files whose name contains this text, in upper or lower case. Default: all files.
    #[serde(default)]
    name_contains: String,
}

impl TypedTool for ListUploadedFiles {
    type Args = Args;
    const NAME: &'static str = "list_uploaded_files";
    const DESCRIPTION: &'static str = "Lists all files that users sent in this conversation, including old \
                                       ones, with path and size. Next to a document is its text as a \
                                       Markdown file (.md), which read_file can read.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let wanted = args.name_contains.to_lowercase();
        let mut files = cx.sandbox.list(UPLOADS, 1, MAX_UPLOADS + 1).await.map_err(failed)?;
        let more = files.len() > MAX_UPLOADS;
        files.truncate(MAX_UPLOADS);
        files.retain(|file| !file.folder && name(&file.path).to_lowercase().contains(&wanted));
        if files.is_empty() {
            let text = if wanted.is_empty() { "No files were sent." } else { "No file name matches." };
            return Ok(text.to_owned().into());
        }
        let lines = files
            .iter()
            .map(|file| format!("{} ({} bytes)", foreign::line(&file.path, usize::MAX), file.size));
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(if more { format!("{text}\n[… more files …]") } else { text }.into())
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
