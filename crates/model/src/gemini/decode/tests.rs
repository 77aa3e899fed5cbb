//! Rows of the table of quirks for this wire, with bytes in the format of the providers.

use crate::{
    ModelSettings, ReplyDecoder, WireKind,
    testing::{self, Reply, call, garbled_call},
};
use proptest::prelude::*;
use pudu_base::{Finish, ModelError, Usage};
use serde_json::{Value, json};

fn settings() -> ModelSettings {
    ModelSettings::plain("gemini", WireKind::Gemini)
}

fn read(bytes: &str) -> Result<Reply, ModelError> {
    testing::read(&settings(), bytes.as_bytes())
}

/// Writes chunks like Google, with its line breaks.
fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn stream(chunks: &[Value]) -> Reply {
    read(&events(chunks)).unwrap()
}

/// A chunk with these parts.
#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}], "modelVersion": "gemini",
        "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}})
}

fn last(chunk_parts: Value, reason: &str) -> Value {
    let mut chunk = parts(chunk_parts);
    chunk["candidates"][0]["finishReason"] = json!(reason);
    chunk["usageMetadata"] =
        json!({"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17});
    chunk
}

fn words(text: &str) -> Value {
    parts(json!([{"text": text}]))
}

fn end(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 7, "totalTokenCount": 17}})
}

fn counted(reply: Reply) -> Reply {
    reply.with_usage(Usage::plain(10, 7))
}

fn hello() -> Reply {
    counted(Reply::with_text("Hello", Finish::Complete))
}

fn order(reply: &Reply) -> Value {
    reply.parts.as_ref().map(|parts| parts.parts["order"].clone()).unwrap_or_default()
}

#[test]
fn text_arrives_in_pieces() {
    assert_eq!(stream(&[words("Hel"), words("lo"), end("STOP")]), hello());
    assert_eq!(stream(&[words("Hel"), last(json!([{"text": "lo"}]), "STOP")]), hello());
    assert_eq!(stream(&[last(json!([{"text": "Hel"}, {"text": "lo"}]), "STOP")]), hello());
    let mut decoder = ReplyDecoder::for_model(&settings());
    assert_eq!(
        testing::push(&mut decoder, events(&[words("Hi")]).as_bytes()).unwrap().len(),
        1,
        "text is emitted immediately"
    );
}

#[test]
fn row_45_a_call_ends_with_stop_and_mostly_without_an_id() {
    let ls = |path: &str| json!({"functionCall": {"name": "ls", "args": {"path": path}}});
    let now = json!({"functionCall": {"name": "now"}});
    let with_id = json!({"functionCall": {"name": "ls", "args": null, "id": "g1"}});
    let reply = stream(&[
        words("Hello"),
        parts(json!([ls("/a"), ls("/b")])),
        parts(json!([now])),
        last(json!([with_id]), "STOP"),
    ]);
    let calls = vec![
        call("call-0", "ls", json!({"path": "/a"})),
        call("call-1", "ls", json!({"path": "/b"})),
        call("call-2", "now", json!({})),
        call("g1", "ls", json!({})),
    ];
    assert_eq!(Reply { parts: None, ..reply.clone() }, hello().with_calls(calls));
    let order_of_all = json!([{"words": 5}, {"call": "ls"}, {"call": "ls"}, {"call": "now"}, {"call": "ls", "extra": {"id": "g1"}}]);
    assert_eq!(order(&reply), order_of_all);
}

#[test]
fn row_45_signatures_on_calls_on_text_and_on_empty_text_are_kept_in_place() {
    let reply = stream(&[
        parts(json!([{"text": "Hel"}])),
        parts(json!([{"text": "lo", "thoughtSignature": "s1"}])),
        parts(
            json!([{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "s2"}, {"functionCall": {"name": "ls", "args": {}}}]),
        ),
        last(json!([{"text": "", "thoughtSignature": "s3"}]), "STOP"),
    ]);
    assert_eq!(reply.text, "Hello");
    assert_eq!(reply.parts.as_ref().unwrap().origin, "gemini localhost gemini");
    assert_eq!(
        order(&reply),
        json!([{"words": 3}, {"words": 2, "extra": {"thoughtSignature": "s1"}},
            {"call": "ls", "extra": {"thoughtSignature": "s2"}}, {"call": "ls"},
            {"words": 0, "extra": {"thoughtSignature": "s3"}}])
    );
    assert_eq!(
        stream(&[words("Hello"), last(json!([{"text": ""}]), "STOP")]),
        hello(),
        "plain text has no parts to keep"
    );
}

#[test]
fn row_45_parts_after_the_finish_reason_count() {
    let first = last(json!([{"text": "Hel"}]), "STOP");
    let bytes = events(&[first, last(json!([{"text": "lo", "thoughtSignature": "s"}]), "STOP")]);
    let reply = testing::read_open(&settings(), bytes.as_bytes()).unwrap();
    assert_eq!(Reply { parts: None, ..reply.clone() }, hello());
    assert_eq!(order(&reply)[1]["extra"]["thoughtSignature"], "s");
}

#[test]
fn row_45_a_stream_without_a_finish_reason_is_truncated() {
    let cut = ModelError::Cut("the answer was truncated".to_owned());
    assert_eq!(read(&events(&[words("Hello")])), Err(cut.clone()));
    assert_eq!(read(&events(&[words("Hello"), end("FINISH_REASON_UNSPECIFIED")])), Err(cut.clone()));
    assert_eq!(read(""), Err(cut));
}

#[test]
fn row_45_missing_and_unknown_fields_are_tolerated() {
    for strange in [
        json!({"candidates": [{"index": 0}]}),
        json!({"candidates": [{"content": {"role": "model"}, "index": 0}]}),
        json!({"candidates": [{"content": {}}]}),
        json!({"candidates": [{"content": {"parts": [{}]}}]}),
        json!({"candidates": []}),
        json!({"candidates": null, "usageMetadata": null}),
        json!({"promptFeedback": {"safetyRatings": [{"category": "OF_TOMORROW", "probability": "VAGUE"}]}}),
        json!({"candidates": [{"content": {"parts": [{"text": "no"}]}, "index": 1}]}),
        json!({"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "xx"}}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]}),
    ] {
        assert_eq!(stream(&[words("Hel"), strange.clone(), words("lo"), end("STOP")]), hello(), "{strange}");
    }
}

#[test]
fn row_45_each_reason_has_googles_meaning() {
    for (reason, finish) in [
        ("STOP", Finish::Complete),
        ("MAX_TOKENS", Finish::Length),
        ("SAFETY", Finish::Filtered),
        ("RECITATION", Finish::Filtered),
        ("PROHIBITED_CONTENT", Finish::Filtered),
        ("OTHER", Finish::Length),
        ("OF_TOMORROW", Finish::Length),
    ] {
        assert_eq!(stream(&[words("Hi"), end(reason)]), counted(Reply::with_text("Hi", finish)), "{reason}");
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"] {
        let error = read(&events(&[words("Hi"), end(reason)])).unwrap_err();
        assert!(matches!(error, ModelError::Garbled(_)) && error.retriable(), "{reason}: {error}");
    }
}

#[test]
fn row_45_an_empty_stop_is_an_empty_reply() {
    let empty = counted(Reply::with_text("", Finish::Complete));
    assert_eq!(stream(&[end("STOP")]), empty);
    assert_eq!(stream(&[last(json!([{"text": ""}]), "STOP")]), empty);
}

#[test]
fn a_prompt_that_is_refused_is_filtered() {
    let refused = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10}});
    let expect = Reply::with_text("", Finish::Filtered).with_usage(Usage::plain(10, 0));
    assert_eq!(stream(&[refused]), expect);
}

#[test]
fn row_45_and_7_usage_comes_in_parts_and_thoughts_are_beside_the_reply() {
    let told = |usage: Value| {
        let mut chunk = end("STOP");
        chunk["usageMetadata"] = usage;
        stream(&[words("Hi"), chunk]).usage
    };
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 30,
        "cachedContentTokenCount": 60, "totalTokenCount": 137});
    let all = Usage { input: 100, output: 37, cached: 60, cache_writes: 0, reasoning: 30 };
    assert_eq!(told(usage), Some(all));
    let thoughts = json!({"promptTokenCount": 100, "thoughtsTokenCount": 30, "totalTokenCount": 130});
    assert_eq!(told(thoughts), Some(Usage { reasoning: 30, ..Usage::plain(100, 30) }));
    assert_eq!(
        told(json!({"candidatesTokenCount": 3})),
        Some(Usage::plain(10, 3)),
        "the prompt was counted before"
    );
    let tools = json!({"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 1});
    assert_eq!(told(tools), Some(Usage::plain(15, 1)));
    let mut silent = end("STOP");
    silent.as_object_mut().unwrap().remove("usageMetadata");
    assert_eq!(stream(&[silent]).usage, None, "unknown usage is not zero");
}

#[test]
fn thoughts_are_not_text_and_signed_ones_are_sent_back_unchanged() {
    let chunks = [parts(json!([{"text": "Hm.", "thought": true}])), words("Hello"), end("STOP")];
    assert_eq!(stream(&chunks), Reply { reasoning: "Hm.".into(), ..hello() });
    let signed = json!({"text": "Hm.", "thought": true, "thoughtSignature": "s"});
    let reply = stream(&[parts(json!([signed])), words("Hello"), end("STOP")]);
    assert_eq!(order(&reply), json!([{"part": signed}, {"words": 5}]));
}

#[test]
fn code_run_by_the_provider_is_sent_back_unchanged() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1+1"}, "thoughtSignature": "s"});
    let outcome = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}});
    let reply = stream(&[parts(json!([code, outcome])), words("Hello"), end("STOP")]);
    assert_eq!(reply.text, "Hello");
    assert_eq!(order(&reply), json!([{"part": code}, {"part": outcome}, {"words": 5}]));
    let between =
        stream(&[words("I count."), parts(json!([code, outcome])), words("Two"), words("."), end("STOP")]);
    assert_eq!(between.text, "I count.\n\nTwo.", "text around it is split into paragraphs");
    assert_eq!(order(&between), json!([{"words": 8}, {"part": code}, {"part": outcome}, {"words": 6}]));
}

/// Decodes a call's pieces, one per chunk.
fn pieces(pieces: &[Value], reason: &str) -> Reply {
    let mut chunks: Vec<Value> = pieces.iter().map(|piece| parts(json!([{"functionCall": piece}]))).collect();
    chunks.push(end(reason));
    stream(&chunks)
}

#[test]
fn row_45_arguments_in_pieces_become_one_call() {
    let begin = json!({"name": "book", "id": "g1", "willContinue": true});
    let text = |path: &str, text: &str, more: bool| json!({"partialArgs": [{"jsonPath": path, "stringValue": text, "willContinue": more}], "willContinue": true});
    let reply = pieces(
        &[
            begin,
            text("$.city", "New ", true),
            text("$.city", "Delhi", true),
            text("$.city", "", false),
            json!({"partialArgs": [{"jsonPath": "$.rooms[1].beds", "numberValue": 2}, {"jsonPath": "$.rooms[0].sea", "boolValue": true},
                {"jsonPath": "$.note", "nullValue": "NULL_VALUE"}], "willContinue": true}),
            json!({}),
            json!({"name": "ls", "args": {"path": "/"}}),
        ],
        "STOP",
    );
    let book = json!({"city": "New Delhi", "rooms": [{"sea": true}, {"beds": 2}], "note": null});
    assert_eq!(reply.calls, vec![call("g1", "book", book), call("call-1", "ls", json!({"path": "/"}))]);
    let repeated = [
        json!({"name": "f", "partialArgs": [{"jsonPath": "$.city", "stringValue": "San"}], "willContinue": true}),
        json!({"name": "f", "args": {}, "partialArgs": [{"jsonPath": "$.city", "stringValue": " Jose"}], "willContinue": false}),
    ];
    assert_eq!(pieces(&repeated, "STOP").calls, vec![call("call-0", "f", json!({"city": "San Jose"}))]);
}

#[test]
fn row_45_calls_with_incomplete_arguments_are_never_made() {
    let open = json!({"name": "rm", "partialArgs": [{"jsonPath": "$.path", "stringValue": "/tm", "willContinue": true}], "willContinue": true});
    let cut = garbled_call("call-0", "rm", "{\"path\":\"/tm\"}");
    assert_eq!(pieces(std::slice::from_ref(&open), "MAX_TOKENS").calls, vec![cut.clone()]);
    assert_eq!(pieces(std::slice::from_ref(&open), "STOP").calls, vec![cut.clone()]);
    let complete = json!({"name": "rm", "args": {"path": "/x"}});
    assert_eq!(
        pieces(&[open, complete], "STOP").calls,
        vec![cut, call("call-1", "rm", json!({"path": "/x"}))]
    );
    let lost = json!({"name": "rm", "partialArgs": [{"jsonPath": "$.a[*]", "stringValue": "x"}]});
    assert_eq!(pieces(&[lost], "STOP").calls, vec![garbled_call("call-0", "rm", "{}")]);
    let list = json!({"name": "rm", "args": ["x"]});
    assert_eq!(pieces(&[list], "STOP").calls, vec![garbled_call("call-0", "rm", "[\"x\"]")]);
}

#[test]
fn an_error_within_or_instead_of_the_stream_is_reported() {
    let error = |code: u16, status: &str, said: &str| json!({"error": {"code": code, "message": said, "status": status}});
    let error_of = |error: &Value| {
        let inside = read(&events(&[words("Hi"), error.clone()])).unwrap_err();
        assert_eq!(read(&error.to_string()).unwrap_err(), inside, "as a document");
        assert_eq!(read(&json!([error]).to_string()).unwrap_err(), inside, "in a list");
        inside
    };
    assert!(matches!(error_of(&error(503, "UNAVAILABLE", "overloaded")), ModelError::Busy { .. }));
    assert!(matches!(error_of(&error(429, "RESOURCE_EXHAUSTED", "slow")), ModelError::Busy { .. }));
    assert!(matches!(error_of(&error(500, "INTERNAL", "oops")), ModelError::Failed(_)));
    assert!(matches!(error_of(&error(400, "INVALID_ARGUMENT", "no")), ModelError::Rejected(_)));
    assert!(matches!(read("data: {\"candidates\": 7}\n\n"), Err(ModelError::Cut(_))));
    assert!(matches!(read("data: {\"candidates\": [{\n\n"), Err(ModelError::Garbled(_))));
}

#[test]
fn a_list_of_chunks_or_one_document_is_read_like_a_stream() {
    let chunks = [words("Hel"), words("lo"), end("STOP")];
    assert_eq!(read(&json!(chunks).to_string()).unwrap(), hello());
    assert_eq!(read(&last(json!([{"text": "Hello"}]), "STOP").to_string()).unwrap(), hello());
}

#[test]
fn a_bare_error_in_the_stream_fails_the_reply_despite_a_finish_reason() {
    let error = json!({"error": {"code": 429, "message": "Resource has been exhausted.", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]}});
    let busy = ModelError::Busy {
        retry_after: Some(std::time::Duration::from_secs(7)),
        limited: true,
        detail: "HTTP 429: Resource has been exhausted.".into(),
    };
    // Older Vertex servers send the reason in each chunk.
    for reason in [Value::Null, json!("STOP")] {
        let mut chunk = words("Three ");
        chunk["candidates"][0]["finishReason"] = reason;
        for written in [error.to_string(), format!("{error:#}"), format!("[{error:#}\n]")] {
            let read = testing::read_open(&settings(), (events(&[chunk.clone()]) + &written).as_bytes());
            assert_eq!(read, Err(busy.clone()), "{written}");
        }
        let cut = events(&[chunk.clone()]) + "{\n  \"error\": {\n";
        assert!(matches!(testing::read_open(&settings(), cut.as_bytes()), Err(ModelError::Cut(_))));
    }
}

#[test]
fn an_end_marker_before_the_text_is_ignored() {
    let empty = last(json!([]), "STOP");
    let chunks = events(&[empty.clone(), empty.clone(), words("Hello"), empty.clone(), empty]);
    assert_eq!(testing::read_open(&settings(), chunks.as_bytes()), Ok(hello()));
    let bare = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 7}});
    assert_eq!(stream(&[words("Hello"), bare]).finish, Some(Finish::Complete));
}

#[test]
fn an_image_is_an_answer_and_omitted_media_are_not_an_error() {
    let png =
        json!([{"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "thoughtSignature": "s"}]);
    let thought = json!([{"thought": true, "inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]);
    let drawn = stream(&[parts(thought), parts(png), end("STOP")]);
    assert_eq!((drawn.images.len(), drawn.parts), (1, None), "an image in the thoughts is not an answer");
    let image = json!([{"inlineData": {"mimeType": "image/png", "data": "eA=="}}]);
    let (mut decoder, mut out) = (ReplyDecoder::for_model(&settings()), Vec::new());
    decoder.push(events(&[last(image.clone(), "STOP")]).as_bytes(), &mut out).unwrap();
    assert_eq!(decoder.end(&mut out), Err(ModelError::OnlyMedia));
    assert!(matches!(out[..], [pudu_base::Delta::Usage(_)]), "its usage counts: {out:?}");
    assert_eq!(
        stream(&[parts(image), words("Hello"), end("STOP")]),
        hello(),
        "text counts without the image"
    );
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

#[test]
fn signatures_are_bounded() {
    let part = json!({"text": "", "thoughtSignature": "x".repeat(4_000_000)});
    let chunk = json!({"candidates": [{"content": {"parts": [part]}, "index": 0}]});
    let mut decoder = ReplyDecoder::for_model(&settings());
    assert!((0..5).any(|_| testing::push(&mut decoder, format!("data: {chunk}\n\n").as_bytes()).is_err()));
}
