//! Rows of the table of quirks for this wire, with bytes in the format of the providers.

use crate::{
    ModelSettings, ReplyDecoder, WireKind,
    testing::{self, Reply, call, garbled_call},
};
use proptest::prelude::*;
use pudu_base::{Finish, ModelError, Usage};
use serde_json::{Value, json};

fn settings() -> ModelSettings {
    ModelSettings::plain("claude", WireKind::Messages)
}

fn read(bytes: &str) -> Result<Reply, ModelError> {
    testing::read(&settings(), bytes.as_bytes())
}

/// Writes events like Anthropic, with the kind in both places.
fn events(events: &[Value]) -> String {
    let kind = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", kind(event))).collect()
}

fn stream(parts: &[Value]) -> Reply {
    read(&events(parts)).unwrap()
}

fn begin() -> Value {
    begin_as("msg_1")
}

fn begin_as(id: &str) -> Value {
    json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "content": [],
        "model": "claude", "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}}})
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn open(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn piece(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn close(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text(index: u64, pieces: &[&str]) -> Vec<Value> {
    let pieces = pieces.iter().map(|text| piece(index, json!({"type": "text_delta", "text": text})));
    std::iter::once(open(index, json!({"type": "text", "text": ""})))
        .chain(pieces)
        .chain([close(index)])
        .collect()
}

fn tool(index: u64, id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let pieces =
        pieces.iter().map(|json| piece(index, json!({"type": "input_json_delta", "partial_json": json})));
    std::iter::once(open(index, block)).chain(pieces).chain([close(index)]).collect()
}

fn thought(index: u64, text: &str, signature: &str) -> Vec<Value> {
    vec![
        open(index, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(index, json!({"type": "thinking_delta", "thinking": text})),
        piece(index, json!({"type": "signature_delta", "signature": signature})),
        close(index),
    ]
}

fn end(reason: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

/// Decodes a message with these blocks.
fn message(blocks: &[Vec<Value>], reason: &str) -> Reply {
    stream(&[vec![begin()], blocks.concat(), end(reason)].concat())
}

fn counted(reply: Reply) -> Reply {
    reply.with_usage(Usage::plain(10, 7))
}

#[test]
fn text_arrives_in_pieces_and_calls_at_the_end() {
    let reply = message(
        &[text(0, &["I ", "look."]), tool(1, "toolu_1", "ls", &["", "{\"path\": ", "\"/\"}"])],
        "tool_use",
    );
    let expect = Reply::with_text("I look.", Finish::Complete).with_calls(vec![call(
        "toolu_1",
        "ls",
        json!({"path": "/"}),
    )]);
    assert_eq!(reply, counted(expect));
    let mut decoder = ReplyDecoder::for_model(&settings());
    let first = events(&[vec![begin()], text(0, &["I "])].concat());
    assert_eq!(
        testing::push(&mut decoder, first.as_bytes()).unwrap().len(),
        1,
        "text is emitted immediately"
    );
    let tool = events(&tool(1, "toolu_1", "ls", &["{}"]));
    assert_eq!(testing::push(&mut decoder, tool.as_bytes()).unwrap(), vec![], "calls are emitted at the end");
}

#[test]
fn row_43_a_call_without_arguments_has_no_json_at_all() {
    for pieces in [&[][..], &[""], &["", "{}"]] {
        let reply = message(
            &[tool(0, "toolu_1", "now", pieces), tool(1, "toolu_2", "ls", &["", "{\"a\":1}"])],
            "tool_use",
        );
        let calls = vec![call("toolu_1", "now", json!({})), call("toolu_2", "ls", json!({"a": 1}))];
        assert_eq!(reply, counted(Reply::with_text("", Finish::Complete).with_calls(calls)), "{pieces:?}");
    }
}

#[test]
fn row_43_complete_arguments_at_the_beginning_count_unless_pieces_follow() {
    let block = json!({"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}});
    let reply = message(&[vec![open(0, block.clone()), close(0)]], "tool_use");
    assert_eq!(reply.calls, vec![call("t", "ls", json!({"a": 1}))]);
    let more = piece(0, json!({"type": "input_json_delta", "partial_json": "{\"b\":2}"}));
    let reply = message(&[vec![open(0, block), more, close(0)]], "tool_use");
    assert_eq!(reply.calls, vec![call("t", "ls", json!({"b": 2}))]);
}

#[test]
fn row_43_an_empty_turn_is_a_complete_reply() {
    assert_eq!(message(&[], "end_turn"), counted(Reply::with_text("", Finish::Complete)));
    assert_eq!(message(&[text(0, &[])], "end_turn"), counted(Reply::with_text("", Finish::Complete)));
}

#[test]
fn row_43_each_stop_reason_has_anthropics_meaning() {
    for (reason, finish) in [
        ("end_turn", Finish::Complete),
        ("stop_sequence", Finish::Complete),
        ("max_tokens", Finish::Length),
        ("pause_turn", Finish::Paused),
        ("refusal", Finish::Filtered),
        ("of_tomorrow", Finish::Length),
    ] {
        assert_eq!(message(&[text(0, &["Hi"])], reason), counted(Reply::with_text("Hi", finish)), "{reason}");
    }
    let full = events(&[vec![begin()], end("model_context_window_exceeded")].concat());
    assert!(matches!(read(&full), Err(ModelError::TooLong(_))));
}

#[test]
fn row_43_a_refusal_may_have_details() {
    let refused = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_sequence": null,
        "stop_details": {"type": "refusal", "category": null, "explanation": null}}, "usage": {"output_tokens": 7}});
    let reply = stream(&[begin(), refused, json!({"type": "message_stop"})]);
    assert_eq!(reply, counted(Reply::with_text("", Finish::Filtered)));
}

#[test]
fn row_43_a_paused_turn_keeps_the_blocks_of_tools_that_run_there() {
    let query = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "encrypted_content": "xx"}]});
    let input = piece(1, json!({"type": "input_json_delta", "partial_json": "{\"query\": \"deer\"}"}));
    let reply = message(
        &[text(0, &["So"]), vec![open(1, query), input, close(1)], vec![open(2, found.clone()), close(2)]],
        "pause_turn",
    );
    assert_eq!((reply.text.as_str(), reply.calls.len(), reply.finish), ("So", 0, Some(Finish::Paused)));
    let query = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "deer"}});
    let order = json!({"order": [{"words": 2}, {"part": query}, {"part": found}]});
    assert_eq!(reply.parts.unwrap().parts, order);
}

#[test]
fn row_43_usage_comes_with_and_without_the_input_and_counts_the_cache() {
    let start = |usage: Value| json!({"type": "message_start", "message": {"id": "m", "usage": usage}});
    let delta =
        |usage: Value| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
    let all = Usage { input: 160, output: 20, cached: 100, cache_writes: 50, reasoning: 0 };
    let full = json!({"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 20});
    let head = json!({"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50, "output_tokens": 3});
    let compaction = json!({"input_tokens": 10, "output_tokens": 2, "iterations": [
        {"type": "compaction", "input_tokens": 100, "output_tokens": 30},
        {"type": "message", "input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 2}]});
    for (first, last, expect) in [
        (head.clone(), json!({"output_tokens": 20}), all),
        (head, full.clone(), all),
        (json!({"input_tokens": 0, "output_tokens": 0}), full, all),
        (json!({"input_tokens": 10}), json!({"output_tokens": 2, "iterations": []}), Usage::plain(10, 2)),
        (json!({"input_tokens": 10}), compaction, Usage { cached: 5, ..Usage::plain(115, 32) }),
        (
            json!({"input_tokens": 10}),
            json!({"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}}),
            Usage { reasoning: 4, ..Usage::plain(10, 9) },
        ),
    ] {
        let reply = stream(&[start(first), delta(last.clone()), json!({"type": "message_stop"})]);
        assert_eq!(reply.usage, Some(expect), "{last}");
    }
    let silent = [json!({"type": "message_start", "message": {"id": "m"}}), json!({"type": "message_stop"})];
    assert_eq!(stream(&silent).usage, None, "unknown usage is not zero");
}

#[test]
fn row_43_thoughts_are_shown_and_stored_with_their_signature() {
    let redacted = open(1, json!({"type": "redacted_thinking", "data": "secret"}));
    let blocks =
        [thought(0, "Hm.", "sig=="), vec![redacted, close(1)], text(2, &["Hi"]), tool(3, "t", "ls", &["{}"])];
    let reply = message(&blocks, "tool_use");
    assert_eq!((reply.text.as_str(), reply.reasoning.as_str()), ("Hi", "Hm."));
    let parts = reply.parts.unwrap();
    assert_eq!(parts.origin, "messages localhost claude");
    assert_eq!(
        parts.parts,
        json!({"order": [
            {"part": {"type": "thinking", "thinking": "Hm.", "signature": "sig=="}},
            {"part": {"type": "redacted_thinking", "data": "secret"}},
            {"words": 2},
            {"call": "ls"},
        ]})
    );
}

#[test]
fn row_44_empty_thoughts_keep_their_signature_and_truncated_ones_are_left_out() {
    let silent = vec![
        open(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, json!({"type": "signature_delta", "signature": "sig"})),
        close(0),
    ];
    let reply = message(&[silent, text(1, &["Hi"])], "end_turn");
    let thinking = json!({"type": "thinking", "thinking": "", "signature": "sig"});
    assert_eq!(reply.parts.unwrap().parts, json!({"order": [{"part": thinking}, {"words": 2}]}));
    let cut = thought(0, "I was", "sig").into_iter().take(2).collect();
    let reply = message(&[cut], "max_tokens");
    assert_eq!(reply, counted(Reply { reasoning: "I was".into(), ..Reply::with_text("", Finish::Length) }));
}

#[test]
fn row_43_an_unknown_block_is_kept_unchanged() {
    let blocks = vec![
        open(0, json!({"type": "compaction", "content": null})),
        piece(0, json!({"type": "compaction_delta", "content": "Once "})),
        piece(0, json!({"type": "compaction_delta", "content": "upon"})),
        close(0),
        open(1, json!({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}})),
        close(1),
    ];
    let reply = message(&[blocks, text(2, &["Hi"])], "end_turn");
    assert_eq!(reply.text, "Hi", "a summary is not shown");
    assert_eq!(
        reply.parts.unwrap().parts,
        json!({"order": [{"part": {"type": "compaction", "content": "Once upon"}},
            {"part": {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}}, {"words": 2}]})
    );
}

#[test]
fn row_43_a_repeated_message_start_is_ignored() {
    let reply = stream(&[vec![begin(), begin()], text(0, &["Hi"]), vec![begin()], end("end_turn")].concat());
    assert_eq!(reply, counted(Reply::with_text("Hi", Finish::Complete)));
    let again = stream(&[vec![begin(), begin_as("msg_2")], text(0, &["Hi"]), end("end_turn")].concat());
    assert_eq!(again, counted(Reply::with_text("Hi", Finish::Complete)), "the first message was still empty");
    let two_messages =
        [vec![begin()], text(0, &["Hi"]), end("end_turn"), vec![begin_as("msg_2")], text(0, &["No"])];
    assert_eq!(stream(&two_messages.concat()), counted(Reply::with_text("Hi", Finish::Complete)));
}

#[test]
fn row_43_a_message_spliced_into_another_is_an_error() {
    let first = [vec![begin()], tool(0, "toolu_1", "rm", &["{\"path\": \"/a"])].concat();
    let second = [vec![begin_as("msg_2")], tool(0, "toolu_2", "ls", &["\"}"]), end("tool_use")].concat();
    let error = read(&events(&[first, second].concat())).unwrap_err();
    assert_eq!(error, ModelError::Garbled("a message begins inside another one".to_owned()));
}

#[test]
fn row_43_an_unclosed_block_counts_if_it_is_complete() {
    let open_text = text(0, &["Hi"]).into_iter().take(2).collect::<Vec<_>>();
    assert_eq!(message(&[open_text], "end_turn"), counted(Reply::with_text("Hi", Finish::Complete)));
    let unclosed = |pieces: &[&str]| {
        let mut blocks = tool(0, "t", "ls", pieces);
        blocks.pop();
        message(&[blocks], "tool_use").calls
    };
    assert_eq!(unclosed(&["{\"a\":1}"]), vec![call("t", "ls", json!({"a": 1}))]);
    assert_eq!(unclosed(&["{\"a\":"]), vec![garbled_call("t", "ls", "{\"a\":")]);
    assert_eq!(unclosed(&[]), vec![garbled_call("t", "ls", "")], "the rest is unknown");
}

#[test]
fn row_43_calls_with_truncated_arguments_are_never_made() {
    let calls = |pieces: &[&str]| {
        message(&[tool(0, "a", "ls", &["{}"]), tool(1, "b", "rm", pieces)], "max_tokens").calls
    };
    let complete = call("a", "ls", json!({}));
    assert_eq!(
        calls(&["{\"path\": \"/tm"]),
        vec![complete.clone(), garbled_call("b", "rm", "{\"path\": \"/tm")]
    );
    assert_eq!(calls(&[""]), vec![complete, garbled_call("b", "rm", "")]);
}

#[test]
fn pings_and_unknown_events_are_ignored() {
    let noise =
        || vec![json!({"type": "ping"}), json!({"type": "of_tomorrow", "index": 3, "delta": {"x": 1}})];
    let parts =
        [noise(), vec![begin()], noise(), text(0, &["Hi"]), noise(), end("end_turn"), noise()].concat();
    assert_eq!(stream(&parts), counted(Reply::with_text("Hi", Finish::Complete)));
}

#[test]
fn an_error_within_or_instead_of_the_stream_is_reported() {
    let error =
        |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "r"});
    let error_of = |kind: &str| {
        let inside =
            read(&events(&[vec![begin()], text(0, &["Hi"]), vec![error(kind)]].concat())).unwrap_err();
        assert_eq!(read(&format!("data: {}\n\n", error(kind))).unwrap_err(), inside, "without its kind");
        assert_eq!(read(&error(kind).to_string()).unwrap_err(), inside, "as a document");
        inside
    };
    assert!(matches!(error_of("overloaded_error"), ModelError::Busy { .. }));
    assert!(matches!(error_of("rate_limit_error"), ModelError::Busy { .. }));
    assert!(matches!(error_of("api_error"), ModelError::Failed(_)));
    assert!(matches!(error_of("authentication_error"), ModelError::Auth(_)));
    assert!(matches!(error_of("invalid_request_error"), ModelError::Rejected(_)));
    assert!(matches!(read("data: {\"type\": 7}\n\n"), Err(ModelError::Cut(_))));
}

#[test]
fn a_stream_without_an_end_is_truncated() {
    let cut = ModelError::Cut("the answer was truncated".to_owned());
    assert_eq!(read(&events(&[vec![begin()], text(0, &["Hi"])].concat())), Err(cut.clone()));
    assert_eq!(read(""), Err(cut));
    let mut closed = [vec![begin()], text(0, &["Hi"]), end("end_turn")].concat();
    closed.pop();
    assert_eq!(
        stream(&closed),
        counted(Reply::with_text("Hi", Finish::Complete)),
        "the reason ends the reply"
    );
}

#[test]
fn a_document_is_read_like_a_stream() {
    let document = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}},
        {"type": "tool_use", "id": "u", "name": "now", "input": {}},
    ], "stop_reason": "tool_use", "usage": {"input_tokens": 10, "output_tokens": 7}});
    let reply = read(&document.to_string()).unwrap();
    let calls = vec![call("t", "ls", json!({"a": 1})), call("u", "now", json!({}))];
    let expect = Reply { reasoning: "Hm.".into(), ..Reply::with_text("Hi", Finish::Complete) };
    let expect = counted(expect.with_calls(calls));
    assert_eq!(Reply { parts: None, ..reply.clone() }, expect);
    assert_eq!(reply.parts.unwrap().parts["order"][0]["part"]["signature"], "s");
}

#[test]
fn text_around_a_provider_search_is_split_into_paragraphs() {
    let search = vec![
        open(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        close(1),
    ];
    let reply =
        message(&[text(0, &["I search."]), search, text(2, &["It ", "is."]), text(3, &[" So."])], "end_turn");
    assert_eq!(reply.text, "I search.\n\nIt is. So.");
    assert_eq!(reply.parts.unwrap().parts["order"][2], json!({"words": "\n\nIt is. So.".len()}));
    assert_eq!(message(&[text(0, &["a"]), thought(1, "Hm.", "sig"), text(2, &["b"])], "end_turn").text, "ab");
}

#[test]
fn a_turn_without_text_is_complete() {
    assert_eq!(message(&[], "end_turn"), counted(Reply::with_text("", Finish::Complete)));
}

#[test]
fn usage_of_an_advisor_model_is_not_counted() {
    let own =
        |input: u64, output: u64| json!({"type": "message", "input_tokens": input, "output_tokens": output});
    let advisor = json!({"type": "advisor_message", "model": "claude-other", "input_tokens": 1500, "output_tokens": 700});
    let told = |input: u64, output: u64, iterations: Value| {
        let usage = json!({"input_tokens": input, "output_tokens": output, "iterations": iterations});
        let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
        stream(&[
            json!({"type": "message_start", "message": {"id": "m"}}),
            end,
            json!({"type": "message_stop"}),
        ])
        .usage
    };
    assert_eq!(told(900, 40, json!([own(400, 15), advisor, own(500, 25)])), Some(Usage::plain(900, 40)));
    assert_eq!(
        told(500, 25, json!([own(400, 15), own(500, 25)])),
        Some(Usage::plain(900, 40)),
        "the sum is used"
    );
}

#[test]
fn the_usage_of_a_failed_reply_is_reported() {
    let (mut decoder, mut out) = (ReplyDecoder::for_model(&settings()), Vec::new());
    decoder.push(events(&[begin()]).as_bytes(), &mut out).unwrap();
    assert!(decoder.end(&mut out).is_err(), "it is truncated");
    assert!(matches!(out[..], [pudu_base::Delta::Usage(_)]), "{out:?}");
}

proptest! {
    #[test]
    fn arbitrary_streams_never_panic(lines in prop::collection::vec("(data: )?[{}\\[\\]\":,a-z_0-9]{0,40}\n\n", 0..6)) {
        let mut decoder = ReplyDecoder::for_model(&settings());
        for line in lines {
            let _ = testing::push(&mut decoder, line.as_bytes());
        }
        let _ = decoder.end(&mut Vec::new());
    }
}
