//! Tests a property of all wires: a request repeats all bytes of the previous one, up to its last message.

use crate::{CacheRules, ModelSettings, WireKind, testing::call, wires::wire_of};
use proptest::prelude::*;
use pudu_base::{Assistant, Finish, Human, Message, Reminder, Request, ToolCall, ToolResult, ToolSpec};
use serde_json::json;
use std::sync::Arc;

/// An event in a thread.
#[derive(Clone, Debug)]
enum HistoryEvent {
    /// A user message, possibly steering a run.
    Said(String),
    /// The model answers.
    Answered(String),
    /// The model calls tools, one for each of these results.
    Called(String, Vec<String>),
    /// pudu reminds the model.
    Reminded(String),
}

fn event() -> impl Strategy<Value = HistoryEvent> {
    let text = || "[a-zä字\"{}\\n ]{1,12}";
    prop_oneof![
        // User messages are never blank.
        text().prop_map(|text| HistoryEvent::Said(format!("ask {text}"))),
        text().prop_map(HistoryEvent::Answered),
        (text(), prop::collection::vec(text(), 1..4))
            .prop_map(|(text, results)| HistoryEvent::Called(text, results)),
        text().prop_map(HistoryEvent::Reminded),
    ]
}

/// Returns the messages, and the number of messages at each request.
fn thread(events: &[HistoryEvent]) -> (Vec<Arc<Message>>, Vec<usize>) {
    let (mut messages, mut lengths) = (Vec::new(), Vec::new());
    for (n, event) in events.iter().enumerate() {
        match event {
            HistoryEvent::Said(text) => {
                messages.push(Message::Human(Human::new(format!("h{n}"), text.as_str())))
            }
            HistoryEvent::Reminded(text) => {
                messages.push(Message::Reminder(Reminder { id: format!("n{n}").into(), text: text.clone() }));
            }
            HistoryEvent::Answered(text) => messages.push(Message::Assistant(reply(n, text, Vec::new()))),
            HistoryEvent::Called(text, results) => {
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
        if !matches!(event, HistoryEvent::Answered(_)) {
            lengths.push(messages.len());
        }
    }
    (messages.into_iter().map(Arc::new).collect(), lengths)
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
fn serialize(settings: &ModelSettings, messages: &[Arc<Message>]) -> String {
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
    fn a_request_begins_with_the_previous_one(events in prop::collection::vec(event(), 2..10)) {
        let all = [vec![HistoryEvent::Said("begin".to_owned())], events].concat();
        let (messages, lengths) = thread(&all);
        for wire in WireKind::ALL {
            // Marks are disabled: they follow the newest turns, and Anthropic compares blocks without their marks.
            let cache = CacheRules { enabled: false, ..CacheRules::default() };
            let settings = ModelSettings { cache, ..ModelSettings::plain("m", wire) };
            for pair in lengths.windows(2) {
                let [before, now] = [0, 1].map(|at| serialize(&settings, &messages[..pair[at]]));
                prop_assert!(now.starts_with(&before), "{wire:?}:\n{before}\n{now}");
            }
        }
    }
}
