use crate::{
    CacheRules, Dialect, ModelSettings, SchemaForm, ThinkingRules, WireKind,
    testing::{call, reply, result},
};
use pudu_base::{
    Assistant, Human, Image, Message, ModelImage, ProviderParts, Request, Thinking, ToolResult, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn settings() -> ModelSettings {
    let dialect = Dialect { schema: SchemaForm::Plain, ..Dialect::PLAIN };
    let cache = CacheRules { enabled: false, ..CacheRules::default() };
    ModelSettings { dialect, cache, ..ModelSettings::plain("claude", WireKind::Messages) }
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

fn image() -> ModelImage {
    ModelImage {
        image: Image { path: "/mnt/a.png".into(), mime: "image/png".into() },
        bytes: Arc::new(*b"png"),
    }
}

fn text(settings: &ModelSettings, request: &Request) -> String {
    String::from_utf8(super::body(settings, request).unwrap()).unwrap()
}

fn body(settings: &ModelSettings, request: &Request) -> Value {
    serde_json::from_str(&text(settings, request)).unwrap()
}

/// Encodes a thread as messages.
fn messages(thread: Vec<Message>) -> Value {
    body(&settings(), &request(thread))["messages"].clone()
}

/// Returns a reply of this model whose blocks arrived in this order.
#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn own(reply: Assistant, order: Value) -> Assistant {
    let parts = ProviderParts { origin: settings().origin(), parts: json!({"order": order}) };
    Assistant { provider_parts: Some(parts), ..reply }
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "", "signature": "sig=="})
}

#[test]
fn requests_have_the_format_of_the_wire() {
    let failed = ToolResult { error: true, ..result("c2", "no such file") };
    let calls = vec![call("c1", "bash", json!({"command": "wc"})), call("functions.ls:0", "ls", json!({}))];
    let failed = ToolResult { call: "functions.ls:0".into(), ..failed };
    let thread = vec![
        human("count"),
        Message::Assistant(reply("I look.", calls)),
        Message::Tool(failed),
        tool("c1", "7"),
        human("quick"),
    ];
    let request = Request {
        system: "Be brief.".into(),
        tools: Arc::new([spec(
            "bash",
            json!({"type": "object", "anyOf": [{"required": ["command"]}],
            "properties": {"command": {"type": "string"}}}),
        )]),
        images: vec![image()],
        ..request(thread)
    };
    let extra =
        json!({"top_p": 0.9, "model": "pinned", "stream": false, "max_tokens": 50, "system": "Evil."});
    let settings = ModelSettings {
        body: extra.as_object().unwrap().clone(),
        max_tokens: Some(100),
        temperature: Some(0.5),
        ..settings()
    };
    let derived = "24 signs that are made from the id";
    let mut wire = body(&settings, &request);
    for pointer in ["/messages/1/content/2/id", "/messages/2/content/1/tool_use_id"] {
        let id = wire.pointer_mut(pointer).unwrap();
        assert_eq!(id.as_str().unwrap().len(), 24, "{id}");
        *id = json!(derived);
    }
    assert_eq!(
        wire,
        json!({
            "model": "pinned", "max_tokens": 50, "temperature": 0.5, "top_p": 0.9, "stream": true,
            "system": [{"type": "text", "text": "Be brief."}],
            "tools": [{"name": "bash", "description": "Does it.", "input_schema":
                {"type": "object", "properties": {"command": {"type": "string"}}}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "count"}]},
                {"role": "assistant", "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "wc"}},
                    {"type": "tool_use", "id": derived, "name": "ls", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "7"},
                    {"type": "tool_result", "tool_use_id": derived, "content": "no such file", "is_error": true},
                    {"type": "text", "text": "quick"},
                    {"type": "text", "text": "/mnt/a.png"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}}]}
            ]
        })
    );
}

#[test]
fn row_44_signed_thoughts_are_sent_back_to_their_model_unchanged() {
    let redacted = || json!({"type": "redacted_thinking", "data": "x", "of_tomorrow": 1});
    let order = json!([{"part": thought()}, {"words": 2}, {"part": redacted()}, {"call": "ls"}]);
    let said = || own(reply("Hi", vec![call("t", "ls", json!({}))]), order.clone());
    let words = json!({"type": "text", "text": "Hi"});
    let tool_use = json!({"type": "tool_use", "id": "t", "name": "ls", "input": {}});
    let written = messages(vec![human("a"), Message::Assistant(said()), tool("t", "ok")]);
    assert_eq!(written[1]["content"], json!([thought(), words, redacted(), tool_use]));
    let foreign = Assistant {
        provider_parts: said().provider_parts.map(|parts| ProviderParts { origin: "other".into(), ..parts }),
        ..said()
    };
    let fewer = Assistant { calls: vec![], ..said() };
    let reworded = Assistant { text: "Hi, you".into(), ..said() };
    for (changed, expect) in [
        (foreign, json!([words, tool_use])),
        (fewer, json!([words])),
        (reworded, json!([{"type": "text", "text": "Hi, you"}, tool_use])),
    ] {
        assert_eq!(messages(vec![human("a"), Message::Assistant(changed)])[1]["content"], expect);
    }
}

#[test]
fn row_44_a_reply_with_only_thoughts_is_omitted() {
    let silent = own(reply("", vec![]), json!([{"part": thought()}]));
    let written = messages(vec![human("a"), Message::Assistant(silent), human("b")]);
    let both = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(written, json!([{"role": "user", "content": both}]));
    let late = own(reply("Hi", vec![]), json!([{"words": 2}, {"part": thought()}]));
    let written = messages(vec![human("a"), Message::Assistant(late)]);
    assert_eq!(written[1]["content"], json!([{"type": "text", "text": "Hi"}]), "a thought is not the end");
}

#[test]
fn a_paused_turn_is_sent_back_unchanged() {
    let query = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}});
    let paused = own(reply("So ", vec![]), json!([{"words": 3}, {"part": query}]));
    let written = messages(vec![human("a"), Message::Assistant(paused)]);
    assert_eq!(written[1]["content"], json!([{"type": "text", "text": "So "}, query]));
    let written = messages(vec![human("a"), Message::Assistant(reply("So ", vec![]))]);
    assert_eq!(written[1]["content"][0]["text"], "So", "trailing whitespace is refused");
}

/// Returns the positions of marks.
fn marks(body: &Value) -> Vec<String> {
    fn find(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                if let Some(mark) = map.get("cache_control") {
                    assert_eq!(*mark, json!({"type": "ephemeral"}));
                    found.push(at.to_owned());
                }
                map.iter().for_each(|(name, value)| find(value, &format!("{at}/{name}"), found));
            }
            Value::Array(list) => {
                let items = list.iter().enumerate();
                items.for_each(|(index, value)| find(value, &format!("{at}/{index}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    find(body, "", &mut found);
    found.sort();
    found
}

fn thread(turns: usize) -> Request {
    let thoughtful = |n: usize| {
        own(
            reply("Hi", vec![call(&format!("t{n}"), "ls", json!({}))]),
            json!([{"part": thought()}, {"words": 2}, {"call": "ls"}]),
        )
    };
    let turn = |n: usize| {
        vec![
            human("a"),
            Message::Assistant(thoughtful(n)),
            tool(&format!("t{n}"), "ok"),
            Message::Assistant(reply("So.", vec![])),
        ]
    };
    let mut messages: Vec<Message> = (0..turns).flat_map(turn).collect();
    messages.push(human("b"));
    Request {
        system: "Be brief.".into(),
        tools: Arc::new([spec("ls", json!({})), spec("bash", json!({}))]),
        ..request(messages)
    }
}

#[test]
fn at_most_four_cache_marks_follow_tools_system_and_newest_turns() {
    let cached =
        |enabled: bool, newest: usize| ModelSettings { cache: CacheRules { enabled, newest }, ..settings() };
    let fixed = ["/system/0", "/tools/1"];
    let at = |places: &[&str]| places.iter().map(|&place| place.to_owned()).collect::<Vec<_>>();
    let bare = Request { system: String::new(), tools: Arc::new([]), ..thread(2) };
    for (settings, request, expect) in [
        (cached(false, 3), thread(2), vec![]),
        (
            cached(true, 3),
            thread(2),
            at(&["/messages/6/content/0", "/messages/8/content/0", fixed[0], fixed[1]]),
        ),
        (cached(true, 1), thread(2), at(&["/messages/8/content/0", fixed[0], fixed[1]])),
        (cached(true, 0), thread(2), at(&fixed)),
        (cached(true, 3), thread(0), at(&["/messages/0/content/0", fixed[0], fixed[1]])),
        (
            cached(true, 9),
            bare,
            at(&[
                "/messages/2/content/0",
                "/messages/4/content/0",
                "/messages/6/content/0",
                "/messages/8/content/0",
            ]),
        ),
        (
            cached(true, 3),
            Request { images: vec![image()], ..thread(1) },
            at(&["/messages/2/content/0", "/messages/4/content/0", fixed[0], fixed[1]]),
        ),
    ] {
        let body = body(&settings, &request);
        assert_eq!(marks(&body), expect, "{body}");
    }
    let own = json!({"cache_control": {"type": "ephemeral"}}).as_object().cloned().unwrap();
    let automatic = ModelSettings { body: own, ..cached(true, 3) };
    assert_eq!(marks(&body(&automatic, &thread(2))).len(), 4, "the operator's value takes precedence");
}

#[test]
fn each_request_begins_with_the_previous_one_except_for_cache_marks() {
    let settings = ModelSettings { cache: CacheRules::default(), ..settings() };
    let unmarked = |turns: usize| {
        text(&settings, &thread(turns)).replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    for turns in 0..6 {
        let now = unmarked(turns);
        let before = now.strip_suffix(r#"{"role":"user","content":[{"type":"text","text":"b"}]}]}"#).unwrap();
        assert!(unmarked(turns + 1).starts_with(before), "{before}");
    }
}

#[test]
fn thinking_follows_the_configuration_and_temperature_is_omitted() {
    let enabled = json!({"thinking": {"type": "enabled", "budget_tokens": 2_000}});
    let thinking = ThinkingRules {
        supported: true,
        enabled: enabled.as_object().cloned().unwrap(),
        ..ThinkingRules::default()
    };
    let settings = ModelSettings { thinking, temperature: Some(0.2), ..settings() };
    let told = |thinking: Thinking| {
        let wire = body(&settings, &Request { thinking, ..request(vec![human("a")]) });
        (wire["thinking"].clone(), wire.get("temperature").cloned())
    };
    assert_eq!(told(Thinking::On), (enabled["thinking"].clone(), None));
    assert_eq!(told(Thinking::Off), (json!({"type": "disabled"}), Some(json!(0.2))));
}

#[test]
fn the_operators_tools_precede_pudus() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = json!({"tools": [search]}).as_object().cloned().unwrap();
    let wire = body(&ModelSettings { body: own, ..settings() }, &thread(0));
    assert_eq!((&wire["tools"][0], &wire["tools"][2]["name"]), (&search, &json!("bash")));
}
