//! Finds lines in files.

use crate::{
    glob::{MAX_SEARCH_DEPTH, MAX_VISITED_ENTRIES, matcher},
    names::{composed, existing},
    text_file::failed,
};
use pudu_base::{DirEntry, ResultOrigin, SandboxError, ToolCx, ToolError, ToolOutput, TypedTool};
use pudu_documents::text::TextFile;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Default and maximum number of returned lines.
const RESULTS: (usize, usize) = (100, 500);
/// Maximum size of a file that is searched, in bytes.
const MAX_FILE_BYTES: u64 = 1_000_000;
/// Maximum length of a line that is searched, in bytes. Longer lines are data rather than text.
const MAX_LINE_BYTES: usize = 2_000;
/// Maximum number of skipped files listed per reason.
const SKIPPED_NAMES: usize = 5;
/// Maximum displayed length of a line, in characters.
const MAX_LINE_CHARS: usize = 200;
/// Maximum length of a pattern, in bytes. Parsing takes many times this amount of memory.
const MAX_PATTERN_BYTES: usize = 4_000;
/// Maximum size of a compiled pattern, in bytes.
const MAX_COMPILED_PATTERN: usize = 1 << 20;

pub(crate) struct Grep;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The regular expression to search for.
    pattern: String,
    /// Absolute path of the folder or file to search.
    path: String,
    /// Pattern for the names of the files to search, for example `*.py`.
    glob: Option<String>,
    /// Whether the pattern is literal text.
    #[serde(default)]
    literal: bool,
    /// Whether the search is case-sensitive.
    #[serde(default)]
    case_sensitive: bool,
    /// Maximum number of lines to return: 100 by default, 500 at most.
    max_results: Option<usize>,
}

impl TypedTool for Grep {
    type Args = Args;
    const NAME: &'static str = "grep";
    const DESCRIPTION: &'static str =
        "Finds lines that match a regular expression in all text files below a folder, in any encoding.";
    const IDEMPOTENT: bool = true;
    const HAS_PURPOSE: bool = true;
    const ORIGIN: ResultOrigin = ResultOrigin::Files;

    async fn run(&self, mut args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        args.path = existing(&*cx.sandbox, args.path).await;
        let pattern = pattern(&args)?;
        let glob = args.glob.as_deref().map(matcher).transpose()?;
        let limit = args.max_results.unwrap_or(RESULTS.0).clamp(1, RESULTS.1);
        let (mut lines, mut skipped) = (Vec::new(), Unsearched::default());
        let files = files(&args.path, cx).await?;
        skipped.folder_is_cut = files.len() >= MAX_VISITED_ENTRIES;
        for file in files {
            if file.folder || glob.as_ref().is_some_and(|glob| !glob.is_match(&file.path, &args.path)) {
                continue;
            }
            if let Some(text) = text(&file, cx, &mut skipped).await {
                search(&file.path, &text, &pattern, limit + 1, &mut lines, &mut skipped);
            }
            if lines.len() > limit {
                break;
            }
        }
        Ok(report(&args, lines, limit, &skipped).into())
    }
}

/// Files and lines that were not searched.
#[derive(Default)]
struct Unsearched {
    /// Skipped files by reason.
    files: BTreeMap<String, Vec<String>>,
    /// Number of lines longer than [`MAX_LINE_BYTES`].
    long_lines: usize,
    /// Whether the folder has more entries than were visited.
    folder_is_cut: bool,
}

impl Unsearched {
    fn file(&mut self, path: &str, why: impl Into<String>) {
        self.files.entry(why.into()).or_default().push(path.to_owned());
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (why, files) in &self.files {
            let names: Vec<&str> = files.iter().take(SKIPPED_NAMES).map(String::as_str).collect();
            let more = files.len().saturating_sub(SKIPPED_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!("[not searched, {why}: {}{more}]", names.join(", ")));
        }
        if self.long_lines > 0 {
            let count = self.long_lines;
            notes.push(format!("[not searched: {count} lines longer than {MAX_LINE_BYTES} bytes]"));
        }
        if self.folder_is_cut {
            notes.push(format!(
                "[only the first {MAX_VISITED_ENTRIES} entries were searched; choose a folder below it]"
            ));
        }
        notes
    }
}

fn pattern(args: &Args) -> Result<Regex, ToolError> {
    if args.pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes; shorten it")));
    }
    let pattern = composed(&args.pattern);
    let text = if args.literal { regex::escape(&pattern) } else { pattern.into_owned() };
    let built = RegexBuilder::new(&text)
        .case_insensitive(!args.case_sensitive)
        .size_limit(MAX_COMPILED_PATTERN)
        .build();
    built.map_err(|error| ToolError(format!("invalid pattern: {error}")))
}

/// Returns the files below a folder, or the file itself.
async fn files(path: &str, cx: &ToolCx) -> Result<Vec<DirEntry>, ToolError> {
    match cx.sandbox.list(path, MAX_SEARCH_DEPTH, MAX_VISITED_ENTRIES).await {
        Ok(entries) => Ok(entries),
        Err(error) => match cx.sandbox.read(path, MAX_FILE_BYTES).await {
            Ok(bytes) => {
                Ok(vec![DirEntry { path: path.to_owned(), folder: false, size: bytes.len() as u64 }])
            }
            Err(SandboxError::TooLarge { .. }) => Err(ToolError(format!(
                "{path} is larger than {MAX_FILE_BYTES} bytes; use bash, or read_file with lines"
            ))),
            Err(_) => Err(failed(error)),
        },
    }
}

/// Reads a file in any encoding. Returns `None` without a note if the file has been removed since it was listed.
async fn text(file: &DirEntry, cx: &ToolCx, skipped: &mut Unsearched) -> Option<String> {
    if file.size > MAX_FILE_BYTES {
        skipped.file(&file.path, format!("larger than {MAX_FILE_BYTES} bytes"));
        return None;
    }
    match cx.sandbox.read(&file.path, MAX_FILE_BYTES).await {
        Ok(bytes) => match TextFile::read(bytes) {
            Ok(file) => return Some(file.text),
            Err(why) => skipped.file(&file.path, format!("not text: {why}")),
        },
        Err(SandboxError::Missing { .. }) => {}
        Err(_) => skipped.file(&file.path, "unreadable"),
    }
    None
}

fn search(
    path: &str,
    text: &str,
    pattern: &Regex,
    most: usize,
    lines: &mut Vec<String>,
    skipped: &mut Unsearched,
) {
    for (at, line) in text.lines().enumerate() {
        if lines.len() == most {
            return;
        }
        if line.len() > MAX_LINE_BYTES {
            skipped.long_lines += 1;
        } else if pattern.is_match(&composed(line)) {
            let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
            lines.push(format!("{path}:{}: {shown}", at + 1));
        }
    }
}

fn report(args: &Args, mut lines: Vec<String>, most: usize, skipped: &Unsearched) -> String {
    if lines.len() > most {
        lines.truncate(most);
        lines.push("[… more lines match; narrow the pattern …]".to_owned());
    }
    if lines.is_empty() {
        lines.push(format!("No line matches {} below {}.", args.pattern, args.path));
    }
    lines.extend(skipped.notes());
    lines.join("\n")
}
