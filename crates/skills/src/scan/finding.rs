//! A finding of the scan.

/// Maximum displayed length of a line, in characters.
const SHOWN: usize = 120;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// A user should review the finding.
    Warn,
    /// The finding prevents the installation.
    Block,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub severity: FindingSeverity,
    /// The file, in the skill's folder.
    pub file: String,
    /// The line, starting at 1; 0 for the file as a whole.
    pub line: usize,
    /// The rule that found it.
    pub rule: &'static str,
    /// Description, with the matching text.
    pub what: String,
}

/// Returns the matching text in displayable form.
pub(super) fn display_text(found: &str) -> String {
    let plain: String = found.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = plain.chars().take(SHOWN).collect();
    let more = if cut.len() < plain.len() { "…" } else { "" };
    format!("`{}{more}`", cut.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'"))
}
