//! A finding of the scan.

/// A line is shown with so many characters at most.
const SHOWN: usize = 120;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// A person should look at it.
    Warn,
    /// It is not installed.
    Block,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: FindingSeverity,
    /// The file, in the skill's folder.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// The rule that found it.
    pub rule: &'static str,
    /// Description, with the words that were found.
    pub what: String,
}

/// Returns what was found as a finding shows it.
pub(super) fn shown(found: &str) -> String {
    let plain: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = plain.chars().take(SHOWN).collect();
    let more = if cut.len() < plain.len() { "…" } else { "" };
    format!("`{}{more}`", cut.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"))
}
