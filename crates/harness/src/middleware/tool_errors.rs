//! Describes a tool's failure for the model: the tool, its error, and that the work continues.

use super::Middleware;
use crate::RunState;
use pudu_base::{ToolCall, ToolError, ToolOutput};

/// Maximum length of a tool's error that is passed on, in characters.
const WORDS: usize = 2_000;

/// Makes a tool's failure readable for the model.
pub struct ToolErrors;

impl Middleware for ToolErrors {
    fn name(&self) -> &'static str {
        "tool_errors"
    }

    fn after_tool(&mut self, _turn: &RunState, _call: &ToolCall, result: &mut Result<ToolOutput, ToolError>) {
        if let Err(ToolError(text)) = result {
            let said: String = text.chars().take(WORDS).collect();
            *text = format!("Error: {said}");
        }
    }
}
