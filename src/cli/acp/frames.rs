//! Converts the frames of a run's stream to updates of a session.

use serde_json::{Value, json};

/// Maximum length of a tool's result for the editor, in characters.
const MAX_RESULT_CHARS: usize = 20_000;

/// An event of a run for the editor's connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunNews {
    /// An update of the session.
    Update(Value),
    /// A call waits for a decision.
    Approval(Value),
    /// The run failed: the name and the text of the error.
    Failed(String, String),
    /// The run ended.
    Ended,
}

/// Converts one frame.
pub(super) fn news(event: &str, data: &Value) -> Vec<RunNews> {
    let updates = match event {
        "messages" => message(&data[0]),
        "updates" => plan(&data["tools"]["todos"]).into_iter().collect(),
        "custom" => match data["type"].as_str().unwrap_or_default() {
            "approval_requested" => return vec![RunNews::Approval(data.clone())],
            "llm_retry" => data["message"].as_str().map(thought).into_iter().collect(),
            "task_running" => task(data).into_iter().collect(),
            _ => Vec::new(),
        },
        "error" => {
            let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
            return vec![RunNews::Failed(text("error"), text("message"))];
        }
        "end" => return vec![RunNews::Ended],
        _ => Vec::new(),
    };
    updates.into_iter().map(RunNews::Update).collect()
}

/// Converts a chunk of a reply, or the result of a call.
fn message(message: &Value) -> Vec<Value> {
    match message["type"].as_str().unwrap_or_default() {
        "AIMessageChunk" => assistant_updates(message, message["content"].as_str().unwrap_or_default()),
        "tool" => tool_update(message),
        _ => Vec::new(),
    }
}

/// Returns the updates for a reply or a chunk of one: thoughts, text and calls.
pub(super) fn assistant_updates(message: &Value, text: &str) -> Vec<Value> {
    let extra = &message["additional_kwargs"];
    // A failure is the error of the prompt.
    if extra["deerflow_error_fallback"] == true {
        return Vec::new();
    }
    let mut updates: Vec<Value> = extra["reasoning_content"].as_str().map(thought).into_iter().collect();
    if !text.is_empty() {
        updates.push(json!({
            "sessionUpdate": "agent_message_chunk", "messageId": message["id"],
            "content": { "type": "text", "text": text },
        }));
    }
    updates.extend(message["tool_calls"].as_array().into_iter().flatten().map(call));
    updates
}

fn thought(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": text } })
}

fn call(call: &Value) -> Value {
    let name = call["name"].as_str().unwrap_or_default();
    let args = &call["args"];
    let what = ["command", "path", "query", "url", "pattern", "description", "agent"]
        .iter()
        .find_map(|key| args[*key].as_str())
        .and_then(|text| text.lines().next());
    let title = what.map_or_else(|| name.to_owned(), |what| format!("{name}: {what}"));
    json!({
        "sessionUpdate": "tool_call", "toolCallId": call["id"], "title": title, "kind": kind(name),
        "status": "in_progress", "rawInput": args,
    })
}

/// Returns the protocol's kind of a tool.
fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "ls" | "view_image" | "list_uploaded_files" => "read",
        "write_file" | "str_replace" => "edit",
        "glob" | "grep" | "web_search" | "image_search" | "tool_search" | "memory_search" => "search",
        "bash" => "execute",
        "web_fetch" => "fetch",
        "write_todos" => "think",
        _ => "other",
    }
}

/// Returns the updates for the result of a call. A question for the user is also part of the answer's text.
pub(super) fn tool_update(message: &Value) -> Vec<Value> {
    let text = message["content"].as_str().unwrap_or_default();
    let shown: String = text.chars().take(MAX_RESULT_CHARS).collect();
    let status = if message["status"] == "error" { "failed" } else { "completed" };
    let mut updates = vec![json!({
        "sessionUpdate": "tool_call_update", "toolCallId": message["tool_call_id"], "status": status,
        "content": [{ "type": "content", "content": { "type": "text", "text": shown } }],
    })];
    if message["artifact"]["human_input"].is_object() {
        updates.push(json!({
            "sessionUpdate": "agent_message_chunk", "messageId": message["id"],
            "content": { "type": "text", "text": text },
        }));
    }
    updates
}

/// Returns the to-do list as a plan.
fn plan(todos: &Value) -> Option<Value> {
    let entry =
        |todo: &Value| json!({ "content": todo["content"], "status": todo["status"], "priority": "medium" });
    let entries: Vec<Value> = todos.as_array()?.iter().map(entry).collect();
    Some(json!({ "sessionUpdate": "plan", "entries": entries }))
}

/// Shows a step of a sub-agent at the call that it works for.
fn task(data: &Value) -> Option<Value> {
    let message = &data["message"];
    let calls = message["tool_calls"].as_array()?;
    let names: Vec<&str> = calls.iter().filter_map(|call| call["name"].as_str()).collect();
    let text = [message["content"].as_str().unwrap_or_default(), &names.join(", ")].join("\n");
    Some(json!({
        "sessionUpdate": "tool_call_update", "toolCallId": data["task_id"], "status": "in_progress",
        "content": [{ "type": "content", "content": { "type": "text", "text": text.trim() } }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: &str, data: &Value, expect: &[RunNews]) {
        assert_eq!(news(event, data), expect, "{event} {data}");
    }

    #[test]
    fn a_reply_is_text_thoughts_and_calls() {
        let chunk = json!([{
            "type": "AIMessageChunk", "id": "m", "content": "Let me look.",
            "additional_kwargs": {"reasoning_content": "hm"},
            "tool_calls": [{"id": "c", "name": "read_file", "args": {"path": "/a\nb"}}],
        }, {}]);
        let text = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": {"type": "text", "text": "Let me look."}});
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "read_file: /a", "kind": "read",
            "status": "in_progress", "rawInput": {"path": "/a\nb"}});
        check("messages", &chunk, &[thought("hm"), text, call].map(RunNews::Update));
        let failed = json!([{"type": "AIMessageChunk", "content": "no key", "additional_kwargs": {"deerflow_error_fallback": true}}]);
        check("messages", &failed, &[]);
        check("messages", &json!([{"type": "human", "content": "hi"}]), &[]);
        check("messages", &json!(7), &[]);
    }

    #[test]
    fn a_question_of_the_agent_is_part_of_its_answer() {
        let result = json!([{"type": "tool", "id": "r", "tool_call_id": "c", "status": "success", "content": "Which one?",
            "artifact": {"human_input": {"question": "Which one?"}}}]);
        let [RunNews::Update(ended), RunNews::Update(asked)] = &news("messages", &result)[..] else {
            panic!("{:?}", news("messages", &result))
        };
        assert_eq!((ended["status"].as_str(), ended["toolCallId"].as_str()), (Some("completed"), Some("c")));
        assert_eq!(asked["content"]["text"], "Which one?");
    }

    #[test]
    fn the_rest_of_a_stream_is_read() {
        let todos = json!({"tools": {"todos": [{"content": "count", "status": "in_progress"}]}});
        let entries = json!([{"content": "count", "status": "in_progress", "priority": "medium"}]);
        let plan = json!({"sessionUpdate": "plan", "entries": entries});
        check("updates", &todos, &[RunNews::Update(plan)]);
        check("updates", &json!({"model": {"messages": []}}), &[]);
        let approval = json!({"type": "approval_requested", "key": "k"});
        check("custom", &approval.clone(), &[RunNews::Approval(approval)]);
        check(
            "error",
            &json!({"error": "E", "message": "why"}),
            &[RunNews::Failed("E".into(), "why".into())],
        );
        check("end", &Value::Null, &[RunNews::Ended]);
        check("gap", &json!({}), &[]);
    }
}
