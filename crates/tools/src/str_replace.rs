//! Replaces text in a file.

use crate::{
    edit,
    line_ends::{Occurrences, unify},
    mark::{knows, mark},
    names::existing,
    text_file::{check_size, failed, read_text, unencodable},
};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) struct StrReplace;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The file's absolute path.
    path: String,
    /// The text to replace, exactly as in the file. It must occur once unless `replace_all` is set. LF matches CRLF.
    old_str: String,
    /// The replacement.
    new_str: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl TypedTool for StrReplace {
    type Args = Args;
    const NAME: &'static str = "str_replace";
    const DESCRIPTION: &'static str = "Replaces text in a file. The text must occur exactly once, unless \
                                       replace_all is set.";
    const HAS_PURPOSE: bool = true;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.path = existing(&*cx.sandbox, args.path).await;
        if args.old_str.is_empty() {
            return Err(ToolError("old_str is empty; give the text to replace".to_owned()));
        }
        if args.old_str != args.new_str && unify(&args.old_str) == unify(&args.new_str) {
            return Err(ToolError(
                "old_str and new_str differ only in their line endings, which this tool preserves; use bash \
                 to convert them"
                    .to_owned(),
            ));
        }
        let mut file = edit::alone(cx, &args.path).await;
        let before = read_text(&*cx.sandbox, &args.path).await?;
        knows(cx, &file, &args.path, before.bytes())?;
        let found = Occurrences::all(&before.text, &args.old_str);
        check_occurrences(&args, found.count())?;
        // Checked first, because replacing a short text in thousands of places may exhaust the machine's memory.
        check_size(&args.path, found.size_with(&args.new_str))?;
        let after = before.with_text(&found.replace(&args.new_str));
        let after = after.map_err(|error| unencodable(&args.path, error))?;
        check_size(&args.path, after.len() as u64)?;
        cx.sandbox.write(&args.path, &after, false).await.map_err(failed)?;
        file.changed(before.bytes(), &after);
        let updates = vec![mark(&args.path, &after)];
        Ok(ToolOutput { text: "OK".to_owned(), updates, ..ToolOutput::default() })
    }
}

fn check_occurrences(args: &Args, count: usize) -> Result<(), ToolError> {
    match count {
        0 => Err(ToolError(format!("old_str does not occur in {}", args.path))),
        1 => Ok(()),
        _ if args.replace_all => Ok(()),
        _ => Err(ToolError(format!(
            "old_str occurs {count} times in {}; include more of the surrounding text",
            args.path
        ))),
    }
}
