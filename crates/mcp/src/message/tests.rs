use super::*;
use rmcp::model::ServerResult;

/// Sends requests, returns what is read of some text, and the ids that still wait.
fn read(requests: &Value, text: &[u8]) -> (Vec<Value>, usize) {
    let pending = PendingRequests::default();
    for request in requests.as_array().unwrap() {
        pending.note_sent(&serde_json::from_value(request.clone()).unwrap());
    }
    let messages = MessageReader::shared(pending.clone()).read(text);
    let values = messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect();
    (values, pending.lock().len())
}

fn call(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "go" } })
}

fn list(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

/// Checks the text that the only call is answered with; of an error its message.
fn check_call(text: &str, expect: &str) {
    let (messages, waiting) = read(&json!([call(&json!(7))]), text.as_bytes());
    let [message] = &messages[..] else { panic!("{text}: {messages:?}") };
    let answer = match &message["error"]["message"] {
        Value::String(error) => format!("error: {error}"),
        _ => message["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    assert_eq!((answer.as_str(), &message["id"], waiting), (expect, &json!(7), 0), "{text}");
}

#[test]
fn noise_is_passed_over_and_no_call_suffers() {
    for noise in [
        "",
        "  ",
        "STDIO MCP Server started",
        "[MCP] registered 3 tools",
        "{\"level\": \"info\", \"msg\": \"json log line\"}",
        "{\"level\": \"info\", \"id\": 7}",
        "{\"almost\":",
        "{ arch: 'x64' }",
        "[1, 2]",
        "null",
        "\"text\"",
        "\u{1b}[32mready\u{1b}[0m {\"port\": 1}",
        // Nothing waits for this answer.
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{\"cut",
    ] {
        let requests = json!([call(&json!(7)), call(&json!(8))]);
        assert_eq!(read(&requests, noise.as_bytes()), (vec![], 2), "{noise}");
    }
}

#[test]
fn an_answer_that_is_not_quite_one_is_read() {
    let ok = r#"{"content":[{"type":"text","text":"ok"}]}"#;
    check_call(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{ok}}}"#), "ok");
    check_call(&format!("\u{feff}{{\"id\":7,\"result\":{ok}}}\r"), "ok");
    check_call(&format!(r#"{{"jsonrpc":"1.0","id":"7","error":null,"result":{ok},"extra":1}}"#), "ok");
    check_call(&format!(r#"{{"jsonrpc":"2.0","id":7.0,"result":{ok}}}"#), "ok");
    check_call(&format!(r#"[{{"jsonrpc":"2.0","id":7,"result":{ok}}}]"#), "ok");
    check_call(&format!(r#"loading… {{"jsonrpc":"2.0","id":7,"result":{ok}}}"#), "ok");
    check_call(
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":"-32603","message":null}}"#,
        "error: it refused without a reason",
    );
    check_call(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1e99,"data":"no disk"}}"#, "error: no disk");
    check_call(r#"{"jsonrpc":"2.0","id":7,"result":null,"error":"no"}"#, "error: no");
    check_call(r#"{"jsonrpc":"2.0","id":7,"error":{"message":{"a":1}}}"#, "error: {\"a\":1}");
    check_call(r#"{"jsonrpc":"2.0","id":7,"result":null}"#, "");
    let two =
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}{"jsonrpc":"2.0","id":8,"result":{"content":[]}}"#;
    assert_eq!(read(&json!([call(&json!(7)), call(&json!(8))]), two.as_bytes()).0.len(), 2);
    assert_eq!(read(&json!([call(&json!("abc"))]), br#"{"id":"abc","result":{}}"#).0[0]["id"], "abc");
}

#[test]
fn an_answer_that_cannot_be_read_fails_its_call_at_once() {
    let unreadable = "error: it sent an answer that cannot be read: it is no JSON";
    for text in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"cut"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a "quoted" word"}]}}"#,
        r#"{"result":{"content":[{"type":"text","text":"a "quoted" word"}]},"jsonrpc":"2.0","id":7}"#,
        r#"{"result": {"value": undefined}, "id": "7"}"#,
        r#"{'jsonrpc': '2.0', "jsonrpc"}"#,
        r#"{"jsonrpc":"2.0","result":{"id":3,"deep"#,
    ] {
        check_call(text, unreadable);
    }
    // Of several calls the one that is named fails.
    let requests = json!([call(&json!(6)), call(&json!(7)), call(&json!(8))]);
    let (messages, waiting) = read(&requests, br#"{"result":{"list":[{"id":6},{"id":8, oops}]},"id":7}"#);
    assert_eq!((messages.len(), &messages[0]["id"], waiting), (1, &json!(7), 2));
    let reader = |own: &Value| {
        let pending = PendingRequests::default();
        let [one, other] =
            [own, &call(&json!(8))].map(|value| serde_json::from_value(value.clone()).unwrap());
        pending.note_sent(&one);
        pending.note_sent(&other);
        MessageReader::response_to(pending, &one)
    };
    let answers = reader(&call(&json!(7))).read(b"{\"jsonrpc\": ");
    assert_eq!(serde_json::to_value(&answers[0]).unwrap()["id"], 7);
    let oversized = reader(&call(&json!(7))).read_oversized(b"{\"jsonrpc\":\"2.0\",\"id\":8,", b"}", 8 << 20);
    let oversized = serde_json::to_value(&oversized[0]).unwrap();
    assert_eq!(
        (&oversized["id"], &oversized["error"]["message"]),
        (&json!(8), &json!("it answered with more than 8 MiB"))
    );
}

#[test]
fn foreign_letters_cost_no_message() {
    let fffd = "a \u{fffd} b";
    check_call(
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a \ud83d b"}]}}"#,
        fffd,
    );
    let (messages, _) = read(
        &json!([call(&json!(7))]),
        b"{\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a \xff b\"}]}}",
    );
    assert_eq!(messages[0]["result"]["content"][0]["text"], fffd);
    let (messages, _) = read(
        &json!([list(&json!(1))]),
        br#"{"id":1,"result":{"tools":[{"name":"go","description":"cut \ude00 here","inputSchema":{}}]}}"#,
    );
    assert_eq!(messages[0]["result"]["tools"][0]["description"], "cut \u{fffd} here");
}

#[test]
fn a_result_of_any_shape_reaches_the_model() {
    let result = |result: Value, expect: &str| {
        let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": result });
        check_call(&answer.to_string(), expect);
    };
    result(json!({ "content": "plain" }), "plain");
    result(json!({ "content": { "type": "text", "text": "one" } }), "one");
    result(json!({ "content": ["bare", null] }), "bare");
    result(json!({ "content": [{ "text": "untyped" }] }), "untyped");
    result(json!({ "content": [{ "type": "text", "text": 5, "annotations": 7, "_meta": [] }] }), "5");
    result(json!({ "content": [{ "type": "json", "json": { "a": 1 } }] }), r#"{"a":1}"#);
    result(json!({ "content": [{ "type": "table", "rows": 2 }] }), r#"{"rows":2,"type":"table"}"#);
    result(json!({ "content": [{ "type": "image", "url": "u" }] }), r#"{"type":"image","url":"u"}"#);
    result(json!({ "toolResult": { "content": [{ "type": "text", "text": "old" }] } }), "old");
    result(json!({ "toolResult": "older" }), r#"{"toolResult":"older"}"#);
    result(json!("a text"), "a text");
    result(json!([1, 2]), "[1,2]");
    result(json!({ "rows": 3, "_meta": {} }), r#"{"rows":3}"#);
    let block = |block: Value| {
        let answer = json!({ "id": 7, "result": { "content": [block], "isError": "true", "structuredContent": null } });
        let (messages, _) = read(&json!([call(&json!(7))]), answer.to_string().as_bytes());
        assert_eq!(messages[0]["result"]["isError"], true);
        messages[0]["result"]["content"][0].clone()
    };
    let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    assert_eq!(block(json!({ "type": "image", "source": source })), image);
    assert_eq!(
        block(json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } })),
        image
    );
    assert_eq!(block(json!({ "type": "image", "data": "data:image/png;base64,AAAA" })), image);
    assert_eq!(block(json!({ "type": "image", "data": "AAAA" }))["mimeType"], "unknown type");
    assert_eq!(block(json!({ "type": "resource_link", "url": "u:x" }))["name"], "u:x");
    assert_eq!(block(json!({ "type": "resource", "resource": { "text": "t" } }))["resource"]["text"], "t");
}

#[test]
fn a_session_begins_with_a_greeting_that_lacks_something() {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
    } });
    for greeting in [
        json!({ "protocolVersion": "2025-06-18", "capabilities": null, "serverInfo": null }),
        json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": true }, "serverInfo": { "name": "x" } }),
        json!({ "protocolVersion": "2025-06-18" }),
        json!({ "protocolVersion": 1 }),
    ] {
        let pending = PendingRequests::default();
        pending.note_sent(&serde_json::from_value(hello.clone()).unwrap());
        let answer = json!({ "jsonrpc": "2.0", "id": 0, "result": greeting }).to_string();
        let messages = MessageReader::shared(pending).read(answer.as_bytes());
        let [ServerJsonRpcMessage::Response(response)] = &messages[..] else { panic!("{greeting}") };
        assert!(matches!(response.result, ServerResult::InitializeResult(_)), "{greeting}");
    }
}

#[test]
fn requests_and_notifications_of_a_server_pass() {
    for message in [
        json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "roots/list", "result": null }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "x/unknown", "params": { "a": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
        json!({ "method": "notifications/message", "params": { "level": "loud", "data": null } }),
        json!({ "method": "notifications/progress", "params": {} }),
    ] {
        let (messages, waiting) = read(&json!([call(&json!(7))]), message.to_string().as_bytes());
        assert_eq!((messages.len(), waiting), (1, 1), "{message}");
    }
}

#[test]
fn requests_that_were_cancelled_are_forgotten_and_the_rest_is_bounded() {
    let cancelled =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    let (messages, waiting) =
        read(&json!([call(&json!(7)), call(&json!(8)), cancelled]), br#"{"id":7,"result":{"content":[]}}"#);
    assert_eq!((messages, waiting), (vec![], 1));
    let many = (0..2 * MAX_PENDING).map(|id| call(&json!(id))).collect();
    assert_eq!(read(&many, b"").1, MAX_PENDING);
}
