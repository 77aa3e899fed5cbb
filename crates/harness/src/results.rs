//! Results that are too long for a model: stored in full among the thread's outputs, and shown by both ends with
//! instructions to read the rest. If they cannot be stored, they are cut.
//!
//! Deliberately absent: the largest result that a tool accepts. Each tool sets that limit itself.

mod images;

use crate::Toolbox;
use pudu_base::{Cut, ResultFiles, ToolOutput, ends};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Text before the path in the note of a result that was stored in full, and of one that was stored in part.
const KEPT_IN: [&str; 2] = [" lines, is in ", " lines, are in "];
/// Prefix of paths in sandboxes.
const PATH_ROOT: &str = "/mnt/";

/// Handling of long results. All lengths are in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultRules {
    /// Whether long results are handled; limits of the tools themselves apply either way.
    pub enabled: bool,
    /// Longer results are stored in a file; 0 stores none.
    pub longest: usize,
    /// Numbers of characters shown from the beginning and the end of a stored result.
    pub shown: (usize, usize),
    /// Longer results that could not be stored are cut; 0 cuts none.
    pub uncut: usize,
    /// Numbers of characters kept from the beginning and the end of a cut result.
    pub left: (usize, usize),
    /// Tools whose results are not stored, because they read the stored ones. Their long results are cut to the
    /// beginning.
    pub exempt: BTreeSet<String>,
    /// Value of `longest` for individual tools.
    pub tools: BTreeMap<String, usize>,
}

impl Default for ResultRules {
    fn default() -> Self {
        Self {
            enabled: true,
            longest: 12_000,
            shown: (2_000, 1_000),
            uncut: 30_000,
            left: (8_000, 3_000),
            exempt: ["read_file", "read_file_tool"].map(str::to_owned).into(),
            tools: BTreeMap::new(),
        }
    }
}

/// The rules, and the storage of results.
#[derive(Clone)]
pub struct Results {
    /// The rules.
    pub rules: Arc<ResultRules>,
    /// Storage of results.
    pub files: Arc<dyn ResultFiles>,
}

impl Results {
    /// Makes a tool's output fit a model with a given window. A result is stored only if the available tools can read
    /// it.
    pub(crate) async fn fit(
        &self,
        tool: &str,
        output: ToolOutput,
        tools: &Toolbox,
        window: u64,
    ) -> ToolOutput {
        let rules = &*self.rules;
        let (bound, exempt) = (rules.enabled, rules.exempt.contains(tool));
        let limit = share(window);
        if bound
            && !exempt
            && let Some(preview) = self.keep(tool, &output, tools, limit).await
        {
            return ToolOutput { text: preview, cut: None, ..output };
        }
        let uncut = if rules.uncut == 0 { limit } else { rules.uncut.min(limit) };
        let strict =
            |cut: &Cut| !bound || (exempt && cut.most() <= uncut) || (!exempt && self.is_strict(*cut));
        let text = match output.cut.filter(strict) {
            Some(cut) => cut.apply(output.text),
            None if bound && exempt => read_on(output.text, uncut),
            None if bound => self.cut(output.text),
            None => output.text,
        };
        ToolOutput { text, cut: None, ..output }
    }

    fn is_strict(&self, cut: Cut) -> bool {
        self.rules.uncut == 0 || cut.most() <= self.rules.uncut
    }

    /// Stores a masked result and returns its path; `None` if it cannot be stored or read again.
    pub(crate) async fn keep_masked(&self, tool: &str, text: &str, tools: &Toolbox) -> Option<String> {
        reading_hint(tools)?;
        match self.files.keep(tool, text).await {
            Ok(path) => Some(path),
            Err(error) => {
                tracing::warn!(tool, %error, "failed to store masked result");
                None
            }
        }
    }

    /// Stores a text that is too long, and returns the text shown in its place.
    async fn keep(&self, tool: &str, output: &ToolOutput, tools: &Toolbox, limit: usize) -> Option<String> {
        let (rules, text) = (&*self.rules, output.text.as_str());
        let longest = match rules.tools.get(tool).copied().unwrap_or(rules.longest) {
            0 => 0,
            longest => longest.min(limit),
        };
        if longest == 0 || ends(text, longest, 0).is_none() {
            return None;
        }
        let (first, middle, last) = ends(text, rules.shown.0, rules.shown.1)?;
        let way = reading_hint(tools)?;
        let path = match self.files.keep(tool, text).await {
            Ok(path) => path,
            Err(error) => {
                tracing::warn!(tool, %error, "failed to store long result");
                return None;
            }
        };
        let (omitted, lines) = (middle.chars().count(), text.lines().count());
        let what = match output.partial {
            false => format!("The whole result, {lines}{}", KEPT_IN[0]),
            true => format!(
                "The result was too long to be stored in full: its beginning and its end, {lines}{}",
                KEPT_IN[1]
            ),
        };
        let note = format!("[… {omitted} characters left out. {what}{path}: {way} …]");
        Some(format!("{first}\n{note}\n{last}"))
    }

    /// Cuts a text that is too long.
    fn cut(&self, text: String) -> String {
        let (limit, (head, tail)) = (self.rules.uncut, self.rules.left);
        if limit == 0 || ends(&text, limit, 0).is_none() {
            return text;
        }
        let Some((first, middle, last)) = ends(&text, head, tail) else { return text };
        let omitted = middle.chars().count();
        format!(
            "{first}\n[… {omitted} characters left out; they could not be stored. Request less at a time …]\n{last}"
        )
    }
}

/// Returns the maximum number of characters in a result for a window in tokens: a quarter, at three characters
/// per token.
fn share(window: u64) -> usize {
    usize::try_from(window / 4 * 3).unwrap_or(usize::MAX)
}

/// Cuts a file's text that is too long and explains how to read the rest.
fn read_on(text: String, max_chars: usize) -> String {
    let Some((first, rest, _)) = ends(&text, max_chars, 0) else { return text };
    let (omitted, lines) = (rest.chars().count(), first.lines().count());
    format!(
        "{first}\n[… {omitted} more characters after line {lines} of this result: continue with start_line or offset …]"
    )
}

/// Returns the path of the file that a result was stored in, parsed from the note in its place.
pub(crate) fn kept_in(text: &str) -> Option<&str> {
    let note = text.lines().rfind(|line| line.starts_with("[… ") && line.ends_with(" …]"))?;
    let (_, rest) = KEPT_IN.iter().find_map(|mark| note.split_once(mark))?;
    let (path, _) = rest.split_once(": ")?;
    (path.starts_with(PATH_ROOT) && !path.contains(char::is_whitespace)).then_some(path)
}

/// Returns how to read the rest with the available tools; `None` if none can.
fn reading_hint(tools: &Toolbox) -> Option<&'static str> {
    let has = |name| tools.get(name).is_some();
    Some(match (has("read_file"), has("grep"), has("bash")) {
        (true, true, _) => {
            "read_file reads parts of it by start_line and end_line, or by offset; grep finds lines in it"
        }
        (true, false, _) => "read_file reads parts of it by start_line and end_line, or by offset",
        (false, true, _) => "grep finds lines in it",
        (false, false, true) => "bash reads parts of it",
        (false, false, false) => return None,
    })
}

#[cfg(test)]
mod tests;
