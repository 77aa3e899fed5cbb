//! Arguments and results shared by all searches.

use pudu_base::ToolError;
use serde_json::json;

/// Maximum length of a query, in characters. Most providers reject longer ones.
const MAX_QUERY_CHARS: usize = 400;

/// Checks a query.
pub(super) fn query(query: &str) -> Result<&str, ToolError> {
    let query = query.trim();
    if query.is_empty() {
        return Err(ToolError("query is empty; give search terms".to_owned()));
    }
    if query.chars().count() > MAX_QUERY_CHARS {
        return Err(ToolError(format!(
            "query is longer than {MAX_QUERY_CHARS} characters; use a few specific words"
        )));
    }
    Ok(query)
}

/// Returns the number of results to request. The operator's number is both the default and the maximum.
pub(super) fn most(wanted: Option<usize>, usual: usize) -> usize {
    wanted.unwrap_or(usual).clamp(1, usual.max(1))
}

pub(super) fn nothing(said: &str, query: &str) -> String {
    json!({"error": format!("{said}; try other words"), "query": query}).to_string()
}

pub(super) fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
