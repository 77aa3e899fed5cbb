//! Lists a folder.

use crate::{names::existing, text_file::failed};
use pudu_base::{Cut, ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of entries listed.
const MAX_ENTRIES: usize = 2_000;
/// Number of levels shown.
const DEPTH: usize = 2;

pub(crate) struct Ls(pub(crate) usize);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The folder's absolute path, for example `/mnt/user-data/workspace`.
    path: String,
}

impl TypedTool for Ls {
    type Args = Args;
    const NAME: &'static str = "ls";
    const DESCRIPTION: &'static str = "Lists a folder, two levels deep. Folders end with a slash.";
    const IDEMPOTENT: bool = true;
    const HAS_PURPOSE: bool = true;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.path = existing(&*cx.sandbox, args.path).await;
        let entries = cx.sandbox.list(&args.path, DEPTH, MAX_ENTRIES).await.map_err(failed)?;
        if entries.is_empty() {
            return Ok("(empty)".to_owned().into());
        }
        let more = if entries.len() >= MAX_ENTRIES { "\n[… more entries …]" } else { "" };
        let lines: Vec<String> = entries
            .into_iter()
            .map(|entry| if entry.folder { entry.path + "/" } else { entry.path })
            .collect();
        let text = lines.join("\n") + more;
        Ok(ToolOutput { text, cut: Some(Cut::End(self.0)), ..ToolOutput::default() })
    }
}
