//! Messages in LangChain's format, whole and in chunks.

use super::{failure, task};
use pudu_base::{
    Assistant, CallId, Decision, FieldKind, Finish, FormField, Human, Message, MessageId, Question, ToolCall,
    ToolResult, Usage, tool_frame,
};
use pudu_net::scrub;
use serde_json::{Map, Value, json};

/// Fields of a client's message that are kept unchanged.
const KEPT_FIELDS: [&str; 4] = ["content", "additional_kwargs", "response_metadata", "name"];

/// Renders a message, with the fields that its client sent; `None` for pudu's own reminders, which clients do not see.
#[must_use]
pub fn to_json(message: &Message, sent: Option<&Value>) -> Option<Value> {
    let mut told = match message {
        Message::Human(human) => self::human(human),
        Message::Assistant(reply) => assistant(reply),
        Message::Tool(result) => tool(result),
        Message::Reminder(reminder) => {
            // Only system messages that a client sent have fields.
            sent?;
            base("system", &reminder.id, &reminder.text)
        }
    };
    for (key, value) in sent.and_then(Value::as_object).into_iter().flatten() {
        match (told.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(theirs)) => {
                own.extend(theirs.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            (Some(own), _) if !own.is_null() && !KEPT_FIELDS.contains(&key.as_str()) => {}
            _ => drop(told.insert(key.clone(), value.clone())),
        }
    }
    Some(Value::Object(told))
}

/// Renders a message as text, without secrets that a tool may have found.
#[must_use]
pub fn text(message: &Message, sent: Option<&Value>) -> Option<String> {
    Some(scrub::hide_in_talk(&to_json(message, sent)?.to_string()).into_owned())
}

fn base(kind: &str, id: &MessageId, content: &str) -> Map<String, Value> {
    let fields = json!({
        "content": content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": null,
        "id": id,
    });
    if let Value::Object(fields) = fields { fields } else { Map::new() }
}

fn human(human: &Human) -> Map<String, Value> {
    let mut fields = base("human", &human.id, &human.text);
    if !human.files.is_empty() {
        let file = |file: &pudu_base::SharedFile| json!({ "filename": file.name, "size": file.size, "path": file.path, "status": "uploaded" });
        let files: Vec<Value> = human.files.iter().map(file).collect();
        fields.insert("additional_kwargs".into(), json!({ "files": files }));
    }
    if let Some(sender) = &human.sender {
        fields.insert("name".into(), sender.as_str().into());
    }
    fields
}

fn assistant(reply: &Assistant) -> Map<String, Value> {
    let mut fields = base("ai", &reply.id, &reply.text);
    if let Some(outcome) = &reply.failure {
        failure::add(&mut fields, outcome);
    }
    if let Some(reasoning) = reply.reasoning.as_ref().filter(|reasoning| !reasoning.is_empty()) {
        fields.insert("additional_kwargs".into(), json!({ "reasoning_content": reasoning }));
    }
    fields.insert("response_metadata".into(), response(reply));
    let (good, garbled): (Vec<&ToolCall>, Vec<&ToolCall>) =
        reply.calls.iter().partition(|call| call.garbled.is_none());
    fields.insert("tool_calls".into(), good.into_iter().map(tool_call).collect());
    fields.insert("invalid_tool_calls".into(), garbled.into_iter().map(any_call).collect());
    fields.insert("usage_metadata".into(), reply.usage.as_ref().map_or(Value::Null, usage));
    fields
}

/// Renders a call, whether or not its arguments could be parsed.
pub(super) fn any_call(call: &ToolCall) -> Value {
    match &call.garbled {
        None => tool_call(call),
        Some(text) => json!({
            "name": call.name, "args": text, "id": call.id, "type": "invalid_tool_call",
            "error": "the arguments are no JSON object",
        }),
    }
}

/// Renders the provider's facts about a reply.
pub(super) fn response(reply: &Assistant) -> Value {
    let mut fields = json!({ "finish_reason": finish(reply) });
    if let Some(model) = &reply.model {
        fields["model_name"] = model.as_str().into();
    }
    fields
}

/// Returns a reply's finish reason, as providers name it.
fn finish(reply: &Assistant) -> &'static str {
    match reply.finish {
        Finish::Complete if reply.calls.is_empty() => "stop",
        Finish::Complete => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::Paused => "pause_turn",
        Finish::Partial if reply.failure.is_some() => "error",
        Finish::Partial => "interrupted",
    }
}

/// Renders a call whose arguments could be parsed.
pub(super) fn tool_call(call: &ToolCall) -> Value {
    json!({ "name": call.name, "args": call.args, "id": call.id, "type": "tool_call" })
}

/// Renders the usage of a model call.
#[must_use]
pub fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total(),
        "input_token_details": { "cache_read": usage.cached, "cache_creation": usage.cache_writes },
        "output_token_details": { "reasoning": usage.reasoning },
    })
}

fn tool(result: &ToolResult) -> Map<String, Value> {
    let mut fields = base("tool", &result.id, &tool_frame::unframed(&result.text));
    fields.insert("name".into(), result.tool.as_str().into());
    fields.insert("tool_call_id".into(), json!(result.call));
    let question_input = result.question.as_ref().map(|question| human_input(question, &result.call));
    fields.insert("artifact".into(), question_input.unwrap_or_default());
    fields.insert("status".into(), if result.error { "error" } else { "success" }.into());
    let decided = result.decision.iter().chain(&result.decisions).filter(|decision| !decision.not_asked);
    let told = |Decision { request, approved, by, .. }: &Decision| json!({ "request": request, "approved": approved, "by": by });
    let approvals: Vec<Value> = decided.map(told).collect();
    let mut extra = Map::new();
    if !approvals.is_empty() {
        extra.insert("approvals".into(), approvals.into());
    }
    task::add_report(&mut extra, result);
    fields.insert("additional_kwargs".into(), extra.into());
    fields
}

/// Renders a question as the artifact that DeerFlow's frontend shows.
fn human_input(question: &Question, call: &CallId) -> Value {
    let mode = match question {
        Question { fields, .. } if !fields.is_empty() => "form",
        Question { options, .. } if !options.is_empty() => "choice_with_other",
        _ => "free_text",
    };
    let mut input = json!({
        "version": if mode == "form" { 2 } else { 1 },
        "kind": "human_input_request",
        "source": "ask_clarification",
        "request_id": call,
        "clarification_type": question.kind,
        "question": question.text,
        "input_mode": mode,
        "tool_call_id": call,
    });
    if !question.options.is_empty() {
        input["options"] = human_input_options("", &question.options);
    }
    if !question.fields.is_empty() {
        input["fields"] = question.fields.iter().map(human_input_field).collect();
    }
    json!({ "human_input": input })
}

fn human_input_options(prefix: &str, options: &[String]) -> Value {
    let option = |(at, option): (usize, &String)| json!({ "id": format!("{prefix}option-{}", at + 1), "label": option, "value": option });
    options.iter().enumerate().map(option).collect()
}

/// Renders a field. DeerFlow's frontend has no fields for files and shows a line of text; pudu's page reads `file`.
fn human_input_field(field: &FormField) -> Value {
    let mut shown =
        json!({ "name": field.name, "label": field.label, "type": field.kind, "required": field.required });
    if field.kind == FieldKind::File {
        shown["type"] = "text".into();
        shown["file"] = true.into();
    }
    if !field.options.is_empty() {
        shown["options"] = human_input_options(&format!("{}-", field.name), &field.options);
    }
    if let Some(placeholder) = &field.placeholder {
        shown["placeholder"] = placeholder.as_str().into();
    }
    shown
}

/// A piece of a reply.
#[derive(Clone, Copy, Default)]
pub struct MessageChunk<'a> {
    /// Text.
    pub text: &'a str,
    /// Reasoning, if the model returns it.
    pub reasoning: Option<&'a str>,
    /// The whole reply, if this is its end.
    pub last: Option<&'a Assistant>,
}

impl MessageChunk<'_> {
    /// Renders the piece as a chunk of the message with this id.
    #[must_use]
    pub fn value(&self, id: &MessageId) -> Value {
        let mut fields = base("AIMessageChunk", id, self.text);
        if let Some(outcome) = self.last.and_then(|reply| reply.failure.as_ref()) {
            failure::add(&mut fields, outcome);
        }
        if let Some(reasoning) = self.reasoning {
            fields.insert("additional_kwargs".into(), json!({ "reasoning_content": reasoning }));
        }
        let calls = self.last.map(|reply| reply.calls.as_slice()).unwrap_or_default();
        let piece = |(index, call): (usize, &ToolCall)| {
            let args = call.garbled.clone().unwrap_or_else(|| call.args.to_string());
            json!({ "name": call.name, "args": args, "id": call.id, "index": index, "type": "tool_call_chunk" })
        };
        let valid = calls.iter().filter(|call| call.garbled.is_none()).map(tool_call);
        fields.insert("tool_calls".into(), valid.collect());
        fields.insert("invalid_tool_calls".into(), json!([]));
        fields.insert("tool_call_chunks".into(), calls.iter().enumerate().map(piece).collect());
        let used = self.last.and_then(|reply| reply.usage.as_ref());
        fields.insert("usage_metadata".into(), used.map_or(Value::Null, usage));
        if let Some(reply) = self.last {
            fields.insert("response_metadata".into(), response(reply));
        }
        let position = if self.last.is_some() { json!("last") } else { Value::Null };
        fields.insert("chunk_position".into(), position);
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::QuestionKind;

    #[test]
    fn a_form_is_the_second_version_of_a_request_for_input() {
        let field = FormField {
            name: "size".into(),
            label: "Size".into(),
            kind: FieldKind::MultiSelect,
            required: true,
            options: vec!["S".into()],
            placeholder: Some("any".into()),
        };
        let letter =
            FormField { name: "letter".into(), kind: FieldKind::File, options: Vec::new(), ..field.clone() };
        let kind = QuestionKind::RiskConfirmation;
        let question =
            Question { text: "Which?".into(), kind, options: Vec::new(), fields: vec![field, letter] };
        assert_eq!(
            human_input(&question, &"c".into()),
            json!({"human_input": {
                "version": 2, "kind": "human_input_request", "source": "ask_clarification", "request_id": "c",
                "clarification_type": "risk_confirmation", "question": "Which?", "input_mode": "form", "tool_call_id": "c",
                "fields": [
                    {"name": "size", "label": "Size", "type": "multi_select", "required": true, "placeholder": "any",
                     "options": [{"id": "size-option-1", "label": "S", "value": "S"}]},
                    {"name": "letter", "label": "Size", "type": "text", "file": true, "required": true, "placeholder": "any"},
                ],
            }})
        );
    }

    #[test]
    fn messages_look_like_this() {
        let call = ToolCall { id: "c".into(), name: "ls".into(), args: json!({"path": "/"}), garbled: None };
        let reply = Assistant {
            id: "a".into(),
            text: "Let me look.".into(),
            reasoning: Some("hm".into()),
            provider_parts: None,
            calls: vec![call],
            finish: Finish::Complete,
            model: Some("gpt".into()),
            usage: Some(Usage::plain(5, 2)),
            failure: None,
        };
        let result = ToolResult {
            id: "r".into(),
            call: "c".into(),
            tool: "ask_clarification".into(),
            text: "Which?".into(),
            error: false,
            question: Some(Question {
                text: "Which?".into(),
                options: vec!["this".into()],
                ..Question::default()
            }),
            images: Vec::new(),
            decision: None,
            decisions: Vec::new(),
            task: None,
        };
        let sent = json!({
            "content": [{"type": "text", "text": "hi"}], "additional_kwargs": {"mood": "good"}, "example": true,
            "id": "another", "type": "ai"
        });
        let last = MessageChunk { last: Some(&reply), ..MessageChunk::default() }.value(&reply.id);
        insta::assert_json_snapshot!([
            to_json(&Message::Human(Human::new("h", "hi")), Some(&sent)),
            to_json(&Message::Assistant(reply), None),
            to_json(&Message::Tool(result), None),
            Some(last),
            Some(MessageChunk { text: "Let", ..MessageChunk::default() }.value(&"a".into())),
        ]);
    }
}
