//! Servers that are not quite by the protocol: what they print, list and answer.

use crate::desk::{SECRET, call, connect, cx, fixture, names, skipped, tool};
use pudu_base::{RunEvent, ToolCx};
use pudu_mcp::Servers;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// A server that lists what it is given.
async fn listing(list: &Value) -> Servers {
    let mut entry = fixture("list");
    entry["args"] = json!(["list", list.to_string()]);
    connect(&entry).await
}

fn notes(servers: &Servers) -> Vec<String> {
    servers.notes().iter().map(ToString::to_string).collect()
}

/// Checks what a server offers that lists one good and one odd tool, and what is noted about the odd one.
async fn check_odd(odd: &Value, offered: &[&str], noted: &str) {
    let good = json!({ "name": "good", "inputSchema": { "type": "object" } });
    let servers = listing(&json!({ "tools": [good, odd] })).await;
    assert_eq!(skipped(&servers), [""; 0], "{odd}");
    assert_eq!(names(&servers), offered, "{odd}");
    let found = notes(&servers).join("\n");
    assert!(if noted.is_empty() { found.is_empty() } else { found.contains(noted) }, "{odd}: {found}");
    for name in offered {
        let spec = tool(&servers, name).spec().clone();
        let parameters = &spec.parameters;
        assert!(
            parameters["type"] == "object" && parameters["properties"].is_object(),
            "{odd}: {parameters}"
        );
        call(&servers, name, json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn one_odd_tool_costs_nothing_but_itself() {
    let both = ["s_good", "s_odd"];
    let object = json!({ "type": "object" });
    // The twelve kinds that users reported first.
    for odd in [
        json!({ "name": "odd", "inputSchema": {} }),
        json!({ "name": "odd", "inputSchema": { "type": null } }),
        json!({ "name": "odd", "inputSchema": object, "outputSchema": { "properties": { "s": { "$ref": "#/$defs/Gone" } } } }),
        json!({ "name": "odd", "inputSchema": object, "outputSchema": { "type": "array" } }),
        json!({ "name": "odd", "description": null, "inputSchema": object, "title": null, "annotations": null, "_meta": null }),
        json!({ "name": "odd", "description": "x" }),
        json!({ "name": "odd", "inputSchema": null }),
        json!({ "name": "odd", "inputSchema": true }),
        json!({ "name": "odd", "inputSchema": object, "annotations": { "readOnlyHint": "true" } }),
        json!({ "name": "odd", "inputSchema": object, "description": ["a", "b"] }),
        json!({ "name": "odd", "inputSchema": object, "icons": [{ "src": "data:,", "sizes": "48x48" }] }),
        json!({ "name": "odd", "inputSchema": object, "execution": { "taskSupport": "sometimes" } }),
        // Hints that are null, a marker of the dialect alone, the forms of providers, a schema as text.
        json!({ "name": "odd", "inputSchema": object, "annotations": { "readOnlyHint": null, "title": null } }),
        json!({ "name": "odd", "inputSchema": { "$schema": "http://json-schema.org/draft-07/schema#" } }),
        json!({ "name": "odd", "inputSchema": { "anyOf": [{ "type": "object" }] } }),
        json!({ "type": "function", "function": { "name": "odd", "parameters": object } }),
        json!({ "name": "odd", "input_schema": object }),
        json!({ "name": "odd", "inputSchema": "{\"type\":\"object\"}" }),
    ] {
        check_odd(&odd, &both, "").await;
    }
    // Schemas that providers refuse.
    for (schema, noted) in [
        (json!({ "type": "string", "description": "the title" }), "may be anything"),
        (
            json!({ "properties": { "coin": { "type": "string" }, "required": ["coin"] } }),
            "`required` is among",
        ),
        (json!({ "properties": { "a": { "type": "any" } } }), "`type` is not a JSON Schema type"),
        (json!({ "properties": { "a": { "$ref": "#/$defs/A" } } }), "`$ref` names no part"),
        (json!({ "properties": { "城市": {} } }), "a name that providers refuse"),
        (json!({ "properties": ["a"] }), "`properties` is not an object"),
    ] {
        check_odd(&json!({ "name": "odd", "inputSchema": schema }), &both, noted).await;
    }
    // What cannot be a tool is left out.
    for odd in [
        json!("odd"),
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!({ "name": "" }),
        json!({ "name": 5 }),
    ] {
        check_odd(&odd, &["s_good"], "entry 2 of its list has no name").await;
    }
    check_odd(&json!({ "name": "x".repeat(600) }), &["s_good"], "its name is too long").await;
    let huge = json!({ "properties": { "a": { "enum": vec!["value"; 9_000] } } });
    check_odd(&json!({ "name": "odd", "inputSchema": huge }), &["s_good"], "larger than 64 KiB").await;
}

#[tokio::test]
async fn a_list_of_another_shape_is_read_as_far_as_it_goes() {
    let go = json!({ "name": "go", "inputSchema": {} });
    let check = async |list: &Value, offered: &[&str], noted: &str| {
        let servers = listing(list).await;
        assert_eq!(skipped(&servers), [""; 0], "{list}");
        assert_eq!(names(&servers), offered, "{list}");
        assert_eq!(notes(&servers).join("\n"), noted, "{list}");
    };
    check(&json!([go]), &["s_go"], "").await;
    check(&json!({ "tools": { "go": {}, "stay": { "description": "d" } } }), &["s_go", "s_stay"], "").await;
    check(&json!({ "tools": null }), &[], "its answer has no list of tools").await;
    check(&json!({ "tools": [go, go], "nextCursor": null }), &["s_go"], "").await;
    check(&json!({ "tools": [go], "ttlMs": "soon", "cacheScope": 7, "_meta": 1 }), &["s_go"], "").await;
    let endless = "its list of tools never ends: it was read until it repeated itself";
    for cursor in [json!("same"), json!(""), json!(3)] {
        check(&json!({ "tools": [go], "nextCursor": cursor }), &["s_go"], endless).await;
    }
}

#[tokio::test]
async fn names_that_providers_refuse_are_mapped_and_mapped_back() {
    let remotes =
        ["calendar.read", "user/update", "Create CIFS Share", "a.b", "a_b", "搜索", &"long_".repeat(20)];
    let tools = remotes.map(|name| json!({ "name": name, "description": "d" }));
    let servers = listing(&json!({ "tools": tools })).await;
    let names = names(&servers);
    assert_eq!(names[..3], ["s_calendar_read", "s_user_update", "s_Create_CIFS_Share"]);
    for (name, remote) in names.iter().zip(remotes) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(name.len() <= 64 && name.chars().all(legal), "{name}");
        let answer: Value =
            serde_json::from_str(&call(&servers, name, json!({ "x": 1 })).await.unwrap()).unwrap();
        assert_eq!((&answer["name"], &answer["arguments"]["x"]), (&json!(remote), &json!(1)));
    }
    assert_eq!(tool(&servers, &names[5]).spec().description, "搜索: d");
}

/// Calls the tool that prints a text as it is.
async fn print(servers: &Servers, text: &str) -> Result<String, String> {
    let calling = call(servers, "s_raw", json!({ "text": text }));
    tokio::time::timeout(Duration::from_secs(30), calling).await.unwrap()
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_fails_its_call_at_once_and_no_other() {
    let servers = connect(&fixture("")).await;
    let unreadable = "MCP server s: it sent an answer that cannot be read: it is no JSON";
    for text in [
        "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"cut\n",
        "{\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a \"b\" c\"}]},\"jsonrpc\":\"2.0\",\"id\":$ID}\n",
        "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": $ID,\n  \"result\": oops\n}\n",
    ] {
        assert_eq!(print(&servers, text).await, Err(unreadable.to_owned()), "{text}");
    }
    let odd = "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"resultType\":\"x\"}}\n";
    let error = print(&servers, odd).await.unwrap_err();
    assert_eq!(error, "MCP server s: it answered with something else than a result");
    let giant = format!("{{\"id\":$ID,\"result\":\"{}\"}}\n", "x".repeat(9 << 20));
    assert_eq!(
        print(&servers, &giant).await,
        Err("MCP server s: it answered with more than 8 MiB".to_owned())
    );
    // The same process still answers.
    assert_eq!(call(&servers, "s_echo", json!({ "text": "back" })).await, Ok("back".to_owned()));
}

#[tokio::test]
async fn noise_around_an_answer_is_passed_over() {
    let servers = connect(&fixture("noisy")).await;
    let ok = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"ok"}]}}"#;
    for text in [
        format!("[MCP] got tools/call\n{{\"level\":\"info\",\"id\":$ID}}\n{ok}\ndone\n"),
        format!("{{\n  \"level\": \"info\"\n}}\n\n{ok}\r\n"),
        format!("{{\n{ok}\n"),
        format!("progress 100%{ok}\n"),
        format!("{}\n", ok.replace(":{", ":\n  {").replacen('{', "{\n", 1).replace("}}", "}\n}")),
        format!("{}\n", ok.replace("ok", "o\\ud83dk")),
    ] {
        let expect = if text.contains("ud83d") { "o\u{fffd}k" } else { "ok" };
        assert_eq!(print(&servers, &text).await, Ok(expect.to_owned()), "{text}");
    }
}

#[tokio::test]
async fn structured_content_and_links_reach_the_model() {
    let servers = connect(&fixture("")).await;
    let data = json!({ "items": [{ "id": "STRUCTURED-1" }, { "id": "STRUCTURED-2" }] });
    let answer = |content: Value, structured: Value| {
        let result = json!({ "content": content, "structuredContent": structured });
        format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{result}}}\n")
    };
    let text = json!([{ "type": "text", "text": "2 items" }]);
    let read = print(&servers, &answer(text, data.clone())).await.unwrap();
    assert!(
        read.starts_with("2 items\n") && read.contains("STRUCTURED-1") && read.contains("STRUCTURED-2"),
        "{read}"
    );
    let mirror = json!([{ "type": "text", "text": serde_json::to_string_pretty(&data).unwrap() }]);
    assert_eq!(print(&servers, &answer(mirror, data)).await.unwrap().matches("STRUCTURED-1").count(), 1);
}

#[tokio::test]
async fn no_value_of_an_entry_is_in_an_error_of_its_server() {
    let mut entry = fixture("");
    entry["env"] = json!({ "TOKEN": "$SERVER_TOKEN", "REGION": "north-sea", "PIN": "4711", "MODE": "debug" });
    let servers = connect(&entry).await;
    let said = format!("{SECRET} north-sea north%2Dsea 4711 in debug");
    let error = format!("{{\"id\":$ID,\"error\":{{\"code\":1,\"message\":\"{said}\"}}}}\n");
    let hidden = "[secret] [secret] north%2Dsea [secret] in debug";
    assert_eq!(print(&servers, &error).await, Err(format!("MCP server s: {hidden}")));
    let failed = json!({ "isError": true, "content": [{ "type": "text", "text": said }] });
    let failed = print(&servers, &format!("{{\"id\":$ID,\"result\":{failed}}}\n")).await;
    assert_eq!(failed, Err(hidden.to_owned()));
    // What ended before it was ready says so in its last words.
    let mut entry = fixture("dies");
    entry["env"] = json!({ "TOKEN": "plain" });
    assert_eq!(
        skipped(&connect(&entry).await),
        ["MCP server s: it ended before it was ready; it complained: cannot log in with [secret]"]
    );
}

#[tokio::test]
async fn progress_of_a_call_reaches_its_run_and_odd_notifications_reach_nothing() {
    let servers = connect(&fixture("")).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let cx = ToolCx { events: Arc::new(move |event| sink.lock().unwrap().push(event)), ..cx() };
    let output = tool(&servers, "s_steps").call(json!({}), &cx).await.unwrap();
    assert_eq!(output.text, "done");
    let expect = RunEvent::ToolProgress { call: "c".into(), done: 1.0, total: Some(4.0) };
    assert_eq!(*seen.lock().unwrap(), [expect]);
}

/// Shapes from reports of users, each with the text that a model reads instead.
#[tokio::test]
async fn reported_results_and_notifications_reach_the_model_as_far_as_they_can_be_read() {
    let servers = connect(&fixture("")).await;
    let check = async |before: &[Value], result: Value, expect: &str| {
        let mut lines: Vec<String> = before.iter().map(ToString::to_string).collect();
        lines.push(format!("{{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{result}}}"));
        let text = lines.join("\n") + "\n";
        assert_eq!(print(&servers, &text).await, Ok(expect.to_owned()), "{text}");
    };
    let ok = json!({ "content": [{ "type": "text", "text": "ok" }] });
    let notify = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params });
    // Progress with a token of the server's own, without one, and for a call that has ended.
    for params in [
        json!({ "progressToken": "tool-call-4", "progress": 0, "total": 1 }),
        json!({ "progress": 10, "message": "Build phase" }),
        json!({ "progressToken": 1, "progress": 1, "total": 1 }),
        json!({ "progressToken": null, "progress": null }),
    ] {
        check(&[notify("progress", params)], ok.clone(), "ok").await;
    }
    // Many changes of lists that the server did not announce it could have.
    let changes =
        ["tools", "resources", "prompts"].map(|list| notify(&format!("{list}/list_changed"), json!(null)));
    check(&[changes.as_slice(), changes.as_slice()].concat(), ok.clone(), "ok").await;
    // Links without a name or with types of other kinds, and a document as the only block.
    let block = |block: Value| json!({ "content": [block] });
    check(
        &[],
        block(json!({ "type": "resource_link", "uri": "https://h/a.png", "mimeType": 7 })),
        "[https://h/a.png](https://h/a.png)",
    )
    .await;
    let note = json!({ "uri": "qmd://notes/a.md", "mimeType": "text/markdown", "text": "# A" });
    check(&[], block(json!({ "type": "resource", "resource": note })), "qmd://notes/a.md:\n# A").await;
    // A result of an early version of the protocol, and none at all.
    check(&[], json!({ "toolResult": ok.clone() }), "ok").await;
    check(&[], json!({ "content": null }), "(no output)").await;
    // An unknown block beside a known one.
    let mixed =
        json!({ "content": [{ "type": "video", "data": "AAAA" }, { "type": "text", "text": "seen" }] });
    let text = print(&servers, &format!("{{\"id\":$ID,\"result\":{mixed}}}\n")).await.unwrap();
    assert!(text.ends_with("seen"), "{text}");
}

#[tokio::test]
async fn resources_are_listed_and_read_by_two_tools_that_can_be_switched_off() {
    let servers = connect(&fixture("notes")).await;
    let listed = call(&servers, "s_list_resources", json!({})).await;
    assert_eq!(listed, Ok("note:1 first (text/plain): a b\nnote:2 note:2".to_owned()));
    let read = async |uri: Value| call(&servers, "s_read_resource", json!({ "uri": uri })).await;
    assert_eq!(read(json!("note:1")).await, Ok("note:1:\none".to_owned()));
    assert_eq!(read(json!("note:3")).await, Err("MCP server s: there is no such note".to_owned()));
    assert_eq!(read(json!(null)).await, Err("MCP server s: `uri` is missing".to_owned()));
    let image = tool(&servers, "s_read_resource").call(json!({ "uri": "note:2" }), &cx()).await.unwrap();
    assert_eq!((image.text.as_str(), image.attached.len()), ("note:2: [image 1, image/png, 8 bytes]", 1));
    let mut entry = fixture("notes");
    entry["tools"] = json!({ "read_resource": { "enabled": false } });
    let servers = connect(&entry).await;
    assert!(names(&servers).contains(&"s_list_resources".to_owned()));
    assert!(!names(&servers).contains(&"s_read_resource".to_owned()) && notes(&servers).is_empty());
    assert!(!names(&connect(&fixture("")).await).contains(&"s_list_resources".to_owned()));
}
