//! Runs in the API's format.

use super::{clock, failure::failure};
use pudu_base::Outcome;
use pudu_store::{CancelAction, RunRow, RunTokens};
use serde_json::{Value, json};

/// LangGraph's statuses of runs.
pub const STATUSES: [&str; 6] = ["pending", "running", "success", "error", "timeout", "interrupted"];

/// Returns a run's status in LangGraph's terms.
#[must_use]
pub fn status(row: &RunRow) -> &'static str {
    if row.ended.is_none() {
        return if row.begun.is_none() { "pending" } else { "running" };
    }
    match row.outcome() {
        Some(Outcome::Success) => "success",
        Some(Outcome::Stopped) if is_rolled_back(row) => "error",
        Some(Outcome::Stopped) => "interrupted",
        Some(Outcome::Timeout) => "timeout",
        Some(Outcome::Limit | Outcome::Error(_)) | None => "error",
    }
}

/// Returns whether a run was rolled back. A rollback that comes too late does not change the run's outcome.
fn is_rolled_back(row: &RunRow) -> bool {
    row.cancelled == Some(CancelAction::Rollback) && row.outcome() == Some(Outcome::Stopped)
}

/// Returns a run's input as its client sent it; null for a chat's run.
#[must_use]
pub fn input(row: &RunRow) -> Value {
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    request["kwargs"]["input"].clone()
}

/// All keys of a run.
pub const KEYS: [&str; 22] = [
    "run_id",
    "thread_id",
    "assistant_id",
    "status",
    "metadata",
    "kwargs",
    "multitask_strategy",
    "created_at",
    "updated_at",
    "model_name",
    "total_input_tokens",
    "total_output_tokens",
    "total_tokens",
    "llm_call_count",
    "lead_agent_tokens",
    "subagent_tokens",
    "middleware_tokens",
    "message_count",
    "stop_reason",
    "error",
    "first_human_message",
    "last_ai_message",
];

/// Renders a run with the tokens that it used.
#[must_use]
pub fn run(row: &RunRow, tokens: &[RunTokens]) -> Value {
    let own: Vec<&RunTokens> = tokens.iter().filter(|tokens| tokens.run == row.id).collect();
    let sum = |count: fn(&RunTokens) -> i64| own.iter().map(|tokens| count(tokens)).sum::<i64>();
    let of = |caller: fn(&str) -> bool| {
        let of = own.iter().filter(|tokens| caller(&tokens.caller));
        of.map(|tokens| tokens.input + tokens.output).sum::<i64>()
    };
    let request: Value = serde_json::from_str(&row.request).unwrap_or_default();
    let metadata: Value = serde_json::from_str(&row.metadata).unwrap_or_else(|_| json!({}));
    let (input, output) = (sum(|tokens| tokens.input), sum(|tokens| tokens.output));
    let updated = row.ended.or(row.begun).unwrap_or(row.created);
    let error = row.outcome().and_then(|outcome| failure(&outcome)).map(|(_, text)| text);
    json!({
        "run_id": row.id,
        "thread_id": row.thread,
        "assistant_id": assistant(&row.assistant),
        "status": status(row),
        "metadata": metadata,
        "kwargs": request.get("kwargs").cloned().unwrap_or_else(|| json!({})),
        "multitask_strategy": if row.multitask.is_empty() { "reject" } else { &row.multitask },
        "created_at": clock::iso(row.created),
        "updated_at": clock::iso(updated),
        "model_name": Some(&row.model).filter(|model| !model.is_empty()),
        "total_input_tokens": input,
        "total_output_tokens": output,
        "total_tokens": input + output,
        "llm_call_count": sum(|tokens| tokens.calls),
        "lead_agent_tokens": of(|caller| caller_group(caller) == "lead_agent"),
        "subagent_tokens": of(|caller| caller_group(caller) == "subagent"),
        "middleware_tokens": of(|caller| caller_group(caller) == "middleware"),
        "message_count": row.messages,
        "stop_reason": Some(&row.stop_reason).filter(|reason| !reason.is_empty()),
        "error": if is_rolled_back(row) { Some("Rolled back by user".to_owned()) } else { error },
        "first_human_message": Some(&row.first_words).filter(|words| !words.is_empty()),
        "last_ai_message": Some(&row.last_words).filter(|words| !words.is_empty()),
    })
}

/// Returns the name of an assistant; the lead agent's if none was named.
#[must_use]
pub fn assistant(name: &str) -> &str {
    if name.is_empty() { "lead_agent" } else { name }
}

/// Returns the group that DeerFlow assigns a model caller to.
#[must_use]
pub fn caller_group(caller: &str) -> &'static str {
    match caller {
        "lead" | "lead_agent" => "lead_agent",
        caller if caller.starts_with("subagent") => "subagent",
        _ => "middleware",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_store::RunOrigin;

    #[test]
    fn late_rollback_does_not_change_the_outcome() {
        let check = |outcome: Outcome, expect: (&str, Value)| {
            let row = RunRow {
                id: "r".into(),
                thread: "t".into(),
                user: "u".to_owned(),
                assistant: String::new(),
                model: String::new(),
                request: String::new(),
                metadata: String::new(),
                multitask: String::new(),
                created: 1,
                begun: Some(1),
                ended: Some(2),
                outcome: serde_json::to_string(&outcome).ok(),
                cancelled: Some(CancelAction::Rollback),
                suspended: false,
                origin: RunOrigin::Api,
                resumed: 0,
                goal_dropped: false,
                stop_reason: String::new(),
                first_words: String::new(),
                last_words: String::new(),
                messages: 0,
            };
            let told = run(&row, &[]);
            assert_eq!((status(&row), told["error"].clone()), expect);
            assert!(STATUSES.contains(&status(&row)));
            let known = |key: &String| KEYS.contains(&key.as_str());
            assert!(told.as_object().unwrap().keys().all(known), "{told}");
            assert_eq!(told.as_object().unwrap().len(), KEYS.len());
        };
        check(Outcome::Success, ("success", Value::Null));
        check(Outcome::Stopped, ("error", json!("Rolled back by user")));
    }
}
