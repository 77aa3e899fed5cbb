//! Lists the files that users sent.

use crate::text_file::failed;
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool, foreign};
use schemars::JsonSchema;
use serde::Deserialize;

/// Folder of users' files, as the agent sees it.
const UPLOADS: &str = "/mnt/user-data/uploads";
/// Maximum number of uploads listed.
const MAX_UPLOADS: usize = 500;

pub(crate) struct ListUploadedFiles;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// Only files whose name contains this, in any case. All if left out.
    #[serde(default)]
    name_contains: String,
}

impl TypedTool for ListUploadedFiles {
    type Args = Args;
    const NAME: &'static str = "list_uploaded_files";
    const DESCRIPTION: &'static str = "Lists all files that people sent in this conversation, also long ago, with path and \
         size. A document has its text as Markdown (.md) beside it, which read_file reads.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let wanted = args.name_contains.to_lowercase();
        let mut files = cx.sandbox.list(UPLOADS, 1, MAX_UPLOADS + 1).await.map_err(failed)?;
        let more = files.len() > MAX_UPLOADS;
        files.truncate(MAX_UPLOADS);
        files.retain(|file| !file.folder && name(&file.path).to_lowercase().contains(&wanted));
        if files.is_empty() {
            let text = if wanted.is_empty() { "Nobody sent a file." } else { "No file has such a name." };
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
