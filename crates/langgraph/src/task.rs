//! Events of sub-agents with DeerFlow's fixed names: `custom` frames while they run, and stored events.

use pudu_base::{
    CallId, StepCall, StepKind, TaskEnd, TaskReport, TaskStage, TaskStatus, TaskStep, ToolResult, Usage,
};
use pudu_harness::TASK;
use serde_json::{Map, Value, json};

/// Renders the progress of a sub-agent; `None` for a stage without an event for clients.
pub(super) fn custom(call: &CallId, stage: &TaskStage) -> Option<Value> {
    match stage {
        TaskStage::Started { about, model, agent } => Some(json!({
            "type": "task_started", "task_id": call, "description": about, "model_name": model,
            "subagent_type": agent,
        })),
        TaskStage::Running { .. } => None,
        TaskStage::Step(step) => Some(running(call, step)),
        TaskStage::Ended(end) => Some(ended(call, end)),
    }
}

/// Renders the calls of a sub-agent's reply.
pub(super) fn calls(task: &CallId, index: u32, calls: &[StepCall]) -> Vec<Value> {
    let render = |(at, call): (usize, &StepCall)| json!({ "name": call.name, "args": call.args, "id": format!("{task}-{index}-{at}"), "type": "tool_call" });
    calls.iter().enumerate().map(render).collect()
}

fn running(call: &CallId, step: &TaskStep) -> Value {
    let message = match &step.kind {
        StepKind::Reply { calls } => {
            json!({ "type": "ai", "content": step.text, "tool_calls": self::calls(call, step.index, calls) })
        }
        StepKind::Result { tool, error } => {
            let status = if *error { "error" } else { "success" };
            json!({ "type": "tool", "content": step.text, "name": tool, "status": status })
        }
    };
    json!({
        "type": "task_running", "task_id": call, "message": message, "message_index": step.index,
        "total_messages": step.index,
    })
}

fn ended(call: &CallId, end: &TaskEnd) -> Value {
    let (kind, key) = match end.status {
        TaskStatus::Completed => ("task_completed", "result"),
        TaskStatus::Failed => ("task_failed", "error"),
        TaskStatus::Cancelled => ("task_cancelled", "error"),
        TaskStatus::TimedOut => ("task_timed_out", "error"),
    };
    let model = Some(&end.model).filter(|model| !model.is_empty());
    json!({ "type": kind, "task_id": call, key: end.text, "usage": tokens(&end.usage), "model_name": model })
}

/// Adds the end of a sub-agent to the fields of the tool message that answers its call.
pub(super) fn add_report(fields: &mut Map<String, Value>, result: &ToolResult) {
    let error = || result.text.strip_prefix("Task failed. Error: ").unwrap_or(&result.text);
    let refused = || TaskReport::new(TaskStatus::Failed, error());
    let report = match &result.task {
        Some(report) => (**report).clone(),
        // The call was not made, so no sub-agent ran.
        None if result.tool == TASK && result.error => refused(),
        None => return,
    };
    let TaskReport { status, stop_reason, model, usage, text, digest } = report;
    let mut add = |key: &str, value: Value| drop(fields.insert(format!("subagent_{key}"), value));
    add("status", json!(status));
    if let Some(reason) = stop_reason {
        add("stop_reason", json!(reason));
    }
    if !text.trim().is_empty() {
        add(if status == TaskStatus::Completed { "result_brief" } else { "error" }, text.into());
    }
    if let Some(digest) = digest {
        add("result_sha256", digest.into());
    }
    if !model.is_empty() {
        add("model_name", model.into());
    }
    if usage != Usage::default() {
        add("token_usage", tokens(&usage));
    }
}

/// Renders a stage as a stored event: its name, content and metadata; `None` for a stage that is not stored.
#[must_use]
pub fn stored(call: &CallId, stage: &TaskStage) -> Option<(&'static str, Value, Value)> {
    let mut metadata = json!({ "task_id": call });
    let (name, content) = match stage {
        TaskStage::Running { .. } => return None,
        TaskStage::Started { about, agent, model } => {
            let content =
                json!({ "task_id": call, "description": about, "subagent_type": agent, "model_name": model });
            ("subagent.start", content)
        }
        TaskStage::Step(step) => {
            metadata["message_index"] = step.index.into();
            ("subagent.step", stored_step(call, step))
        }
        TaskStage::Ended(end) => ("subagent.end", stored_end(call, end)),
    };
    Some((name, content, metadata))
}

fn stored_step(call: &CallId, step: &TaskStep) -> Value {
    let TaskStep { index, kind, text, truncated } = step;
    let mut told = json!({ "task_id": call, "message_index": index, "text": text, "truncated": truncated });
    match kind {
        StepKind::Reply { calls } => {
            told["kind"] = "ai".into();
            told["tool_calls"] = json!(calls);
        }
        StepKind::Result { tool, error } => {
            told["kind"] = "tool".into();
            told["tool_name"] = tool.as_str().into();
            told["error"] = (*error).into();
        }
    }
    told
}

fn stored_end(call: &CallId, end: &TaskEnd) -> Value {
    let TaskEnd { status, stop_reason, model, usage, text, truncated, omitted } = end;
    let text_key = if *status == TaskStatus::Completed { "result" } else { "error" };
    json!({
        "task_id": call,
        "status": status,
        "stop_reason": stop_reason,
        "model_name": Some(model).filter(|model| !model.is_empty()),
        "usage": tokens(usage),
        text_key: text,
        format!("{text_key}_truncated"): truncated,
        "omitted_steps": omitted,
    })
}

fn tokens(usage: &Usage) -> Value {
    json!({ "input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.total() })
}
