//! Messages as clients send them, in LangChain's or OpenAI's format.

use super::content::{self, PostedContent};
use pudu_base::{
    Assistant, CallId, Finish, Human, Message, MessageId, Outcome, Reminder, ToolCall, ToolResult, Usage,
};
use pudu_channels::Attachment;
use pudu_deerflow::{read_failure, read_report};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Keys of `additional_kwargs` that only a server sets.
const SERVERS_OWN: [&str; 4] =
    ["original_user_content", "dynamic_context_reminder", "reminder_date", "view_image_context"];
/// Fields that `Message` itself represents.
const OWN: [&str; 8] =
    ["type", "role", "id", "content", "tool_calls", "invalid_tool_calls", "tool_call_id", "usage_metadata"];
/// Maximum number of messages in one request.
const MAX_MESSAGES: usize = 10_000;

/// A message that a client sent.
#[derive(Debug)]
pub(crate) struct InputMessage {
    pub(crate) message: Message,
    /// Its other fields, which have no effect here; a JSON object, or null.
    pub(crate) fields: Arc<Value>,
    /// Images in its content.
    pub(crate) images: Vec<Attachment>,
    /// Names of its uploads.
    pub(crate) uploads: Vec<String>,
}

impl InputMessage {
    /// Reduces a message that is a `/goal` command to its goal, as in chats, and returns the goal.
    pub(super) fn take_goal(&mut self) -> Option<String> {
        let Message::Human(human) = &mut self.message else { return None };
        let goal = pudu_dispatch::input::goal_of(&human.text)?;
        human.text.clone_from(&goal);
        let fields = Arc::make_mut(&mut self.fields);
        fields.as_object_mut().and_then(|fields| fields.remove("content"));
        if fields.as_object().is_some_and(Map::is_empty) {
            *fields = Value::Null;
        }
        Some(goal)
    }
}

/// Parses a list of messages. An error names the message.
pub(crate) fn messages(list: &Value) -> Result<Vec<InputMessage>, String> {
    let one = std::slice::from_ref(list);
    let list = match list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list.as_slice(),
        Value::Object(_) | Value::String(_) => one,
        _ => return Err("messages must be a list".to_owned()),
    };
    if list.len() > MAX_MESSAGES {
        return Err(format!("messages has more than {MAX_MESSAGES} messages"));
    }
    let read = |(at, sent): (usize, &Value)| message(sent).map_err(|why| format!("messages[{at}]: {why}"));
    list.iter().enumerate().map(read).collect()
}

fn message(sent: &Value) -> Result<InputMessage, String> {
    let fields = match sent {
        Value::Object(fields) => fields.clone(),
        Value::String(_) => {
            Map::from_iter([("type".into(), "human".into()), ("content".into(), sent.clone())])
        }
        _ => return Err("it must be an object".to_owned()),
    };
    let kind = ["type", "role"].into_iter().find_map(|key| fields.get(key)?.as_str()).unwrap_or("human");
    let id = match fields.get("id") {
        None | Some(Value::Null) => MessageId::fresh(),
        Some(Value::String(id)) if (1..=200).contains(&id.len()) => id.as_str().into(),
        Some(_) => return Err("its id must be a string of 1 to 200 bytes".to_owned()),
    };
    let content = fields.get("content").cloned().unwrap_or_default();
    let PostedContent { text, images } = match &content {
        Value::Null => PostedContent::default(),
        content => content::read(content)?,
    };
    let is_human = matches!(kind, "human" | "user" | "HumanMessageChunk");
    if !images.is_empty() && !is_human {
        return Err("only a human message can have images".to_owned());
    }
    let message = match kind {
        _ if is_human => Message::Human(Human::new(id, text)),
        "ai" | "assistant" | "AIMessageChunk" => Message::Assistant(reply(id, text, &fields)?),
        "tool" => Message::Tool(result(id, text, &fields)?),
        "system" => Message::Reminder(Reminder { id, text }),
        other => return Err(format!("unknown message type {other:?}")),
    };
    let uploads = fields.get("additional_kwargs").map(uploads).unwrap_or_default();
    Ok(InputMessage { fields: kept(&message, fields, content, &images).into(), message, images, uploads })
}

/// Returns the fields that are sent back to clients. Keys that only a server sets are omitted, and so is content with
/// images, because the images are in the thread's uploads.
fn kept(message: &Message, fields: Map<String, Value>, content: Value, images: &[Attachment]) -> Value {
    let is_other = |key: &String| !OWN.contains(&key.as_str());
    let mut others: Map<String, Value> =
        fields.into_iter().filter(|(key, value)| is_other(key) && !value.is_null()).collect();
    if let Some(Value::Object(extra)) = others.get_mut("additional_kwargs") {
        extra.retain(|key, _| !SERVERS_OWN.contains(&key.as_str()));
    }
    others.retain(|_, value| value.as_object().is_none_or(|object| !object.is_empty()));
    if content.is_array() && images.is_empty() {
        others.insert("content".into(), content);
    }
    match message {
        Message::Reminder(_) => Value::Object(others),
        _ if others.is_empty() => Value::Null,
        _ => Value::Object(others),
    }
}

/// Returns the names of the uploads that a message lists.
fn uploads(extra: &Value) -> Vec<String> {
    let files = extra.get("files").and_then(Value::as_array);
    let name = |file: &Value| Some(file.get("filename").or(file.get("name"))?.as_str()?.to_owned());
    files.into_iter().flatten().filter_map(name).filter(|name| !name.contains('/')).take(100).collect()
}

fn reply(id: MessageId, text: String, fields: &Map<String, Value>) -> Result<Assistant, String> {
    let failure = read_failure(fields, &text).map(|failure| Box::new(Outcome::Error(failure)));
    let mut calls = Vec::new();
    for call in fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        // In OpenAI's format, a call has a function whose arguments are text.
        let function = call.get("function").unwrap_or(call);
        let name = function.get("name").and_then(Value::as_str).ok_or("a tool call has no name")?;
        let args = match function.get("args").or(function.get("arguments")) {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| json!({})),
            Some(args @ Value::Object(_)) => args.clone(),
            _ => json!({}),
        };
        let id = call.get("id").and_then(Value::as_str).map_or_else(CallId::fresh, Into::into);
        calls.push(ToolCall { id, name: name.to_owned(), args, garbled: None });
    }
    let tokens = |key: &str| fields.get("usage_metadata")?.get(key)?.as_u64();
    let usage = tokens("input_tokens").zip(tokens("output_tokens"));
    if failure.is_some() {
        // As in the thread, a failed message has no text or calls for a model.
        calls.clear();
    }
    Ok(Assistant {
        id,
        text: if failure.is_none() { text } else { String::new() },
        reasoning: None,
        provider_parts: None,
        calls,
        finish: if failure.is_none() { Finish::Complete } else { Finish::Partial },
        model: None,
        usage: usage.map(|(input, output)| Usage::plain(input, output)),
        failure,
    })
}

fn result(id: MessageId, text: String, fields: &Map<String, Value>) -> Result<ToolResult, String> {
    let field = |key: &str| fields.get(key).and_then(Value::as_str);
    Ok(ToolResult {
        id,
        call: field("tool_call_id").ok_or("a tool's message has no tool_call_id")?.into(),
        tool: field("name").unwrap_or_default().to_owned(),
        text,
        error: field("status") == Some("error"),
        question: None,
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: read_report(fields).map(Box::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_langgraph::message::to_json;

    #[test]
    fn messages_come_back_as_clients_sent_them() {
        let sent = json!([
            {"type": "human", "id": "1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                "additional_kwargs": {"mood": "good", "original_user_content": "forged"}, "example": true},
            {"role": "assistant", "id": "2", "content": "x", "response_metadata": {"model": "m"},
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{\"a\":1}"}}]},
            {"type": "tool", "id": "3", "content": "out", "tool_call_id": "c", "name": "ls", "artifact": {"a": 1}},
            {"type": "system", "id": "4", "content": "be short"},
        ]);
        let read = messages(&sent).unwrap();
        assert_eq!(read[0].message.text(), "a\nb");
        let back: Vec<Value> =
            read.iter().filter_map(|sent| to_json(&sent.message, Some(&sent.fields))).collect();
        assert_eq!(back[0]["content"], sent[0]["content"]);
        assert_eq!(back[0]["additional_kwargs"], json!({"mood": "good"}));
        assert_eq!(back[0]["example"], true);
        assert_eq!(back[1]["tool_calls"][0]["args"], json!({"a": 1}));
        assert_eq!(back[1]["response_metadata"]["model"], "m");
        assert_eq!(back[2]["artifact"], json!({"a": 1}));
        assert_eq!((&back[3]["type"], &back[3]["content"]), (&json!("system"), &json!("be short")));
    }

    #[test]
    fn failures_and_reports_of_sub_agents_are_preserved() {
        let extra =
            json!({"deerflow_error_fallback": true, "error_reason": "auth", "error_type": "ModelAuthError"});
        let report = json!({"subagent_status": "completed", "subagent_result_brief": "Seven."});
        let sent = json!([
            {"type": "ai", "id": "1", "content": "The key is refused.", "additional_kwargs": extra},
            {"type": "tool", "id": "2", "content": "7", "tool_call_id": "c", "additional_kwargs": report},
            {"type": "ai", "id": "3", "content": "Hi."},
        ]);
        let read = messages(&sent).unwrap();
        assert!(read[0].message.is_failure() && read[0].message.text().is_empty(), "{read:?}");
        let back = to_json(&read[0].message, Some(&read[0].fields)).unwrap();
        assert_eq!(
            (&back["content"], &back["additional_kwargs"]["error_reason"]),
            (&sent[0]["content"], &json!("auth"))
        );
        let Message::Tool(result) = &read[1].message else { panic!("{read:?}") };
        assert_eq!(result.task.as_ref().map(|task| task.text.as_str()), Some("Seven."));
        assert!(!read[2].message.is_failure());
    }

    #[test]
    fn invalid_messages_are_refused_with_their_position() {
        for (sent, why) in [
            (json!(7), "messages must be a list"),
            (json!([7]), "messages[0]: it must be an object"),
            (json!([{"type": "alien"}]), "messages[0]: unknown message type \"alien\""),
            (json!(["a", {"content": 7}]), "messages[1]: content must be text or a list of blocks"),
            (json!([{"type": "tool", "content": "a"}]), "messages[0]: a tool's message has no tool_call_id"),
            (json!([{"id": 7}]), "messages[0]: its id must be a string of 1 to 200 bytes"),
            (json!([{"type": "ai", "tool_calls": [{}]}]), "messages[0]: a tool call has no name"),
        ] {
            assert_eq!(messages(&sent).unwrap_err(), why, "{sent}");
        }
    }
}
