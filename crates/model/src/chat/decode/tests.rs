//! Rows of the table of quirks for this wire, with bytes in the format of the providers.

use crate::{
    Dialect, ModelSettings, WireKind,
    testing::{self, Reply, call, garbled_call},
    think::ThinkHabit,
};
use proptest::prelude::*;
use pudu_base::{Delta, Finish, ModelError, Usage};
use serde_json::{Value, json};

fn settings() -> ModelSettings {
    let dialect = Dialect { thoughts: Some("reasoning_content"), ..Dialect::PLAIN };
    ModelSettings { dialect, ..ModelSettings::plain("m", WireKind::Chat) }
}

fn read(bytes: &str) -> Result<Reply, ModelError> {
    testing::read(&settings(), bytes.as_bytes())
}

/// Decodes a stream of chunks with OpenAI's end marker.
fn stream(chunks: &[Value]) -> Reply {
    read(&(events(chunks) + "data: [DONE]\n\n")).unwrap()
}

fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "reads better at the callers")]
fn delta(delta: Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn words(text: &str) -> Value {
    delta(json!({"content": text}))
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Option<&str>) -> Value {
    let mut piece = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    if let Some(index) = index {
        piece["index"] = json!(index);
    }
    delta(json!({"tool_calls": [piece]}))
}

fn usage(input: u64, output: u64) -> Value {
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

fn hello() -> Reply {
    Reply::with_text("Hello", Finish::Complete)
}

#[test]
fn row_1_and_2_a_first_chunk_without_choices_and_a_last_one_with_the_usage() {
    let filter = json!({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
    let last = json!({"choices": [], "usage": usage(3, 2)});
    let reply = stream(&[
        filter,
        delta(json!({"role": "assistant", "content": ""})),
        words("Hello"),
        end("stop"),
        last,
    ]);
    assert_eq!(reply, hello().with_usage(Usage::plain(3, 2)));
}

#[test]
fn row_3_usage_may_accompany_the_finish_reason() {
    let mut last = end("stop");
    last["usage"] = usage(3, 2);
    assert_eq!(stream(&[words("Hello"), last]), hello().with_usage(Usage::plain(3, 2)));
}

#[test]
fn row_4_and_5_repeated_usage_counts_once() {
    let with = |mut chunk: Value, output: u64| {
        chunk["usage"] = usage(7, output);
        chunk
    };
    let groq = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "x_groq": {"id": "req_0", "usage": usage(7, 3)}, "usage": usage(7, 3)});
    let again = json!({"choices": [], "usage": usage(7, 3)});
    assert_eq!(stream(&[words("Hello"), groq, again]), hello().with_usage(Usage::plain(7, 3)));
    let cumulative = [with(words("Hel"), 1), with(words("lo"), 2), with(end("stop"), 3)];
    assert_eq!(stream(&cumulative), hello().with_usage(Usage::plain(7, 3)));
}

#[test]
fn kimi_reports_usage_in_the_choice() {
    let mut last = end("stop");
    last["choices"][0]["usage"] = usage(3, 2);
    assert_eq!(stream(&[words("Hello"), last]), hello().with_usage(Usage::plain(3, 2)));
}

#[test]
fn row_6_without_usage_the_cost_is_unknown() {
    assert_eq!(stream(&[words("Hello"), end("stop")]).usage, None);
}

#[test]
fn row_7_cached_and_thought_tokens_are_counted_the_same_for_all() {
    let all = Usage { input: 100, output: 20, cached: 60, cache_writes: 0, reasoning: 5 };
    for (told, expect) in [
        (
            json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": {"reasoning_tokens": 5}}),
            all,
        ),
        (
            json!({"prompt_tokens": 100, "completion_tokens": 15, "total_tokens": 120, "cached_tokens": 60,
                "completion_tokens_details": {"reasoning_tokens": 5}}),
            all,
        ),
        (
            json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 60}),
            Usage { reasoning: 0, ..all },
        ),
        (
            json!({"prompt_tokens": 10, "completion_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 40}),
            Usage { input: 110, cache_writes: 40, reasoning: 0, ..all },
        ),
        // Grok on Azure excludes the cached part from the prompt and from the total.
        (
            json!({"prompt_tokens": 40, "completion_tokens": 6, "total_tokens": 46,
                "prompt_tokens_details": {"cached_tokens": 128}}),
            Usage { cached: 128, ..Usage::plain(168, 6) },
        ),
        // Others include it only in the total.
        (
            json!({"prompt_tokens": 40, "completion_tokens": 6, "total_tokens": 66,
                "prompt_tokens_details": {"cached_tokens": 20}}),
            Usage { cached: 20, ..Usage::plain(60, 6) },
        ),
        // Mistral counts audio separately from the prompt, OpenAI within it.
        (
            json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 263,
                "prompt_tokens_details": {"audio_tokens": 250, "cached_tokens": 0}}),
            Usage::plain(259, 4),
        ),
        (
            json!({"prompt_tokens": 259, "completion_tokens": 4, "total_tokens": 263,
                "prompt_tokens_details": {"audio_tokens": 250}}),
            Usage::plain(259, 4),
        ),
        (
            json!({"prompt_tokens": null, "completion_tokens": 1, "prompt_tokens_details": null}),
            Usage::plain(0, 1),
        ),
    ] {
        let reply = stream(&[words("Hello"), end("stop"), json!({"choices": [], "usage": told})]);
        assert_eq!(reply.usage, Some(expect), "{told}");
    }
}

#[test]
fn row_8_and_9_repeated_finish_reasons_and_changing_ids_are_ignored() {
    let mut other = words("lo");
    other["id"] = json!("another");
    assert_eq!(stream(&[words("Hel"), other, end("stop"), end("stop")]), hello());
}

#[test]
fn row_10_and_11_comments_and_other_line_ends_are_read() {
    let text = events(&[words("Hello"), end("stop")]).replace("\n", "\r\n");
    assert_eq!(
        read(&format!(": OPENROUTER PROCESSING\r\n\r\n{text}: hm\r\n\r\ndata: [DONE]\r\n\r\n")),
        Ok(hello())
    );
}

#[test]
fn row_12_and_13_the_marker_may_be_missing_and_later_data_is_ignored() {
    assert_eq!(read(&events(&[words("Hello"), end("stop")])), Ok(hello()));
    let text = events(&[words("Hello"), end("stop")]);
    assert_eq!(
        read(&format!("{text}data: [DONE]\n\n{}", events(&[words("more"), json!({"choices": []})]))),
        Ok(hello())
    );
}

#[test]
fn row_14_a_document_is_read_whatever_the_header_says() {
    let document = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}], "usage": usage(3, 2)});
    assert_eq!(read(&format!("{document:#}")), Ok(hello().with_usage(Usage::plain(3, 2))));
    let without = json!({"choices": [{"message": {"content": "Hello"}}]});
    assert_eq!(read(&without.to_string()), Ok(hello()));
    let error = json!([{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]);
    assert!(matches!(read(&error.to_string()), Err(ModelError::Busy { .. })));
}

#[test]
fn row_15_an_error_in_a_field_of_that_name_is_read() {
    let text = "error: {\"code\":400,\"message\":\"request (9000 tokens) exceeds the available context size\",\"type\":\"exceed_context_size_error\"}\n\n";
    assert!(matches!(read(text), Err(ModelError::TooLong(_))));
}

#[test]
fn row_16_an_error_inside_a_stream_has_its_own_class() {
    let of = |error: Value| read(&events(&[words("Hel"), json!({"error": error})])).unwrap_err();
    assert!(matches!(of(json!({"message": "over", "code": 429})), ModelError::Busy { .. }));
    assert!(matches!(of(json!({"message": "x", "type": "overloaded_error"})), ModelError::Busy { .. }));
    assert!(matches!(
        of(json!({"message": "maximum context length is 8", "code": 400})),
        ModelError::TooLong(_)
    ));
    assert!(matches!(
        of(json!({"message": "failed", "code": "tool_use_failed", "type": "invalid_request_error"})),
        ModelError::Garbled(_)
    ));
    assert!(matches!(of(json!("boom")), ModelError::Failed(_)));
    let vllm = json!({"object": "error", "message": "no", "type": "BadRequestError", "code": 400});
    assert!(matches!(read(&events(&[vllm])), Err(ModelError::Rejected(_))));
    let minimax =
        json!({"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}});
    assert!(matches!(read(&events(&[minimax])), Err(ModelError::Quota(_))));
    let fine = json!({"base_resp": {"status_code": 0, "status_msg": ""}, "choices": []});
    assert_eq!(stream(&[words("Hello"), end("stop"), fine]), hello());
    assert!(matches!(
        read("event: error\ndata: {\"message\":\"x\",\"code\":503}\n\n"),
        Err(ModelError::Busy { .. })
    ));
    let in_a_cut_event = "data: {\"choices\":[{\"delta\":{\"cont\nevent: error\ndata: {\"error\":{\"message\":\"Please try again in 7s\",\"code\":429}}\n\n";
    let wait = std::time::Duration::from_secs(7);
    assert!(
        matches!(read(in_a_cut_event), Err(ModelError::Busy { retry_after: Some(found), .. }) if found == wait)
    );
}

#[test]
fn row_17_no_finish_reason_is_an_end_only_with_the_marker() {
    assert_eq!(stream(&[words("Hello")]), hello());
    assert!(matches!(read(&events(&[words("Hello")])), Err(ModelError::Cut(_))));
}

#[test]
fn row_18_an_unknown_finish_reason_is_not_a_complete_answer() {
    assert_eq!(stream(&[words("Hel"), end("sensitive")]), Reply::with_text("Hel", Finish::Filtered));
    assert!(matches!(read(&events(&[words("Hel"), end("network_error")])), Err(ModelError::Cut(_))));
    assert!(matches!(read(&events(&[end("model_context_window_exceeded")])), Err(ModelError::TooLong(_))));
}

#[test]
fn row_19_an_empty_finish_reason_is_none() {
    let mut chunk = words("Hel");
    chunk["choices"][0]["finish_reason"] = json!("");
    assert!(
        matches!(read(&events(&[chunk.clone()])), Err(ModelError::Cut(_))),
        "a truncated stream is reported as truncated"
    );
    assert_eq!(stream(&[chunk, words("lo"), end("stop")]), hello());
}

#[test]
fn row_20_to_22_calls_and_text_may_arrive_complete_with_the_finish_reason() {
    let mut last = piece(Some(0), Some("a"), Some("ls"), Some("{\"path\":\"/mnt\"}"));
    last["choices"][0]["finish_reason"] = json!("tool_calls");
    let expect =
        Reply::with_text("", Finish::Complete).with_calls(vec![call("a", "ls", json!({"path": "/mnt"}))]);
    assert_eq!(stream(&[last]), expect);
    let mut last = words("Hello");
    last["choices"][0]["finish_reason"] = json!("stop");
    assert_eq!(stream(&[last]), hello());
}

#[test]
fn row_23_and_24_calls_without_or_with_the_same_index_stay_apart() {
    let both = || vec![call("a", "ls", json!({"n": 1})), call("b", "ls", json!({"n": 2}))];
    for index in [None, Some(0)] {
        let apart = [
            piece(index, Some("a"), Some("ls"), Some("{\"n\":1}")),
            piece(index, Some("b"), Some("ls"), Some("{\"n\":2}")),
            end("tool_calls"),
        ];
        assert_eq!(stream(&apart).calls, both(), "{index:?}");
    }
    let together = delta(json!({"tool_calls": [
        {"id": "a", "function": {"name": "ls", "arguments": "{\"n\":1}"}},
        {"id": "b", "function": {"name": "ls", "arguments": "{\"n\":2}"}}
    ]}));
    assert_eq!(stream(&[together, end("tool_calls")]).calls, both());
    let nothing = [
        piece(Some(0), Some("a"), Some("ls"), Some("")),
        piece(Some(0), Some("b"), Some("pwd"), Some("")),
        end("tool_calls"),
    ];
    assert_eq!(stream(&nothing).calls, [call("a", "ls", json!({})), call("b", "pwd", json!({}))]);
}

#[test]
fn row_25_and_26_ids_and_names_may_be_missing_empty_or_repeated() {
    for (id, name) in [
        (None, None),
        (Some(""), Some("")),
        (Some("a"), Some("ls")),
        (Some("new"), None),
        (Some("new"), Some("ls")),
    ] {
        let reply = stream(&[
            piece(Some(0), Some("a"), Some("ls"), Some("{\"n\"")),
            piece(Some(0), id, name, Some(":1}")),
            end("tool_calls"),
        ]);
        assert_eq!(reply.calls, [call("a", "ls", json!({"n": 1}))], "{id:?} {name:?}");
        // The first piece often has no arguments yet.
        let reply = stream(&[
            piece(Some(0), Some("a"), Some("ls"), Some("")),
            piece(Some(0), id, name, Some("{\"n\":1}")),
            end("tool_calls"),
        ]);
        assert_eq!(reply.calls, [call("a", "ls", json!({"n": 1}))], "{id:?} {name:?}, empty at first");
    }
    let without =
        [piece(None, None, Some("ls"), Some("{}")), piece(None, None, Some("pwd"), Some("{}")), end("stop")];
    assert_eq!(stream(&without).calls, [call("call-0", "ls", json!({})), call("call-1", "pwd", json!({}))]);
}

#[test]
fn row_27_calls_may_be_interleaved() {
    let reply = stream(&[
        piece(Some(0), Some("a"), Some("ls"), Some("{\"pa")),
        piece(Some(1), Some("b"), Some("bash"), Some("")),
        piece(Some(0), None, None, Some("th\": \"/mnt\"}")),
        piece(Some(1), None, None, Some("{oops")),
        end("tool_calls"),
    ]);
    assert_eq!(reply.calls, [call("a", "ls", json!({"path": "/mnt"})), garbled_call("b", "bash", "{oops")]);
}

#[test]
fn row_28_and_29_null_arguments_mean_none() {
    let of = |arguments| {
        stream(&[
            piece(Some(0), Some("a"), Some("ls"), Some(arguments)),
            piece(Some(0), None, None, None),
            end("tool_calls"),
        ])
        .calls
    };
    for arguments in ["", "null", "{}", " null "] {
        assert_eq!(of(arguments), [call("a", "ls", json!({}))], "{arguments:?}");
    }
    let object = delta(
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"n": 1}}}]}),
    );
    assert_eq!(stream(&[object, end("tool_calls")]).calls, [call("a", "ls", json!({"n": 1}))]);
    assert_eq!(of("[1]"), [garbled_call("a", "ls", "[1]")]);
}

#[test]
fn row_30_to_32_a_truncated_call_is_never_made() {
    let of =
        |arguments, reason| stream(&[piece(Some(0), Some("a"), Some("ls"), Some(arguments)), end(reason)]);
    let cut = |text| Reply::with_text("", Finish::Length).with_calls(vec![garbled_call("a", "ls", text)]);
    assert_eq!(of("", "length"), cut(""), "its arguments are unknown");
    assert_eq!(of("{\"path\": \"/m", "length"), cut("{\"path\": \"/m"));
    for reason in ["tool_calls", "stop"] {
        assert_eq!(of("{\"path\": \"/m", reason).calls, [garbled_call("a", "ls", "{\"path\": \"/m")]);
    }
    let first_is_whole = [
        piece(Some(0), Some("a"), Some("ls"), Some("")),
        piece(Some(1), Some("b"), Some("ls"), Some("")),
        end("length"),
    ];
    assert_eq!(stream(&first_is_whole).calls, [call("a", "ls", json!({})), garbled_call("b", "ls", "")]);
}

#[test]
fn row_33_a_refusal_is_shown_and_counts_as_one() {
    let refusal = |text: &str| delta(json!({"content": null, "refusal": text}));
    assert_eq!(
        stream(&[refusal("I can"), refusal("not."), end("stop")]),
        Reply::with_text("I cannot.", Finish::Filtered)
    );
}

#[test]
fn row_34_and_35_thoughts_are_read_in_each_form_and_are_not_text() {
    let blocks =
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}));
    let text = delta(json!({"content": [{"type": "text", "text": "Hello"}]}));
    let thought = Reply { reasoning: "hm".into(), ..hello() };
    assert_eq!(stream(&[blocks, text, end("stop")]), thought);
    for field in ["reasoning", "reasoning_content"] {
        assert_eq!(
            stream(&[delta(json!({field: "hm", "content": null})), words("Hello"), end("stop")]),
            thought
        );
    }
    let chunks = events(&[delta(json!({"reasoning": "hm"})), words("Hello"), end("stop")]);
    let plain = testing::read(&ModelSettings::plain("m", WireKind::Chat), chunks.as_bytes());
    assert_eq!(plain, Ok(thought), "whether or not they are sent back");
}

#[test]
fn row_36_signed_and_encrypted_thoughts_are_kept_unchanged() {
    let details = |details: Value| delta(json!({"reasoning_details": details}));
    let reply = stream(&[
        details(
            json!([{"type": "reasoning.text", "text": "a", "format": "anthropic-claude-v1", "index": 0}]),
        ),
        details(
            json!([{"type": "reasoning.text", "text": "b", "format": "anthropic-claude-v1", "index": 0}]),
        ),
        details(
            json!([{"type": "reasoning.text", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}]),
        ),
        details(json!([{"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1}])),
        words("Hello"),
        end("stop"),
    ]);
    let provider_parts = reply.parts.unwrap();
    assert_eq!(provider_parts.origin, "chat localhost m");
    let expect = json!({"reasoning_details": [
        {"type": "reasoning.text", "text": "ab", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "rs_1", "index": 1}
    ]});
    assert_eq!(provider_parts.parts, expect);
}

#[test]
fn row_36_thoughts_may_arrive_in_many_but_limited_pieces() {
    let piece = |text: &str| {
        delta(json!({"reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]}))
    };
    let mut decoder = crate::ReplyDecoder::for_model(&settings());
    for _ in 0..12_000 {
        testing::push(&mut decoder, events(&[piece("hm ")]).as_bytes()).unwrap();
    }
    let large = events(&[piece(&"x".repeat(1024 * 1024))]);
    assert!((0..17).any(|_| testing::push(&mut decoder, large.as_bytes()).is_err()));
}

#[test]
fn row_38_the_signature_of_a_call_is_kept_with_it() {
    let signed = delta(
        json!({"tool_calls": [{"index": 0, "id": "a", "extra_content": {"google": {"thought_signature": "c2ln"}},
        "function": {"name": "ls", "arguments": "{\"n\":1}"}}]}),
    );
    let reply = stream(&[signed, piece(Some(1), Some("b"), Some("ls"), Some("{}")), end("tool_calls")]);
    let expect = json!({"calls": [{"name": "ls", "args": {"n": 1}, "part": {"google": {"thought_signature": "c2ln"}}}]});
    assert_eq!(reply.parts.unwrap().parts, expect);
}

#[test]
fn row_39_thoughts_opened_in_the_prompt_are_not_text_either() {
    for mark in ["\n</think>\n\n", "</think>\n"] {
        let pieces = ["Hm, ", "a deer", mark, "Hel", "lo"].map(words);
        assert_eq!(stream(&[&pieces[..], &[end("stop")]].concat()), hello(), "{mark:?}");
    }
    let habit = ThinkHabit::default();
    for is_held in [false, true] {
        let mut decoder = crate::ReplyDecoder::with_habit(&settings(), &habit);
        let early = testing::push(&mut decoder, events(&[words("Hm, a deer")]).as_bytes()).unwrap();
        assert_eq!(early.is_empty(), is_held, "the second time they are held back: {early:?}");
        let rest = events(&[words("\n</think>\n\nHello"), end("stop")]);
        let said = testing::push(&mut decoder, rest.as_bytes()).unwrap();
        assert_eq!(said.last(), Some(&Delta::Text("Hello".into())));
    }
    let mut decoder = crate::ReplyDecoder::with_habit(&settings(), &habit);
    testing::push(&mut decoder, events(&[delta(json!({"reasoning_content": "hm"}))]).as_bytes()).unwrap();
    let said = testing::push(&mut decoder, events(&[words("Hello")]).as_bytes()).unwrap();
    assert_eq!(said, [Delta::Text("Hello".into())], "thoughts that were sent separately are not in the text");
}

#[test]
fn row_39_thoughts_in_the_text_are_not_text() {
    let reply = stream(&[words("<thi"), words("nk>hm</think>\n\nHel"), words("lo"), end("stop")]);
    assert_eq!(reply, Reply { reasoning: "hm".into(), ..hello() });
}

#[test]
fn row_40_calls_in_text_are_parsed_only_for_engines_that_write_them() {
    let text = "<tool_call><function=ls><parameter=path>/mnt</parameter></function></tool_call>";
    let chunks = events(&[words("Look: "), words(text), end("stop")]);
    let shown = Reply::with_text(&format!("Look: {text}"), Finish::Complete);
    assert_eq!(read(&chunks), Ok(shown), "nobody guesses");
    let dialect = Dialect { text_calls: true, ..Dialect::PLAIN };
    let mindie = ModelSettings { dialect, ..settings() };
    let expect = Reply::with_text("Look: ", Finish::Complete).with_calls(vec![call(
        "call-0",
        "ls",
        json!({"path": "/mnt"}),
    )]);
    assert_eq!(testing::read(&mindie, chunks.as_bytes()), Ok(expect));
}

#[test]
fn a_giant_reply_is_refused() {
    let many: Vec<Value> = (0..200).map(|n| piece(Some(n), Some("a"), Some("ls"), Some("{}"))).collect();
    let mut decoder = crate::ReplyDecoder::for_model(&settings());
    assert!(matches!(testing::push(&mut decoder, events(&many).as_bytes()), Err(ModelError::Garbled(_))));
    assert!(matches!(read("data: <html>\n\n"), Err(ModelError::Garbled(_))));
}

#[test]
fn an_error_that_repeats_the_finish_reason_is_ignored_and_its_usage_counts() {
    let thought = delta(json!({"content": "", "reasoning": "We should count"}));
    let error = |code: u64| {
        json!({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": null}],
            "error": {"code": code, "message": "Token limit reached"}, "usage": usage(61, 9)})
    };
    let expect = Reply { reasoning: "We should count".into(), ..Reply::with_text("", Finish::Length) };
    assert_eq!(stream(&[thought, end("length"), error(400)]), expect.with_usage(Usage::plain(61, 9)));
    // Otherwise the error counts, together with the usage in it.
    for chunks in [vec![words("Hel"), error(400)], vec![words("Hel"), end("stop"), error(400)]] {
        let (mut decoder, mut out) = (crate::ReplyDecoder::for_model(&settings()), Vec::new());
        let read = decoder.push(events(&chunks).as_bytes(), &mut out);
        assert_eq!(read, Err(ModelError::Rejected("HTTP 400: Token limit reached".into())));
        assert_eq!(out, [Delta::Text("Hel".into()), Delta::Usage(Usage::plain(61, 9))]);
    }
}

#[test]
fn thoughts_only_in_details_are_shown_once() {
    let details = json!([{"type": "reasoning.text", "text": "hm", "index": 0}]);
    let summary = json!([{"type": "reasoning.summary", "summary": "hm", "index": 0}]);
    let sealed = json!([{"type": "reasoning.encrypted", "data": "eA==", "index": 0}]);
    for (part, thought) in [
        (json!({"reasoning_details": details}), "hm"),
        (json!({"reasoning_details": summary, "reasoning": null}), "hm"),
        (json!({"reasoning_details": details, "reasoning": "hm"}), "hm"),
        (json!({"reasoning_details": details, "reasoning": "hm", "reasoning_content": "hm"}), "hm"),
        (json!({"reasoning_content": "", "reasoning": "hm"}), "hm"),
        (json!({"reasoning_details": sealed}), ""),
    ] {
        let reply = stream(&[delta(part.clone()), words("Hello"), end("stop")]);
        assert_eq!((reply.reasoning.as_str(), reply.text.as_str()), (thought, "Hello"), "{part}");
    }
}

#[test]
fn a_field_of_another_type_affects_nothing_else() {
    let odd = json!({"id": 7, "choices": [
        {"index": 0, "delta": {"content": "Hel", "refusal": false, "tool_calls": "none", "reasoning_details": {}},
            "usage": "later"}],
        "usage": {"prompt_tokens": -1, "completion_tokens": 2, "prompt_tokens_details": []}});
    let call = delta(json!({"content": "lo", "tool_calls": [null, 7,
        {"index": "0", "id": 5, "function": {"name": "ls", "arguments": "{\"n\":1}"}}]}));
    let reply = stream(&[odd, call.clone(), json!({"choices": [null, 1]}), end("stop")]);
    let expect = hello().with_calls(vec![testing::call("call-0", "ls", json!({"n": 1}))]);
    assert_eq!(reply, expect.with_usage(Usage::plain(0, 2)), "{call}");
}

#[test]
fn an_image_is_an_answer_and_omitted_media_are_not_an_error() {
    let of = |url: &str| delta(json!({"images": [{"type": "image_url", "image_url": {"url": url}}]}));
    let with_usage = json!({"choices": [], "usage": usage(3, 1290)});
    let png = of("data:image/png;base64,iVBORw0KGgo=");
    let drawn =
        Reply { images: vec![b"\x89PNG\r\n\x1a\n".to_vec()], ..Reply::with_text("", Finish::Complete) };
    assert_eq!(stream(&[png.clone(), png, end("stop")]), drawn, "a repeated image counts once");
    let image = of("data:image/png;base64,eA==");
    let chunks = events(&[image.clone(), end("stop"), with_usage]) + "data: [DONE]\n\n";
    let (mut decoder, mut out) = (crate::ReplyDecoder::for_model(&settings()), Vec::new());
    assert_eq!(decoder.push(chunks.as_bytes(), &mut out), Err(ModelError::OnlyMedia));
    assert_eq!(out, [Delta::Usage(Usage::plain(3, 1290))], "its usage counts");
    assert_eq!(stream(&[image, words("Hello"), end("stop")]), hello(), "text counts without the image");
}

#[test]
fn arguments_written_as_text_are_parsed() {
    let of = |arguments: &str| {
        stream(&[piece(Some(0), Some("a"), Some("ls"), Some(arguments)), end("tool_calls")]).calls
    };
    let expect = [call("a", "ls", json!({"path": "/mnt"}))];
    for arguments in
        ["{\"path\":\"/mnt\"}", "\"{\\\"path\\\":\\\"/mnt\\\"}\"", " \"{\\\"path\\\": \\\"/mnt\\\"}\" "]
    {
        assert_eq!(of(arguments), expect, "{arguments}");
    }
    assert_eq!(of("\"/mnt\""), [garbled_call("a", "ls", "\"/mnt\"")]);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400), start in "(\\{|data: \\{|)") {
        let mut decoder = crate::ReplyDecoder::for_model(&settings());
        let mut out = Vec::new();
        let _ = decoder.push(start.as_bytes(), &mut out).and_then(|()| decoder.push(&bytes, &mut out));
        let _ = decoder.end(&mut out);
    }
}
