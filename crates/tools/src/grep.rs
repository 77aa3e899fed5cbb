//! Finds lines in files.

use crate::{
    glob::{DEPTH, LOOKED_AT, below, matcher},
    text_file::failed,
};
use pudu_base::{DirEntry, SandboxError, ToolCx, ToolError, ToolOutput, TypedTool};
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

/// So many lines are returned, if nothing else is asked for, and at most.
const RESULTS: (usize, usize) = (100, 500);
/// Maximum size of a file that is searched, in bytes.
const MAX_FILE_BYTES: u64 = 1_000_000;
/// Maximum length of a line that is searched, in bytes; longer ones are data, no text.
const MAX_LINE_BYTES: usize = 2_000;
/// As much of a line is shown, in characters.
const SHOWN: usize = 200;
/// A pattern is no longer, in bytes: reading it takes many times as much.
const MAX_PATTERN_BYTES: usize = 4_000;
/// A compiled pattern takes no more, in bytes.
const PATTERN: usize = 1 << 20;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The text to look for: a regular expression.
    pattern: String,
    /// The folder to look in, or a file; an absolute path.
    path: String,
    /// Only files with names like this, for example `*.py`.
    glob: Option<String>,
    /// Whether the pattern is plain text.
    #[serde(default)]
    literal: bool,
    /// Whether upper and lower case differ.
    #[serde(default)]
    case_sensitive: bool,
    /// At most so many lines are returned; 100 if left out, 500 at most.
    max_results: Option<usize>,
}

impl TypedTool for Grep {
    type Args = Args;
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str =
        "Finds lines that match a regular expression, in all text files below a folder.";
    const IDEMPOTENT: bool = true;
    const HAS_PURPOSE: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let pattern = pattern(&args)?;
        let glob = args.glob.as_deref().map(matcher).transpose()?;
        let most = args.max_results.unwrap_or(RESULTS.0).clamp(1, RESULTS.1);
        let (mut lines, mut skipped) = (Vec::new(), 0_usize);
        for file in files(&args.path, cx).await? {
            if file.folder || glob.as_ref().is_some_and(|glob| !glob.is_match(below(&file.path, &args.path)))
            {
                continue;
            }
            match text(&file, cx).await? {
                Some(text) => search(&file.path, &text, &pattern, most + 1, &mut lines),
                None => skipped += 1,
            }
            if lines.len() > most {
                break;
            }
        }
        Ok(report(&args, lines, most, skipped).into())
    }
}

fn pattern(args: &Args) -> Result<Regex, ToolError> {
    if args.pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes: shorten it")));
    }
    let text = if args.literal { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let built = RegexBuilder::new(&text).case_insensitive(!args.case_sensitive).size_limit(PATTERN).build();
    built.map_err(|error| ToolError(format!("the pattern cannot be read: {error}")))
}

/// Returns what is below a folder, or the file itself.
async fn files(path: &str, cx: &ToolCx) -> Result<Vec<DirEntry>, ToolError> {
    match cx.sandbox.list(path, DEPTH, LOOKED_AT).await {
        Ok(entries) => Ok(entries),
        Err(error) => match cx.sandbox.read(path, MAX_FILE_BYTES).await {
            Ok(bytes) => {
                Ok(vec![DirEntry { path: path.to_owned(), folder: false, size: bytes.len() as u64 }])
            }
            Err(SandboxError::TooLarge { .. }) => Err(ToolError(format!(
                "{path} is larger than {MAX_FILE_BYTES} bytes: use bash, or read_file by lines"
            ))),
            Err(_) => Err(failed(error)),
        },
    }
}

/// Reads a file; `None` if it is too large or no text. One that is gone meanwhile has no lines.
async fn text(file: &DirEntry, cx: &ToolCx) -> Result<Option<String>, ToolError> {
    if file.size > MAX_FILE_BYTES {
        return Ok(None);
    }
    match cx.sandbox.read(&file.path, MAX_FILE_BYTES).await {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))),
        Err(SandboxError::Missing { .. }) => Ok(Some(String::new())),
        Err(_) => Ok(None),
    }
}

fn search(path: &str, text: &str, pattern: &Regex, most: usize, lines: &mut Vec<String>) {
    for (at, line) in text.lines().enumerate() {
        if lines.len() == most {
            return;
        }
        if line.len() <= MAX_LINE_BYTES && pattern.is_match(line) {
            let shown: String = line.chars().take(SHOWN).collect();
            lines.push(format!("{path}:{}: {shown}", at + 1));
        }
    }
}

fn report(args: &Args, mut lines: Vec<String>, most: usize, skipped: usize) -> String {
    if lines.len() > most {
        lines.truncate(most);
        lines.push("[… more lines match: narrow the pattern …]".to_owned());
    }
    if lines.is_empty() {
        lines.push(format!("No line matches {} below {}.", args.pattern, args.path));
    }
    if skipped > 0 {
        lines.push(format!("[{skipped} files are no text, or larger than {MAX_FILE_BYTES} bytes]"));
    }
    lines.join("\n")
}
