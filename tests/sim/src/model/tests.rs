//! The model as seen by a client, read from the raw connection without a client library.

use super::{Answer, At, End, Exchange, Model, Reply, RetryAfter, Trouble};
use crate::Then;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

mod wires;

const SOON: Duration = Duration::from_secs(10);

/// One request on its own connection.
struct Line {
    stream: BufReader<TcpStream>,
}

impl Line {
    async fn ask(model: &Model, body: &Value) -> Self {
        let address = model.url().replace("http://", "").replace("/v1", "");
        let mut stream = TcpStream::connect(&address).await.unwrap();
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer k\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Reads until the connection ends.
    async fn rest(mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).await.ok();
        rest
    }

    async fn until(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert_ne!(self.stream.read_line(&mut line).await.unwrap(), 0, "{what} never came");
        }
    }
}

fn ask(text: &str, stream: bool) -> Value {
    json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]})
}

/// Returns the events of a stream; the end marker as a string.
fn events(response: &str) -> Vec<Value> {
    let data = response.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
}

fn contents(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str()).collect()
}

async fn streamed(model: &Model, text: &str) -> Vec<Value> {
    events(&Line::ask(model, &ask(text, true)).await.rest().await)
}

#[tokio::test]
async fn without_a_script_it_echoes_in_chunks_that_end_with_a_reason_and_the_last_word() {
    let model = Model::start().await.unwrap();
    let events = streamed(&model, "two words").await;
    assert_eq!(contents(&events), "echo: two words");
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "stop");
    assert_eq!(events[events.len() - 1], "[DONE]");
    assert_eq!(model.requests()[0].headers["authorization"], "Bearer k");
}

#[tokio::test]
async fn usage_comes_in_a_chunk_of_its_own_and_only_when_asked_for() {
    let model = Model::start().await.unwrap();
    model.next(Reply::text("hi").usage(7, 1));
    model.next(Reply::text("hi").usage(7, 1));
    assert!(streamed(&model, "x").await.iter().all(|event| event.get("usage").is_none()));
    let mut body = ask("x", true);
    body["stream_options"] = json!({"include_usage": true});
    let events = events(&Line::ask(&model, &body).await.rest().await);
    let last = &events[events.len() - 2];
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8});
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &usage));
}

#[tokio::test]
async fn a_tool_call_comes_in_pieces_that_join_to_its_arguments() {
    let model = Model::start().await.unwrap();
    let arguments = json!({"path": "/tmp/größe"});
    model.next(Reply::text("let me see").tool("ls", &arguments).raw_tool("cat", "{\"broken"));
    let events = streamed(&model, "x").await;
    let joined = |index: u64| {
        let calls =
            events.iter().filter_map(|event| event["choices"][0]["delta"]["tool_calls"][0].as_object());
        let mine: Vec<_> = calls.filter(|call| call["index"] == index).collect();
        let text: String = mine.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
        (mine[0]["function"]["name"].as_str().unwrap().to_owned(), mine.len() > 2, text)
    };
    assert_eq!(joined(0), ("ls".to_owned(), true, arguments.to_string()));
    assert_eq!(joined(1), ("cat".to_owned(), true, "{\"broken".to_owned()));
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn rules_come_first_then_the_queue_then_the_rest() {
    let model = Model::start().await.unwrap();
    model.next(Reply::text("queued"));
    model.when(|ask| ask.last_user() == "ping", |_| Reply::text("pong").into());
    let mut said = Vec::new();
    for text in ["ping", "x", "x"] {
        said.push(contents(&streamed(&model, text).await));
    }
    assert_eq!(said, ["pong", "queued", "echo: x"]);
}

#[tokio::test]
async fn a_refusal_has_its_status_its_body_and_its_wait() {
    let model = Model::start().await.unwrap();
    model.next(Reply::status(429).retry_after(RetryAfter::Seconds(2)).message("slow down"));
    model.next(Reply::status(429).retry_after(RetryAfter::Millis(20)));
    let response = Line::ask(&model, &ask("x", true)).await.rest().await;
    assert!(response.starts_with("HTTP/1.1 429 "), "{response}");
    assert!(
        response.contains("retry-after: 2\r\n") && response.contains("\"message\":\"slow down\""),
        "{response}"
    );
    let response = Line::ask(&model, &ask("x", false)).await.rest().await;
    assert!(response.contains("retry-after-ms: 20\r\n"), "{response}");
}

#[tokio::test]
async fn trouble_strikes_after_so_many_chunks() {
    let model = Model::start().await.unwrap();
    let answer = || Reply::text("one two three");
    let check = async |trouble: Trouble, expected: &str, done: bool| {
        model.next(answer().trouble(2, trouble.clone()));
        let events = streamed(&model, "x").await;
        assert_eq!(contents(&events), expected, "{trouble:?}");
        assert_eq!(events.contains(&json!("[DONE]")), done, "{trouble:?}");
    };
    check(Trouble::Cut, "one two", false).await;
    check(Trouble::Error("out of memory".to_owned()), "one two", false).await;
    check(Trouble::Garbage, "one two three", true).await;
    assert_eq!(model.hangups(), 0, "what the model breaks off is no hangup");
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed_while_it_waits_and_while_it_reads() {
    let model = Model::start().await.unwrap();
    let stalled: Reply = Reply::text("one two").stall_after(1).into();
    for (n, reply) in [(1, Reply::Silence), (2, stalled)] {
        model.next(reply);
        let mut line = Line::ask(&model, &ask("x", true)).await;
        if n == 2 {
            line.until("one").await;
        }
        model.wait(SOON, |model| (model.active() == 1).then_some(())).await.unwrap();
        drop(line);
        model.wait(SOON, |model| (model.hangups() == n).then_some(())).await.unwrap();
    }
    let ends: Vec<_> =
        model.exchanges().into_iter().map(|exchange| exchange.end.map(|(end, _)| end)).collect();
    assert_eq!(ends, [Some(End::HungUp), Some(End::HungUp)]);
}

#[tokio::test]
async fn a_held_stream_stands_before_its_chunk() {
    let model = Model::start().await.unwrap();
    model.next(Reply::text("one two three"));
    let mut hold = model.hold(1, At::Chunk(3));
    let mut line = Line::ask(&model, &ask("x", true)).await;
    line.until("two").await;
    assert_eq!(hold.reached().await.map(|exchange| exchange.ask.last_user()), Some("x".to_owned()));
    assert_eq!(model.active(), 1);
    hold.proceed();
    assert!(line.rest().await.contains("three"));
    model.on_call(1, At::Start, Box::new(|_: &Exchange| Then::Cut));
    assert_eq!(Line::ask(&model, &ask("x", true)).await.rest().await, "");
}

#[tokio::test]
async fn an_answer_without_a_stream_is_whole() {
    let model = Model::start().await.unwrap();
    model.next(Answer::default().chunks(["a", "b"]).finish("length").usage(1, 2));
    let response = Line::ask(&model, &ask("x", false)).await.rest().await;
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    let choice = &body["choices"][0];
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("ab"), &json!("length")));
    assert_eq!(body["usage"]["total_tokens"], 3);
}
