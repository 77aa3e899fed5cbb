//! Converts LangChain messages to pudu messages.
//!
//! Notes from DeerFlow to its model (date, memory, reminders) are skipped, because pudu writes its own. Signed
//! reasoning is skipped as well, because it is optional and only the original model's provider accepts it.

use crate::value::CLASS;
use pudu_base::{
    Assistant, CallId, FailureClass, Finish, Human, Message, MessageId, Outcome, RunFailure, SharedFile,
    StopReason, TaskReport, TaskStatus, ToolCall, ToolResult, Usage,
};
use serde_json::{Map, Value, json};

/// Numbers of skipped parts of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkippedParts {
    /// Number of notes from DeerFlow to its model.
    pub(crate) notes: usize,
    /// Number of images inside messages.
    pub(crate) images: usize,
    /// Number of messages of an unknown kind.
    pub(crate) unknown: usize,
}

/// Reads a message; `None` if it is skipped. `number` identifies a message without an ID.
pub(crate) fn read(value: &Value, number: usize, skipped: &mut SkippedParts) -> Option<Message> {
    let Value::Object(fields) = value else {
        skipped.unknown += 1;
        return None;
    };
    let id = id(fields).map_or_else(|| format!("import-{number}").into(), MessageId::from);
    match kind(fields) {
        "human" => human(fields, &id, skipped).map(Message::Human),
        "ai" => Some(Message::Assistant(assistant(fields, id, skipped))),
        "tool" => Some(Message::Tool(result(fields, id, skipped))),
        "system" => {
            skipped.notes += 1;
            None
        }
        _ => {
            skipped.unknown += 1;
            None
        }
    }
}

/// Returns a message's ID, if it has one.
pub(crate) fn id(fields: &Map<String, Value>) -> Option<&str> {
    text_of(fields, "id").filter(|id| !id.is_empty())
}

/// Returns whether a message removes another one.
pub(crate) fn is_removal(fields: &Map<String, Value>) -> bool {
    kind(fields) == "remove"
}

/// Returns the kind of a message, from its type or its class.
fn kind(fields: &Map<String, Value>) -> &'static str {
    let class = text_of(fields, "type").or_else(|| text_of(fields, CLASS)).unwrap_or_default().to_lowercase();
    let kinds = ["human", "ai", "tool", "system", "remove"];
    kinds.into_iter().find(|kind| class.starts_with(kind)).unwrap_or_default()
}

fn text_of<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    fields.get(key).and_then(Value::as_str)
}

fn extra<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    fields.get("additional_kwargs")?.get(key).filter(|value| !value.is_null())
}

fn human(fields: &Map<String, Value>, id: &MessageId, skipped: &mut SkippedParts) -> Option<Human> {
    let hidden = extra(fields, "hide_from_ui").and_then(Value::as_bool).unwrap_or(false);
    let answer = extra(fields, "human_input_response").and_then(|answer| answer.get("value")?.as_str());
    if hidden && answer.is_none() {
        skipped.notes += 1;
        return None;
    }
    let said = extra(fields, "original_user_content").and_then(Value::as_str);
    let images = skipped.images;
    let text = content(fields, skipped);
    let text = answer.or(said).map_or(text, str::to_owned);
    let mut human = Human::new(id.as_str(), text);
    if skipped.images > images {
        human.notes.push("An image of this message was not imported.".to_owned());
    }
    human.files = files(extra(fields, "files"));
    Some(human)
}

/// Returns the files that DeerFlow attached to a message.
fn files(value: Option<&Value>) -> Vec<SharedFile> {
    let file = |file: &Value| {
        let text = |key: &str| file.get(key).and_then(Value::as_str);
        let name = text("filename").or_else(|| text("name"))?.to_owned();
        let path = text("path").or_else(|| text("virtual_path")).map(str::to_owned);
        let path = path.unwrap_or_else(|| format!("/mnt/user-data/uploads/{name}"));
        let size = file.get("size").and_then(Value::as_u64).unwrap_or_default();
        Some(SharedFile { name, path, size, reading: None })
    };
    value.and_then(Value::as_array).map(|files| files.iter().filter_map(file).collect()).unwrap_or_default()
}

/// Returns the text of a message, or of its text parts.
fn content(fields: &Map<String, Value>, skipped: &mut SkippedParts) -> String {
    match fields.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let words: Vec<&str> = parts.iter().filter_map(|part| part_text(part, skipped)).collect();
            words.join("\n")
        }
        _ => String::new(),
    }
}

fn part_text<'v>(part: &'v Value, skipped: &mut SkippedParts) -> Option<&'v str> {
    if let Some(text) = part.as_str() {
        return Some(text);
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.contains("image") {
        skipped.images += 1;
    }
    matches!(kind, "text" | "output_text" | "input_text").then(|| part.get("text")?.as_str()).flatten()
}

fn assistant(fields: &Map<String, Value>, id: MessageId, skipped: &mut SkippedParts) -> Assistant {
    let meta = |key: &str| fields.get("response_metadata").and_then(|meta| meta.get(key)?.as_str());
    let reason = meta("finish_reason").or_else(|| meta("stop_reason")).unwrap_or_default().to_lowercase();
    let finish = match reason.as_str() {
        "length" | "max_tokens" => Finish::Length,
        "content_filter" | "refusal" | "safety" => Finish::Filtered,
        _ => Finish::Complete,
    };
    let model = meta("model_name").or_else(|| meta("model")).map(str::to_owned);
    let (text, reasoning) = (content(fields, skipped), reasoning(fields));
    let (calls, usage) = (calls(fields), usage(fields));
    if let Some(failure) = read_failure(fields, &text) {
        return Assistant::failed(id, Outcome::Error(failure));
    }
    Assistant { id, text, reasoning, provider_parts: None, calls, finish, model, usage, failure: None }
}

/// Returns the model error behind a message that DeerFlow wrote in place of an answer; `None` for other messages.
#[must_use]
pub fn read_failure(fields: &Map<String, Value>, text: &str) -> Option<RunFailure> {
    if extra(fields, "deerflow_error_fallback").and_then(Value::as_bool) != Some(true) {
        return None;
    }
    let class = match extra(fields, "error_reason").and_then(Value::as_str) {
        Some("quota") => FailureClass::Quota,
        Some("auth") => FailureClass::Auth,
        _ => FailureClass::Unavailable,
    };
    Some(RunFailure { class, hint: text.to_owned(), cause: None })
}

/// Returns the reasoning of an answer, from a separate field or from parts of its content.
fn reasoning(fields: &Map<String, Value>) -> Option<String> {
    if let Some(text) = extra(fields, "reasoning_content").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let thought = |part: &Value| {
        let text = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
        text("thinking").or_else(|| text("reasoning"))
    };
    let parts = fields.get("content").and_then(Value::as_array);
    let thoughts: Vec<String> = parts.into_iter().flatten().filter_map(thought).collect();
    (!thoughts.is_empty()).then(|| thoughts.join("\n"))
}

fn calls(fields: &Map<String, Value>) -> Vec<ToolCall> {
    let list = |key: &str| fields.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let call = |(number, call): (usize, Value)| {
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id =
            Some(text("id")).filter(|id| !id.is_empty()).unwrap_or_else(|| format!("import-call-{number}"));
        let args = call.get("args").cloned().unwrap_or_default();
        let (args, garbled) = match args {
            Value::Object(_) => (args, None),
            Value::Null => (json!({}), None),
            Value::String(text) => (json!({}), Some(text)),
            other => (json!({}), Some(other.to_string())),
        };
        ToolCall { id: CallId::from(id), name: text("name"), args, garbled }
    };
    list("tool_calls").into_iter().chain(list("invalid_tool_calls")).enumerate().map(call).collect()
}

fn usage(fields: &Map<String, Value>) -> Option<Usage> {
    let usage = fields.get("usage_metadata")?.as_object()?;
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
    let detail = |of: &str, key: &str| number(usage.get(of).and_then(|details| details.get(key)));
    Some(Usage {
        input: number(usage.get("input_tokens")),
        output: number(usage.get("output_tokens")),
        cached: detail("input_token_details", "cache_read"),
        cache_writes: detail("input_token_details", "cache_creation"),
        reasoning: detail("output_token_details", "reasoning"),
    })
}

fn result(fields: &Map<String, Value>, id: MessageId, skipped: &mut SkippedParts) -> ToolResult {
    ToolResult {
        call: CallId::from(text_of(fields, "tool_call_id").unwrap_or_default()),
        tool: text_of(fields, "name").unwrap_or_default().to_owned(),
        text: content(fields, skipped),
        error: text_of(fields, "status") == Some("error"),
        question: None,
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: read_report(fields).map(Box::new),
        id,
    }
}

/// Returns the outcome of a sub-agent, from the metadata of its call's result.
#[must_use]
pub fn read_report(fields: &Map<String, Value>) -> Option<TaskReport> {
    let text = |key: &str| extra(fields, key).and_then(Value::as_str);
    let brief = text("subagent_result_brief");
    // Older versions stored the turn limit as a status.
    let (status, capped) = match text("subagent_status")? {
        "completed" => (TaskStatus::Completed, None),
        "cancelled" => (TaskStatus::Cancelled, None),
        "timed_out" | "polling_timed_out" => (TaskStatus::TimedOut, None),
        "max_turns_reached" if brief.is_some() => (TaskStatus::Completed, Some(StopReason::TurnCapped)),
        "max_turns_reached" => (TaskStatus::Failed, Some(StopReason::TurnCapped)),
        _ => (TaskStatus::Failed, None),
    };
    let raw_reason = extra(fields, "subagent_stop_reason").cloned().unwrap_or_default();
    let tokens = |key: &str| extra(fields, "subagent_token_usage")?.get(key)?.as_u64();
    Some(TaskReport {
        status,
        stop_reason: capped.or_else(|| serde_json::from_value(raw_reason).ok()),
        model: text("subagent_model_name").unwrap_or_default().to_owned(),
        usage: Usage::plain(tokens("input_tokens").unwrap_or(0), tokens("output_tokens").unwrap_or(0)),
        text: brief.or_else(|| text("subagent_error")).unwrap_or_default().to_owned(),
        digest: text("subagent_result_sha256").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> Message {
        read(value, 1, &mut SkippedParts::default()).unwrap()
    }

    #[test]
    fn the_outcome_of_a_sub_agent_is_imported() {
        let check = |extra: Value, expect: (TaskStatus, Option<StopReason>, &str, u64)| {
            let Message::Tool(result) =
                message(&json!({"type": "tool", "id": "1", "additional_kwargs": extra}))
            else {
                panic!("{extra}");
            };
            let report = result.task.unwrap();
            let (status, reason) = (report.status, report.stop_reason);
            assert_eq!((status, reason, report.text.as_str(), report.usage.total()), expect, "{extra}");
        };
        let (capped, failed) = (Some(StopReason::TurnCapped), TaskStatus::Failed);
        let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
        check(
            json!({"subagent_status": "completed", "subagent_result_brief": "Seven.", "subagent_token_usage": usage}),
            (TaskStatus::Completed, None, "Seven.", 7),
        );
        check(json!({"subagent_status": "polling_timed_out"}), (TaskStatus::TimedOut, None, "", 0));
        check(
            json!({"subagent_status": "failed", "subagent_error": "no", "subagent_stop_reason": "turn_capped"}),
            (failed, capped, "no", 0),
        );
        check(json!({"subagent_status": "max_turns_reached"}), (failed, capped, "", 0));
        let plain = message(&json!({"type": "tool", "id": "1", "content": "x"}));
        assert!(matches!(plain, Message::Tool(ToolResult { task: None, .. })));
    }

    #[test]
    fn an_answer_for_a_failed_model_is_imported_as_a_failure() {
        let extra = json!({"deerflow_error_fallback": true, "error_reason": "quota"});
        let failed =
            message(&json!({"type": "ai", "id": "1", "content": "No credit.", "additional_kwargs": extra}));
        assert!(failed.is_failure() && failed.text().is_empty(), "{failed:?}");
        let Message::Assistant(Assistant { failure: Some(outcome), .. }) = failed else { unreachable!() };
        let failure = RunFailure { class: FailureClass::Quota, hint: "No credit.".to_owned(), cause: None };
        assert_eq!(*outcome, Outcome::Error(failure));
        assert!(!message(&json!({"type": "ai", "id": "1", "content": "Hi."})).is_failure());
    }
}
