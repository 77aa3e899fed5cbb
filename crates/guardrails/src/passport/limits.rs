//! Limits of a capability: allowed commands and blocked patterns.

use crate::{GuardrailDecision, decision::BLOCKED_PATTERN};
use regex::RegexBuilder;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Capability to run commands.
pub(super) const COMMANDS: &str = "system.command.execute";
/// Code for a command that is not allowed.
const COMMAND_NOT_ALLOWED: &str = "oap.command_not_allowed";
/// Code for a limit that cannot be checked.
const UNKNOWN_LIMIT: &str = "oap.unknown_limit";
/// Maximum size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Limits of one capability.
#[derive(Debug, Deserialize)]
pub(super) struct CapabilityLimits {
    /// Allowed programs. Each entry is a name or the beginning of a command.
    #[serde(default)]
    allowed_commands: Option<Vec<String>>,
    /// Texts and regular expressions that a call must not contain.
    #[serde(default)]
    blocked_patterns: Vec<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl CapabilityLimits {
    /// Returns a limit that pudu cannot check, if any.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.others.keys().next().map(String::as_str)
    }

    /// Decides on a call of a tool with this capability.
    pub(super) fn decide(&self, tool: &str, input: &Value) -> GuardrailDecision {
        if let Some(unknown) = self.unknown() {
            let why = format!("the agent's passport has the limit {unknown}, which pudu cannot check");
            return GuardrailDecision::denied(UNKNOWN_LIMIT, why);
        }
        let script =
            (tool == "bash").then(|| input.get("command").and_then(Value::as_str).unwrap_or_default());
        let texts = texts(input, script);
        let is_blocked = |pattern| texts.as_ref().is_none_or(|texts| blocks(pattern, texts));
        if self.blocked_patterns.iter().any(|pattern| is_blocked(pattern)) {
            let why = "the call contains, or may hide, something that the agent's passport blocks";
            return GuardrailDecision::denied(BLOCKED_PATTERN, why);
        }
        match (&self.allowed_commands, script) {
            (Some(allowed), Some(script)) => match pudu_shell::passport::check(allowed, script) {
                Err(why) => GuardrailDecision::denied(COMMAND_NOT_ALLOWED, why),
                Ok(()) => GuardrailDecision::allowed(),
            },
            // Only commands can have this limit.
            (Some(_), None) => {
                GuardrailDecision::denied(UNKNOWN_LIMIT, format!("only {COMMANDS} can have allowed_commands"))
            }
            (None, _) => GuardrailDecision::allowed(),
        }
    }
}

/// Returns the texts of a call in three forms: unchanged, with single spaces, and as commands without quotes, which
/// could hide something. Returns `None` if the commands cannot be determined.
fn texts(input: &Value, script: Option<&str>) -> Option<Vec<String>> {
    let mut all = Vec::new();
    collect(input, &mut all);
    let plain: Vec<String> = all.iter().map(|text| single_blanks(text)).collect();
    all.extend(plain);
    if let Some(script) = script {
        let commands = pudu_shell::commands(script).ok()?;
        all.extend(commands.iter().map(|words| words.join(" ")));
    }
    Some(all)
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(map) => map.values().for_each(|value| collect(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a pattern matches one of the texts, as plain text or as a regular expression.
fn blocks(pattern: &str, texts: &[String]) -> bool {
    let plain = single_blanks(pattern).to_lowercase();
    let expression =
        RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN_BYTES).build().ok();
    let is_match = |text: &String| {
        text.to_lowercase().contains(&plain) || expression.as_ref().is_some_and(|found| found.is_match(text))
    };
    texts.iter().any(is_match)
}
