//! Replaces text in a file.

use crate::{
    edit,
    mark::{has_read, mark},
    text_file::{check_size, failed, read_text},
};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct StrReplace;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path.
    path: String,
    /// The text to replace, exactly as it stands in the file. It has to occur once.
    old_str: String,
    /// The text that comes in its place.
    new_str: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl TypedTool for StrReplace {
    type Args = Args;
    const NAME: &'static str = "str_replace";
    const DESCRIPTION: &'static str = "Replaces text in a file. The text has to occur exactly once, or all occurrences are replaced on request.";
    const HAS_PURPOSE: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        if args.old_str.is_empty() {
            return Err(ToolError("old_str is empty: name the text to replace".to_owned()));
        }
        let _alone = edit::alone(cx, &args.path).await;
        let text = read_text(&*cx.sandbox, &args.path).await?;
        has_read(cx, &args.path)?;
        let count = text.matches(&args.old_str).count();
        match count {
            0 => return Err(ToolError(format!("old_str does not occur in {}", args.path))),
            1 => {}
            _ if args.replace_all => {}
            _ => {
                let said =
                    format!("old_str occurs {count} times in {}: name more of its surroundings", args.path);
                return Err(ToolError(said));
            }
        }
        // Computed first: a short text in a thousand places may become more than the machine has.
        let kept = (text.len() - count * args.old_str.len()) as u64;
        check_size(
            &args.path,
            kept.saturating_add((count as u64).saturating_mul(args.new_str.len() as u64)),
        )?;
        let text = text.replace(&args.old_str, &args.new_str);
        cx.sandbox.write(&args.path, text.as_bytes(), false).await.map_err(failed)?;
        let updates = vec![mark(&args.path, text.as_bytes())];
        Ok(ToolOutput { text: "OK".to_owned(), updates, ..ToolOutput::default() })
    }
}
