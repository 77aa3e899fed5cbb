//! One script over five wires, read from the raw connection.

use super::{Answer, Model, Reply, Trouble};
use crate::model::{Cause, Wire};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Sends a request over a wire and returns the complete response.
async fn ask(model: &Model, wire: Wire, body: &Value) -> String {
    let (path, key) = match wire {
        Wire::Chat => ("/v1/chat/completions", "authorization: Bearer k"),
        Wire::Responses => ("/v1/responses", "authorization: Bearer k"),
        Wire::Messages => ("/v1/messages", "x-api-key: k\r\nanthropic-version: 2023-06-01"),
        Wire::Gemini => ("/v1beta/models/sim-1:streamGenerateContent?alt=sse", "x-goog-api-key: k"),
        Wire::Ollama => ("/api/chat", "x-nothing: 1"),
    };
    let address = model.root().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\n{key}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok();
    response
}

/// Returns a user's message, with thinking enabled if supported.
fn said(wire: Wire, words: &str) -> Value {
    let messages = json!([{"role": "user", "content": words}]);
    match wire {
        Wire::Chat => json!({"model": "sim-1", "stream": true, "messages": messages}),
        Wire::Responses => json!({"model": "sim-1", "stream": true, "input": messages,
            "reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}),
        Wire::Messages => json!({"model": "sim-1", "stream": true, "messages": messages, "max_tokens": 2048,
            "thinking": {"type": "adaptive"}}),
        Wire::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": words}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": true}}}),
        Wire::Ollama => json!({"model": "sim-1", "messages": messages, "think": true}),
    }
}

/// Returns the events of a stream in any framing.
fn events(response: &str) -> Vec<Value> {
    let lines = response.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).filter(Value::is_object).collect()
}

/// Returns all text and all thoughts of the events.
fn told(events: &[Value]) -> (String, String) {
    let texts = |pointers: &[&str], fits: &dyn Fn(&Value) -> bool| -> String {
        let found = events.iter().filter(|event| fits(event));
        found.filter_map(|event| pointers.iter().find_map(|path| event.pointer(path)?.as_str())).collect()
    };
    let thought =
        |event: &Value| event.pointer("/candidates/0/content/parts/0/thought") == Some(&json!(true));
    let kind = |event: &Value, what: &str| event["type"].as_str().is_none_or(|kind| kind.contains(what));
    let text = texts(
        &[
            "/choices/0/delta/content",
            "/delta",
            "/delta/text",
            "/candidates/0/content/parts/0/text",
            "/message/content",
        ],
        &|event| !thought(event) && (kind(event, "output_text.delta") || kind(event, "content_block_delta")),
    );
    let thoughts = texts(
        &[
            "/choices/0/delta/reasoning_content",
            "/delta",
            "/delta/thinking",
            "/candidates/0/content/parts/0/text",
            "/message/thinking",
        ],
        &|event| {
            (event["candidates"].is_null() || thought(event))
                && (kind(event, "reasoning_summary_text.delta") || kind(event, "content_block_delta"))
        },
    );
    (text, thoughts)
}

#[tokio::test]
async fn one_answer_can_be_asked_for_over_any_wire() {
    let model = Model::start().await.unwrap();
    let answer: Answer = Reply::text("one two").reasoning("let me see").usage(7, 5);
    for wire in Wire::ALL {
        model.next(answer.clone());
        let response = ask(&model, wire, &said(wire, "say it")).await;
        assert!(response.contains(wire.stream_type()), "{wire:?}: {response}");
        let found = told(&events(&response));
        assert_eq!(found, ("one two".to_owned(), "let me see".to_owned()), "{wire:?}: {response}");
        let asked = model.requests().pop().unwrap();
        assert_eq!((asked.wire, asked.last_user().as_str(), asked.model()), (wire, "say it", "sim-1"));
    }
    assert_eq!(model.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn refusals_and_troubles_come_in_the_words_of_the_provider() {
    let model = Model::start().await.unwrap();
    let words = |wire| match wire {
        Wire::Chat => ("429 ", "503 ", "maximum context length"),
        Wire::Responses => ("429 ", "503 ", "exceeds the context window"),
        Wire::Messages => ("429 ", "529 ", "prompt is too long"),
        Wire::Gemini => ("429 ", "503 ", "exceeds the maximum number of tokens"),
        Wire::Ollama => ("429 ", "503 ", "exceeded max context length"),
    };
    for wire in Wire::ALL {
        let (limited, overloaded, overflow) = words(wire);
        for (cause, expected) in
            [(Cause::RateLimit, limited), (Cause::Overloaded, overloaded), (Cause::Overflow, overflow)]
        {
            model.next(Reply::refused(cause));
            let response = ask(&model, wire, &said(wire, "x")).await;
            assert!(response.contains(expected), "{wire:?} {cause:?}: {response}");
        }
        for trouble in [Trouble::Cut, Trouble::Error("out of memory".to_owned())] {
            model.next(Reply::text("one two three").trouble(2, trouble.clone()));
            let response = ask(&model, wire, &said(wire, "x")).await;
            assert_eq!(told(&events(&response)).0, "one two", "{wire:?} {trouble:?}: {response}");
            assert_eq!(response.contains("out of memory"), trouble != Trouble::Cut, "{response}");
        }
    }
}

#[tokio::test]
async fn what_the_real_servers_refuse_is_refused_and_noted() {
    let model = Model::start().await.unwrap();
    let call = json!({"functionCall": {"name": "ls", "args": {}}});
    let answer = json!({"functionResponse": {"name": "ls", "response": {"result": "x"}}});
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "Zm9yZ2Vk"});
    let bad = [
        (Wire::Chat, json!({"messages": []}), "non-empty"),
        (
            Wire::Responses,
            json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": ""}]}),
            "No tool call found",
        ),
        (Wire::Messages, json!({"model": "m", "messages": []}), "max_tokens: Field required"),
        (
            Wire::Messages,
            json!({"model": "m", "max_tokens": 9, "messages": [
            {"role": "user", "content": "x"}, {"role": "assistant", "content": [thinking]}]}),
            "Invalid `signature`",
        ),
        (
            Wire::Gemini,
            json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [call]},
            {"role": "user", "parts": [answer]}]}),
            "missing a thought_signature",
        ),
        (Wire::Ollama, json!({"messages": []}), "model is required"),
    ];
    for (n, (wire, body, words)) in bad.into_iter().enumerate() {
        let response = ask(&model, wire, &body).await;
        assert!(response.starts_with("HTTP/1.1 400 ") && response.contains(words), "{wire:?}: {response}");
        assert_eq!((model.refused().len(), model.count()), (n + 1, 0));
    }
}
