//! Finds files by their names.

use crate::{
    names::{composed, existing},
    text_file::failed,
};
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of entries that are visited.
pub(crate) const MAX_VISITED_ENTRIES: usize = 50_000;
/// Maximum depth of visited folders.
pub(crate) const MAX_SEARCH_DEPTH: usize = 32;
/// Default and maximum number of results.
const RESULTS: (usize, usize) = (200, 1_000);
/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1_000;
/// Maximum number of brace lists in a pattern, because their nesting determines the parser's stack depth.
const MAX_PATTERN_LISTS: usize = 32;

pub(crate) struct GlobTool;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The pattern, for example `**/*.csv`; relative to the path. `[id]` and `{id}` also match folders with such names.
    pattern: String,
    /// Absolute path of the folder to search.
    path: String,
    /// Whether to return folders as well.
    #[serde(default)]
    include_dirs: bool,
    /// Maximum number of results: 200 by default, 1000 at most.
    max_results: Option<usize>,
}

impl TypedTool for GlobTool {
    type Args = Args;
    const NAME: &'static str = "glob";
    const DESCRIPTION: &'static str = "Finds files below a folder by a pattern for their names.";
    const IDEMPOTENT: bool = true;
    const HAS_PURPOSE: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let folder = existing(&*cx.sandbox, args.path.clone()).await;
        let pattern = matcher(&args.pattern)?;
        let limit = args.max_results.unwrap_or(RESULTS.0).clamp(1, RESULTS.1);
        let entries =
            cx.sandbox.list(&folder, MAX_SEARCH_DEPTH, MAX_VISITED_ENTRIES).await.map_err(failed)?;
        let all = entries.len() < MAX_VISITED_ENTRIES;
        let found = entries.into_iter().filter(|entry| args.include_dirs || !entry.folder);
        let mut found = found.filter(|entry| pattern.is_match(&entry.path, &folder));
        let listed = found.by_ref().take(limit).enumerate();
        let lines: Vec<String> = listed.map(|(at, entry)| format!("{}. {}", at + 1, entry.path)).collect();
        let more = match (found.next().is_some(), all) {
            (true, _) => "\n[… more files match; narrow the pattern …]",
            (false, false) => {
                "\n[… the folder has too many entries, so not all were searched; choose a \
                               folder below it …]"
            }
            (false, true) => "",
        };
        let none = format!("No files match {} below {}.", args.pattern, args.path);
        Ok((if lines.is_empty() { none } else { lines.join("\n") } + more).into())
    }
}

/// Parses a pattern. A pattern without a slash matches names at any depth. Brackets and braces also match literally, as
/// in `app/[id]/page.tsx`, a typical file of a web application.
pub(crate) fn matcher(pattern: &str) -> Result<NamePattern, ToolError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(ToolError(format!("the pattern is longer than {MAX_PATTERN_BYTES} bytes; shorten it")));
    }
    if pattern.matches('{').count() > MAX_PATTERN_LISTS {
        let text = format!("the pattern has more than {MAX_PATTERN_LISTS} opening braces; use fewer");
        return Err(ToolError(text));
    }
    let pattern = composed(pattern);
    let mut set = GlobSetBuilder::new();
    set.add(glob(&pattern).map_err(|error| unreadable(&error))?);
    for literal in ["[]", "[]{}"] {
        if pattern.contains(|c| literal.contains(c)) {
            let escape = |c| if literal.contains(c) { format!("\\{c}") } else { String::from(c) };
            set.add(
                glob(&pattern.chars().map(escape).collect::<String>()).map_err(|error| unreadable(&error))?,
            );
        }
    }
    // A set, because a single glob panics if its regular expression becomes too large.
    Ok(NamePattern(set.build().map_err(|error| unreadable(&error))?))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    GlobBuilder::new(&anywhere).literal_separator(true).build()
}

fn unreadable(error: &globset::Error) -> ToolError {
    ToolError(format!("invalid pattern: {error}"))
}

/// Pattern for file names.
pub(crate) struct NamePattern(GlobSet);

impl NamePattern {
    /// Returns whether a path below a folder matches. Accents match in composed and decomposed form.
    pub(crate) fn is_match(&self, path: &str, folder: &str) -> bool {
        self.0.is_match(composed(below(path, folder)).as_ref())
    }
}

/// Returns a path relative to a folder.
fn below<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder.trim_end_matches('/')).unwrap_or(path).trim_start_matches('/')
}
