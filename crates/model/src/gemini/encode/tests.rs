use crate::{
    Dialect, ModelSettings, SchemaForm, WireKind,
    testing::{call, reply, result},
};
use pudu_base::{Assistant, Human, Image, Message, ModelImage, ProviderParts, Request, ToolResult, ToolSpec};
use serde_json::{Value, json};
use std::sync::Arc;

fn settings() -> ModelSettings {
    let dialect = Dialect { schema: SchemaForm::OpenApi, ..Dialect::PLAIN };
    ModelSettings { dialect, ..ModelSettings::plain("gemini-3-pro", WireKind::Gemini) }
}

fn human(text: &str) -> Message {
    Message::Human(Human::new("h", text))
}

fn tool(id: &str, text: &str) -> Message {
    Message::Tool(result(id, text))
}

fn request(messages: Vec<Message>) -> Request {
    Request { messages: messages.into_iter().map(Arc::new).collect(), ..Request::default() }
}

fn spec(name: &str, parameters: Value) -> Arc<ToolSpec> {
    Arc::new(ToolSpec { name: name.into(), description: "Does it.".into(), parameters, idempotent: false })
}

fn text(settings: &ModelSettings, request: &Request) -> String {
    String::from_utf8(super::body(settings, request).unwrap()).unwrap()
}

fn body(settings: &ModelSettings, request: &Request) -> Value {
    serde_json::from_str(&text(settings, request)).unwrap()
}

/// Encodes a thread as contents.
fn contents(thread: Vec<Message>) -> Value {
    body(&settings(), &request(thread))["contents"].clone()
}

/// Returns a reply of this model whose parts arrived in this order.
#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn own(reply: Assistant, order: Value) -> Assistant {
    let parts = ProviderParts { origin: settings().origin(), parts: json!({"order": order}) };
    Assistant { provider_parts: Some(parts), ..reply }
}

#[test]
fn requests_have_the_format_of_the_wire() {
    let calls = vec![call("c1", "bash", json!({"command": "wc"})), call("c2", "ls", json!({}))];
    let failed = ToolResult { error: true, tool: "ls".into(), ..result("c2", "no such file") };
    let thread = vec![
        human("count"),
        Message::Assistant(reply("I look.", calls)),
        Message::Tool(failed),
        tool("c1", "7"),
        human("quick"),
    ];
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([
            spec(
                "bash",
                json!({"type": "object", "properties": {"command": {"const": "wc"}}, "additionalProperties": false}),
            ),
            spec("now", json!({"type": "object", "properties": {}})),
        ]),
        images: vec![ModelImage {
            image: Image { path: "/mnt/a.png".into(), mime: "image/png".into() },
            bytes: Arc::new(*b"png"),
        }],
        ..request(thread)
    };
    let extra =
        json!({"contents": [], "model": "other", "safetySettings": [{"category": "c", "threshold": "OFF"}]});
    let settings = ModelSettings {
        model: "gemini-2.5-pro".into(),
        body: extra.as_object().unwrap().clone(),
        max_tokens: Some(100),
        temperature: Some(0.5),
        ..settings()
    };
    assert_eq!(
        body(&settings, &request),
        json!({
            "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5},
            "safetySettings": [{"category": "c", "threshold": "OFF"}],
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [
                {"name": "bash", "description": "Does it.", "parameters": {"type": "object", "properties":
                    {"command": {"type": "string", "enum": ["wc"]}}}},
                {"name": "now", "description": "Does it."}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "count"}]},
                {"role": "model", "parts": [
                    {"text": "I look."},
                    {"functionCall": {"name": "bash", "args": {"command": "wc"}}},
                    {"functionCall": {"name": "ls", "args": {}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "bash", "response": {"output": "7"}}},
                    {"functionResponse": {"name": "ls", "response": {"error": "no such file"}}},
                    {"text": "quick"},
                    {"text": "/mnt/a.png"},
                    {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}]}
            ]
        })
    );
}

#[test]
fn signatures_and_ids_are_sent_back_to_their_model_in_place() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s0"});
    let order = json!([
        {"words": 2}, {"part": code}, {"words": 1, "extra": {"thoughtSignature": "s1"}},
        {"call": "ls", "extra": {"id": "g1", "thoughtSignature": "s2"}}, {"call": "ls"},
        {"words": 0, "extra": {"thoughtSignature": "s3"}},
    ]);
    let calls = vec![call("made-1", "ls", json!({"a": 1})), call("made-2", "ls", json!({}))];
    let said = own(reply("Hi.", calls), order);
    let thread = vec![human("a"), Message::Assistant(said), tool("made-1", "ok"), tool("made-2", "ok")];
    let written = contents(thread);
    assert_eq!(
        written[1]["parts"],
        json!([{"text": "Hi"}, code, {"text": ".", "thoughtSignature": "s1"},
            {"functionCall": {"id": "g1", "name": "ls", "args": {"a": 1}}, "thoughtSignature": "s2"},
            {"functionCall": {"name": "ls", "args": {}}}, {"text": "", "thoughtSignature": "s3"}])
    );
    assert_eq!(written[2]["parts"][0]["functionResponse"]["id"], "g1");
    assert_eq!(written[2]["parts"][1]["functionResponse"].get("id"), None);
}

#[test]
fn unsigned_calls_of_other_models_get_googles_placeholder_signature() {
    let calls = || vec![call("c1", "ls", json!({})), call("c2", "ls", json!({}))];
    let order = json!([{"call": "ls", "extra": {"thoughtSignature": "s"}}, {"call": "ls"}]);
    let mine = own(reply("", calls()), order);
    let foreign = Assistant {
        provider_parts: mine
            .provider_parts
            .clone()
            .map(|parts| ProviderParts { origin: "other".into(), ..parts }),
        ..mine.clone()
    };
    let fewer = Assistant { calls: vec![call("c2", "ls", json!({}))], ..mine.clone() };
    let signatures = |model: &str, said: &Assistant| {
        let settings = ModelSettings { model: model.into(), ..settings() };
        let wire = body(&settings, &request(vec![human("a"), Message::Assistant(said.clone())]));
        let parts = wire["contents"][1]["parts"].as_array().unwrap().clone();
        parts.iter().map(|part| part.get("thoughtSignature").cloned().unwrap_or_default()).collect::<Vec<_>>()
    };
    let skip = json!("skip_thought_signature_validator");
    assert_eq!(signatures("gemini-3-pro", &mine), vec![json!("s"), Value::Null]);
    assert_eq!(signatures("gemini-3-pro", &foreign), vec![skip.clone(), Value::Null]);
    assert_eq!(
        signatures("gemini-3-pro", &fewer),
        vec![skip],
        "a changed reply is sent without its signature"
    );
    assert_eq!(
        signatures("gemini-2.5-pro", &foreign),
        vec![Value::Null, Value::Null],
        "it does not check signatures"
    );
}

#[test]
fn each_request_begins_with_the_previous_one() {
    let turn = |n: usize| {
        let id = format!("c{n}");
        let calls = vec![call(&id, "ls", json!({}))];
        vec![
            human("a"),
            Message::Assistant(reply("", calls)),
            tool(&id, "ok"),
            Message::Assistant(reply("So.", vec![])),
        ]
    };
    let thread = |turns: usize| {
        let messages = (0..turns).flat_map(turn).chain([human("b")]).collect();
        text(
            &settings(),
            &Request {
                system: "Be brief.".into(),
                tools: Arc::new([spec("ls", json!({}))]),
                ..request(messages)
            },
        )
    };
    for turns in 0..5 {
        let now = thread(turns);
        let before = now.strip_suffix(r#"{"role":"user","parts":[{"text":"b"}]}]}"#).unwrap();
        assert!(thread(turns + 1).starts_with(before), "{before}");
    }
}
