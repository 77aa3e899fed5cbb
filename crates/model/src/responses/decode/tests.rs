//! Row 46 of the table of quirks, with bytes in the format of the providers.

use super::*;
use crate::{
    WireKind,
    testing::{self, Reply, call},
};

fn settings() -> ModelSettings {
    ModelSettings::plain("m", WireKind::Responses)
}

fn read(events: &[Value]) -> Result<Reply, ModelError> {
    let events: String =
        events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", text(event, "type"))).collect();
    testing::read(&settings(), (events + "data: [DONE]\n\n").as_bytes())
}

fn said(delta: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "any", "delta": delta})
}

fn end(kind: &str, response: &Value) -> Value {
    json!({"type": format!("response.{kind}"), "response": response})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg", "content": [{"type": "output_text", "text": text}]})
}

#[test]
fn row_46_the_end_may_have_all_items_or_none() {
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}});
    let expect = Reply::with_text("Hello", Finish::Complete).with_usage(Usage {
        cached: 4,
        reasoning: 2,
        ..Usage::plain(9, 5)
    });
    for output in [json!([message("Hello")]), json!([]), Value::Null] {
        let response = json!({"status": "completed", "output": output, "usage": usage, "error": null});
        let events = [json!({"type": "keepalive"}), said("Hel"), said("lo"), end("completed", &response)];
        assert_eq!(read(&events), Ok(expect.clone()), "{output}");
    }
    let document = json!({"object": "response", "status": "completed", "output": [message("Hello")],
        "usage": usage});
    assert_eq!(testing::read(&settings(), document.to_string().as_bytes()), Ok(expect));
}

#[test]
fn row_46_items_are_identified_by_index_and_thoughts_are_kept() {
    let thought = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"});
    let done = json!({"type": "function_call", "id": "fc_2", "call_id": "c", "name": "f",
        "arguments": "{\"a\":1}"});
    let added = json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": ""});
    let at = |kind: &str, index: u64, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item});
    let piece = json!({"type": "response.function_call_arguments.delta", "output_index": 1,
        "item_id": "fc_3", "delta": "{\"a\":"});
    let response = json!({"status": "completed", "usage": null, "output": [done]});
    let events = [
        at("done", 0, &thought),
        at("added", 1, &added),
        piece,
        at("done", 1, &done),
        end("completed", &response),
    ];
    let reply = read(&events).unwrap();
    assert_eq!(reply.calls, [call("c", "f", json!({"a": 1}))]);
    assert_eq!(reply.parts.unwrap().parts, json!({ITEMS: [thought, done]}));
}

#[test]
fn row_46_the_status_determines_the_end_and_a_truncated_stream_is_an_error() {
    for (reason, expect) in [
        (json!("max_output_tokens"), Finish::Length),
        (json!("content_filter"), Finish::Filtered),
        (Value::Null, Finish::Length),
    ] {
        let response = json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
        assert_eq!(read(&[said("a"), end("incomplete", &response)]), Ok(Reply::with_text("a", expect)));
    }
    assert_eq!(read(&[said("a")]), Err(cut()));
    let failed = json!({"status": "failed", "error": {"code": "context_length_exceeded", "message": "x"}});
    assert!(matches!(read(&[end("failed", &failed)]), Err(ModelError::TooLong(_))));
    let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"});
    assert!(matches!(read(&[said("a"), error]), Err(ModelError::Busy { .. })));
}

fn call_item(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": arguments})
}

fn item(kind: &str, at: u64, item: &Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": at, "item": item})
}

fn completed(output: &Value) -> Value {
    end("completed", &json!({"status": "completed", "output": output}))
}

#[test]
fn row_46_a_call_that_stays_incomplete_is_never_made() {
    let calls = |events: &[Value]| read(events).unwrap().calls;
    let added = item("added", 0, &call_item(""));
    assert_eq!(calls(&[added.clone(), completed(&json!([]))]), [testing::garbled_call("c", "f", "")]);
    let complete = call("c", "f", json!({}));
    assert_eq!(
        calls(&[added.clone(), item("done", 0, &call_item("")), completed(&json!([]))]),
        std::slice::from_ref(&complete)
    );
    assert_eq!(
        calls(&[added.clone(), completed(&json!([call_item("{}")]))]),
        std::slice::from_ref(&complete)
    );
    let done = json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{}"});
    assert_eq!(calls(&[added.clone(), done, completed(&Value::Null)]), [complete]);
    let cut = end(
        "incomplete",
        &json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    );
    let piece =
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a\": 1"});
    let reply = read(&[added, piece, cut]).unwrap();
    assert_eq!(
        (reply.calls, reply.finish),
        (vec![testing::garbled_call("c", "f", "{\"a\": 1")], Some(Finish::Length))
    );
}

#[test]
fn row_46_items_only_in_the_final_list_count_once() {
    let [first, second] = ["a", "b"].map(|id| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "f", "arguments": "{}"})
    });
    let expect = [call("a", "f", json!({})), call("b", "f", json!({}))];
    for list in [json!([first, second]), json!([second, first])] {
        let reply = read(&[item("added", 0, &first), item("done", 0, &first), completed(&list)]).unwrap();
        assert_eq!(reply.calls, expect, "{list}");
    }
    let said_before =
        [said("Hello"), completed(&json!([{"type": "reasoning", "id": "rs"}, message("Hello")]))];
    assert_eq!(
        read(&said_before),
        Ok(Reply::with_text("Hello", Finish::Complete)),
        "even if the indexes differ"
    );
}

#[test]
fn row_46_text_and_refusals_are_read_in_each_form() {
    let done = json!({"type": "response.output_text.done", "output_index": 0, "text": "Hello"});
    assert_eq!(
        read(&[done.clone(), completed(&Value::Null)]),
        Ok(Reply::with_text("Hello", Finish::Complete))
    );
    assert_eq!(
        read(&[said("Hello"), done, completed(&Value::Null)]),
        Ok(Reply::with_text("Hello", Finish::Complete))
    );
    let refusal = json!({"type": "response.refusal.delta", "output_index": 0, "delta": "No."});
    assert_eq!(read(&[refusal, completed(&Value::Null)]), Ok(Reply::with_text("No.", Finish::Filtered)));
    let thought = json!({"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"});
    let expect = Reply { reasoning: "hm".into(), ..Reply::with_text("Hello", Finish::Complete) };
    assert_eq!(read(&[thought, said("Hello"), completed(&Value::Null)]), Ok(expect));
}

#[test]
fn messages_and_thoughts_of_one_response_are_paragraphs() {
    let said_at = |at: u64, delta: &str| json!({"type": "response.output_text.delta", "output_index": at, "content_index": 0, "delta": delta});
    let expect = Reply::with_text("I look first.\n\nIt is at two.", Finish::Complete);
    let events = [
        said_at(0, "I look "),
        said_at(0, "first."),
        item("done", 0, &message("I look first.")),
        said_at(1, "It is "),
        said_at(1, "at two."),
        item("done", 1, &message("It is at two.")),
        completed(&json!([message("I look first."), message("It is at two.")])),
    ];
    assert_eq!(read(&events), Ok(expect.clone()));
    assert_eq!(read(&[completed(&json!([message("I look first."), message("It is at two.")]))]), Ok(expect));
    let thought = |at: u64, delta: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": at, "summary_index": 0, "delta": delta});
    let part =
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1});
    let events = [
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        thought(0, "one"),
        part,
        thought(0, "two"),
        thought(1, "three"),
        said_at(2, "Hi"),
        completed(&Value::Null),
    ];
    assert_eq!(read(&events).unwrap().reasoning, "one\n\ntwo\n\nthree");
    let reasoning = json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "one"},
        {"type": "summary_text", "text": "two"}]});
    let reply = read(&[completed(&json!([reasoning, message("Hi")]))]).unwrap();
    assert_eq!((reply.reasoning.as_str(), reply.text.as_str()), ("one\n\ntwo", "Hi"));
}

#[test]
fn row_46_a_call_may_lack_its_beginning_and_have_another_index_at_the_end() {
    let piece = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"});
    let expected = [call("c", "f", json!({}))];
    let events = [piece.clone(), item("done", 0, &call_item("{}")), completed(&json!([]))];
    assert_eq!(read(&events).unwrap().calls, expected, "the name and ID arrive at the end");
    let thought = json!({"type": "reasoning", "id": "rs", "summary": []});
    let list = json!([thought, call_item("{}")]);
    let events = [item("added", 0, &call_item("")), piece, completed(&list)];
    assert_eq!(read(&events).unwrap().calls, expected, "it is one call, at either index");
}

#[test]
fn row_46_plain_thoughts_are_sent_back_once() {
    let thought = |id: &str| {
        json!({"type": "reasoning", "id": id, "summary": [],
            "content": [{"type": "reasoning_text", "text": "hm"}]})
    };
    let list = json!([thought("another"), call_item("{}")]);
    let events = [item("done", 0, &thought("rs")), item("done", 1, &call_item("{}")), completed(&list)];
    let parts = read(&events).unwrap().parts.unwrap().parts;
    assert_eq!(parts, json!({ITEMS: [thought("rs"), call_item("{}")]}));
    let empty = json!({"type": "reasoning", "id": "rs", "summary": [], "content": []});
    assert_eq!(read(&[item("done", 0, &empty), completed(&json!([]))]).unwrap().parts, None);
}

#[test]
fn row_46_an_end_without_a_response_is_classified_by_its_name() {
    let failed = json!({"type": "response.failed"});
    assert!(matches!(read(&[said("a"), failed]), Err(ModelError::Failed(_))));
    let cut = json!({"type": "response.incomplete", "response": null});
    assert_eq!(read(&[said("a"), cut]), Ok(Reply::with_text("a", Finish::Length)));
}

#[test]
fn row_7_cache_writes_and_separate_thoughts_are_counted() {
    let told = |usage: Value| {
        read(&[said("a"), end("completed", &json!({"status": "completed", "usage": usage}))]).unwrap().usage
    };
    let written = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
        "output_tokens": 5, "total_tokens": 14});
    assert_eq!(told(written), Some(Usage { cached: 2, cache_writes: 4, ..Usage::plain(9, 5) }));
    let beside = json!({"input_tokens": 9, "output_tokens": 5, "total_tokens": 17,
        "output_tokens_details": {"reasoning_tokens": 3}});
    assert_eq!(told(beside), Some(Usage { reasoning: 3, ..Usage::plain(9, 8) }));
}

#[test]
fn an_image_is_emitted_once_and_not_sent_back() {
    let image = json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo="});
    let thought = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []});
    let events = [item("done", 0, &thought), item("done", 1, &image), completed(&json!([thought, image]))];
    let reply = read(&events).unwrap();
    assert_eq!(reply.images, [b"\x89PNG\r\n\x1a\n".to_vec()]);
    assert!(!reply.parts.unwrap().parts.to_string().contains("image_generation_call"));
    let failed = json!({"type": "image_generation_call", "id": "ig_1", "status": "failed", "result": null});
    assert_eq!(
        read(&[item("done", 0, &failed), item("done", 1, &message("Sorry")), completed(&json!([]))])
            .unwrap()
            .text,
        "Sorry"
    );
}

#[test]
fn stored_items_are_bounded_and_large_indexes_are_refused() {
    let high = item("done", u64::MAX, &message("a"));
    let other = json!({"type": "web_search_call", "id": "ws"});
    let list = completed(&json!([other, other]));
    assert_eq!(read(&[item("done", 0, &message("a")), high, list]).unwrap().text, "a\n\na");
    let mut decoder = crate::ReplyDecoder::for_model(&settings());
    let large = |at: u64| {
        let item = item("done", at, &json!({"type": "web_search_call", "action": "x".repeat(4_000_000)}));
        format!("data: {item}\n\n")
    };
    assert!((0..5).any(|at| testing::push(&mut decoder, large(at).as_bytes()).is_err()));
}
