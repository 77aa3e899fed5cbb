//! Decoding speed: each wire's decoder over a stream of about 8 MB in small events, compared with serde_json parsing
//! each event to a `Value`.
//!
//! `cargo bench -p pudu-model --bench decode` takes about ten seconds; a number after `--` is the size of the streams
//! in bytes.
#![allow(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use pudu_model::{CacheRules, Dialect, ModelSettings, ReplyDecoder, ThinkingRules, WireKind};
use pudu_net::reqwest::Url;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

/// Default size of a stream, in bytes.
const STREAM_BYTES: usize = 8 * 1024 * 1024;
/// Size of the chunks in which a stream is read, in bytes; about the size of a read from a socket.
const READ_BYTES: usize = 4 * 1024;
/// Duration of each measurement.
const MEASURING: Duration = Duration::from_millis(1_200);
/// One in this many events is a piece of a call's arguments; the others are text.
const CALL_SHARE: usize = 8;

/// The events of one wire.
struct Sample {
    name: &'static str,
    wire: WireKind,
    first: Vec<Value>,
    words: Value,
    arguments: Value,
    last: Vec<Value>,
}

fn main() {
    let bytes = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(STREAM_BYTES);
    println!("| wire | stream, MB | events | decoder, MB/s | serde_json to values, MB/s |");
    println!("| --- | --- | --- | --- | --- |");
    for sample in [chat(), responses(), messages(), gemini(), ollama()] {
        let events = sample.events(bytes);
        let stream: String = events.iter().map(|event| framed(sample.wire, event)).collect();
        let settings = settings(sample.wire);
        let decoder = speed(stream.len(), || decode(&settings, stream.as_bytes()));
        let values = speed(stream.len(), || {
            events
                .iter()
                .map(|event| serde_json::from_str::<Value>(event).unwrap())
                .filter(Value::is_object)
                .count()
        });
        let megabytes = stream.len() as f64 / 1e6;
        println!("| {} | {megabytes:.1} | {} | {decoder:.0} | {values:.0} |", sample.name, events.len());
    }
}

/// Frames an event for its wire, as a line of JSON or a server-sent event.
fn framed(wire: WireKind, event: &str) -> String {
    match wire {
        WireKind::Ollama => format!("{event}\n"),
        _ => format!("data: {event}\n\n"),
    }
}

impl Sample {
    /// Returns the sample's events, repeated until they have about this size.
    fn events(&self, bytes: usize) -> Vec<String> {
        let mut events: Vec<String> = self.first.iter().map(Value::to_string).collect();
        let (words, arguments) = (self.words.to_string(), self.arguments.to_string());
        let mut size = 0;
        while size < bytes {
            let is_call = events.len().is_multiple_of(CALL_SHARE);
            events.push(if is_call { arguments.clone() } else { words.clone() });
            size += events.last().map_or(0, String::len);
        }
        events.extend(self.last.iter().map(Value::to_string));
        events
    }
}

/// Decodes a stream and returns the number of deltas.
fn decode(settings: &ModelSettings, stream: &[u8]) -> usize {
    let (mut decoder, mut deltas, mut pieces) = (ReplyDecoder::for_model(settings), Vec::new(), 0);
    for chunk in stream.chunks(READ_BYTES) {
        decoder.push(chunk, &mut deltas).unwrap();
        pieces += deltas.drain(..).len();
    }
    decoder.end(&mut deltas).unwrap();
    assert!(pieces > 1, "words come before the end");
    pieces + deltas.len()
}

/// Returns the best throughput of several runs, in MB/s.
fn speed(bytes: usize, mut work: impl FnMut() -> usize) -> f64 {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < MEASURING {
        let start = Instant::now();
        std::hint::black_box(work());
        best = best.min(start.elapsed());
    }
    bytes as f64 / 1e6 / best.as_secs_f64()
}

fn settings(wire: WireKind) -> ModelSettings {
    ModelSettings {
        name: "m".to_owned(),
        model: "m".to_owned(),
        wire,
        dialect: Dialect::PLAIN,
        base_url: Url::parse("http://localhost/v1").unwrap(),
        api_key: None,
        headers: Vec::new(),
        body: Map::new(),
        thinking: ThinkingRules::default(),
        cache: CacheRules::default(),
        max_tokens: None,
        temperature: None,
        window: 128_000,
        sees: false,
        gap: Duration::from_secs(1),
        total: Duration::from_secs(1),
    }
}

const WORDS: &str = " and the deer went";

#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn chunk(delta: Value, reason: Option<&str>) -> Value {
    json!({"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]})
}

fn chat() -> Sample {
    let call = |function: Value| json!({"tool_calls": [{"index": 0, "function": function}]});
    let begin = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "write_file", "arguments": "{\"text\": \""}}]});
    Sample {
        name: "chat completions",
        wire: WireKind::Chat,
        first: vec![chunk(begin, None)],
        words: chunk(json!({"content": WORDS}), None),
        arguments: chunk(call(json!({"arguments": WORDS})), None),
        last: vec![chunk(call(json!({"arguments": "\"}"})), Some("tool_calls"))],
    }
}

fn messages() -> Sample {
    let open = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let piece =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let arguments = |text: &str| piece(0, json!({"type": "input_json_delta", "partial_json": text}));
    let call = json!({"type": "tool_use", "id": "t", "name": "write_file", "input": {}});
    let text = json!({"type": "text", "text": ""});
    Sample {
        name: "Messages",
        wire: WireKind::Messages,
        first: vec![
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            open(0, call),
            open(1, text),
            arguments("{\"text\": \""),
        ],
        words: piece(1, json!({"type": "text_delta", "text": WORDS})),
        arguments: arguments(WORDS),
        last: vec![
            arguments("\"}"),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ],
    }
}

fn gemini() -> Sample {
    let parts = |part: Value| {
        json!({"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17}, "modelVersion": "m"})
    };
    let call = |call: Value| parts(json!({"functionCall": call}));
    let piece = json!([{"jsonPath": "$.text", "stringValue": WORDS, "willContinue": true}]);
    Sample {
        name: "Gemini",
        wire: WireKind::Gemini,
        first: vec![call(json!({"name": "write_file", "willContinue": true}))],
        words: parts(json!({"text": WORDS})),
        arguments: call(json!({"partialArgs": piece, "willContinue": true})),
        last: vec![call(json!({})), json!({"candidates": [{"finishReason": "STOP", "index": 0}]})],
    }
}

fn responses() -> Sample {
    let item = json!({"type": "function_call", "id": "fc_0", "call_id": "c", "name": "write_file", "arguments": "",
        "status": "in_progress"});
    let words = |text: &str| {
        json!({"type": "response.output_text.delta", "sequence_number": 4, "item_id": "msg_0", "output_index": 0,
            "content_index": 0, "delta": text, "logprobs": []})
    };
    let arguments = |text: &str| {
        json!({"type": "response.function_call_arguments.delta", "sequence_number": 5, "item_id": "fc_0",
            "output_index": 1, "delta": text})
    };
    let usage = json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 17});
    Sample {
        name: "Responses",
        wire: WireKind::Responses,
        first: vec![
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_0", "status": "in_progress"}}),
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 1, "item": item}),
            arguments("{\"text\": \""),
        ],
        words: words(WORDS),
        arguments: arguments(WORDS),
        last: vec![
            arguments("\"}"),
            json!({"type": "response.completed", "sequence_number": 9, "response":
                {"id": "resp_0", "status": "completed", "usage": usage}}),
        ],
    }
}

fn ollama() -> Sample {
    let document = |message: Value| json!({"model": "m", "created_at": "2026-01-01T00:00:00.000000Z", "message": message, "done": false});
    Sample {
        name: "Ollama",
        wire: WireKind::Ollama,
        first: Vec::new(),
        words: document(json!({"role": "assistant", "content": WORDS})),
        // Calls arrive complete on this wire; thoughts arrive in pieces.
        arguments: document(json!({"role": "assistant", "content": "", "thinking": WORDS})),
        last: vec![json!({"model": "m", "created_at": "2026-01-01T00:00:00.000000Z", "message":
            {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 10,
            "eval_count": 7})],
    }
}
