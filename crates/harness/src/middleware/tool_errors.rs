//! Makes a tool's failure readable for the model: marks it as an error, and shortens it.

use super::Middleware;
use crate::RunState;
use pudu_base::{ToolCall, ToolError, ToolOutput};

/// Maximum length of a tool's error that is passed on, in characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// Marks and shortens the errors of tools.
pub struct ToolErrors;

impl Middleware for ToolErrors {
    fn name(&self) -> &'static str {
        "tool_errors"
    }

    fn after_tool(&mut self, _turn: &RunState, _call: &ToolCall, result: &mut Result<ToolOutput, ToolError>) {
        if let Err(ToolError(text)) = result {
            let said: String = text.chars().take(MAX_ERROR_CHARS).collect();
            *text = format!("Error: {said}");
        }
    }
}
