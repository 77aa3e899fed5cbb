//! Usage as several wires tell it.

use pudu_base::Usage;

/// Returns a usage whose output has the thoughts in it. Some providers, such as xAI, count them beside the reply; the
/// total tells.
pub(crate) fn with_thoughts(told: Usage, total: Option<u64>) -> Usage {
    let beside = total == Some(told.total().saturating_add(told.reasoning));
    let thoughts = if beside { told.reasoning } else { 0 };
    Usage { output: told.output.saturating_add(thoughts), ..told }
}
