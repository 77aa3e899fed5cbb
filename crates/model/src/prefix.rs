//! Tests a property of all wires: a request repeats all bytes of the previous one, up to its last message.

use crate::{CacheRules, ModelSettings, WireKind, testing::call, wires::wire_of};
use proptest::prelude::*;
use pudu_base::{Assistant, Finish, Human, Message, Reminder, Request, ToolCall, ToolResult, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// An event in a thread.
#[derive(Clone, Debug)]
enum Happening {
    /// A user sends a message, also to steer a run.
    Said(String),
    /// The model answers.
    Answered(String),
    /// The model calls tools, one for each of these results.
    Called(String, Vec<String>),
    /// pudu reminds the model.
    Reminded(String),
}

fn happening() -> impl Strategy<Value = Happening> {
    let text = || "[a-zä字\"{}\\n ]{1,12}";
    prop_oneof![
        // User messages are never blank.
        text().prop_map(|text| Happening::Said(format!("ask {text}"))),
        text().prop_map(Happening::Answered),
        (text(), prop::collection::vec(text(), 1..4))
            .prop_map(|(text, results)| Happening::Called(text, results)),
        text().prop_map(Happening::Reminded),
    ]
}

/// Returns the messages, and the number of messages at each request.
fn thread(happened: &[Happening]) -> (Vec<Arc<Message>>, Vec<usize>) {
    let (mut messages, mut asked) = (Vec::new(), Vec::new());
    for (n, happening) in happened.iter().enumerate() {
        match happening {
            Happening::Said(text) => {
                messages.push(Message::Human(Human::new(format!("h{n}"), text.as_str())))
            }
            Happening::Reminded(text) => {
                messages.push(Message::Reminder(Reminder { id: format!("n{n}").into(), text: text.clone() }));
            }
            Happening::Answered(text) => messages.push(Message::Assistant(reply(n, text, Vec::new()))),
            Happening::Called(text, results) => {
                let id = |at: usize| format!("c{n}-{at}");
                let calls = (0..results.len()).map(|at| call(&id(at), "ls", json!({"path": at}))).collect();
                messages.push(Message::Assistant(reply(n, text, calls)));
                for (at, text) in results.iter().enumerate() {
                    messages.push(Message::Tool(ToolResult {
                        id: format!("r{n}-{at}").into(),
                        call: id(at).as_str().into(),
                        tool: "ls".into(),
                        text: text.clone(),
                        error: false,
                        question: None,
                        images: Vec::new(),
                        decision: None,
                        decisions: Vec::new(),
                        task: None,
                    }));
                }
            }
        }
        // No request follows an answer directly.
        if !matches!(happening, Happening::Answered(_)) {
            asked.push(messages.len());
        }
    }
    (messages.into_iter().map(Arc::new).collect(), asked)
}

fn reply(n: usize, text: &str, calls: Vec<ToolCall>) -> Assistant {
    Assistant {
        id: format!("a{n}").into(),
        text: text.to_owned(),
        reasoning: Some("hm".to_owned()),
        provider_parts: None,
        calls,
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    }
}

/// Serializes a request without its closing brackets.
fn written(settings: &ModelSettings, messages: &[Arc<Message>]) -> String {
    let spec = ToolSpec {
        name: "ls".to_owned(),
        description: "Lists a folder.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "integer"}}}),
        idempotent: true,
    };
    let request = Request {
        system: "You help.".to_owned(),
        messages: messages.to_vec(),
        tools: [Arc::new(spec)].into(),
        ..Request::default()
    };
    let body = wire_of(settings.wire).body(settings, &request).unwrap();
    String::from_utf8(body).unwrap().trim_end_matches(['}', ']']).to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_request_begins_with_the_previous_one(happened in prop::collection::vec(happening(), 2..10)) {
        let begun = [vec![Happening::Said("begin".to_owned())], happened].concat();
        let (messages, asked) = thread(&begun);
        for wire in WireKind::ALL {
            // Marks are disabled: they follow the newest turns, and Anthropic compares blocks without their marks.
            let cache = CacheRules { enabled: false, ..CacheRules::default() };
            let settings = ModelSettings { cache, ..ModelSettings::plain("m", wire) };
            for pair in asked.windows(2) {
                let [before, now] = [0, 1].map(|at| written(&settings, &messages[..pair[at]]));
                prop_assert!(now.starts_with(&before), "{wire:?}:\n{before}\n{now}");
            }
        }
    }
}
