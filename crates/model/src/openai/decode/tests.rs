use super::*;
use proptest::prelude::*;
use serde_json::json;

fn sse(chunks: &[Value]) -> String {
    let mut text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    text
}

fn decode(text: &str) -> Result<Vec<Delta>, ModelError> {
    let mut decoder = ChunkDecoder::new(false, true);
    let mut deltas = decoder.push(text.as_bytes())?;
    deltas.extend(decoder.end()?);
    Ok(deltas)
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn text_thoughts_usage_and_the_end_come_in_order() {
    let text = sse(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "hm"})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": "lo"})),
        end("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ]);
    let expect = [
        Delta::Reasoning("hm".into()),
        Delta::Text("Hel".into()),
        Delta::Text("lo".into()),
        Delta::Usage(Usage::plain(3, 2)),
        Delta::Finish(Finish::Complete),
    ];
    assert_eq!(decode(&text).unwrap(), expect);
}

#[test]
fn calls_that_come_in_pieces_are_put_together() {
    let piece = |index: u64, id: Option<&str>, name: Option<&str>, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let text = sse(&[
        piece(0, Some("a"), Some("ls"), "{\"pa"),
        piece(1, Some("b"), Some("bash"), ""),
        piece(0, None, None, "th\": \"/mnt\"}"),
        piece(1, None, None, "{oops"),
        end("tool_calls"),
    ]);
    let expect = [
        Delta::Call(ToolCall {
            id: "a".into(),
            name: "ls".into(),
            args: json!({"path": "/mnt"}),
            garbled: None,
        }),
        Delta::Call(ToolCall {
            id: "b".into(),
            name: "bash".into(),
            args: json!({}),
            garbled: Some("{oops".into()),
        }),
        Delta::Finish(Finish::Complete),
    ];
    assert_eq!(decode(&text).unwrap(), expect);
}

#[test]
fn a_whole_answer_is_read_as_well() {
    let mut decoder = ChunkDecoder::new(true, false);
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
    assert_eq!(decoder.push(body.to_string().as_bytes()).unwrap(), []);
    let expect = [Delta::Text("Hi".into()), Delta::Usage(Usage::plain(1, 1)), Delta::Finish(Finish::Length)];
    assert_eq!(decoder.end().unwrap(), expect);
}

#[test]
fn a_cut_or_broken_answer_is_an_error_and_never_a_short_answer() {
    let cut = format!("data: {}\n\n", delta(json!({"content": "Hel"})));
    assert_eq!(decode(&cut), Err(ModelError::Unreachable("the answer was cut".into())));
    assert!(matches!(decode("data: <html>\n\n"), Err(ModelError::Garbled(_))));
    let error = format!("data: {}\n\n", json!({"error": {"message": "overloaded", "code": 529}}));
    assert!(matches!(decode(&error), Err(ModelError::Busy { .. })));
}

#[test]
fn a_server_that_closes_after_the_finish_reason_has_answered() {
    let text = format!("data: {}\n\ndata: {}\n\n", delta(json!({"content": "Hi"})), end("stop"));
    assert_eq!(decode(&text).unwrap(), [Delta::Text("Hi".into()), Delta::Finish(Finish::Complete)]);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), whole: bool) {
        let mut decoder = ChunkDecoder::new(whole, true);
        let _ = decoder.push(&bytes);
        let _ = decoder.end();
    }
}
