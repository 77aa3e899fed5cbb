//! What a configuration file means, and what is said of a wrong one.

use crate::desk::{SECRET, config, connect, skipped};
use pudu_mcp::{McpConfig, McpConfigError, Servers};
use serde_json::{Value, json};
use std::collections::HashMap;

fn refused(text: &str) -> McpConfigError {
    McpConfig::parse(text, &HashMap::new()).unwrap_err()
}

#[test]
fn a_wrong_file_is_refused_with_line_key_and_mend_but_without_its_values() {
    assert_eq!(
        refused("{\n  \"mcpServers\": {\n    \"github\": {\"args\": \"--token=hunter2\"}\n  }\n}")
            .to_string(),
        "line 3, column 40, key mcpServers.github.args: a sequence is expected here",
    );
    assert_eq!(
        refused("{\"mcpServers\": {\"x\": {\"enabled\": \"yes\"}}}").to_string(),
        "line 1, column 38, key mcpServers.x.enabled: `true` or `false`, without quotes, is expected here",
    );
    assert_eq!(
        refused("{\n  \"skills\": {\"a\": {\"enabled\": \"no\"}}\n}").to_string(),
        "line 2, column 34, key skills.a.enabled: `true` or `false`, without quotes, is expected here",
    );
    assert_eq!(refused("[]").to_string(), "line 1, column 0: an object in braces, `{…}`, is expected here");
    let list = refused("{\"skills\": {\"a\": []}, \"mcpServers\": {}}").to_string();
    assert!(list.ends_with("key skills.a: an object in braces, `{…}`, is expected here"), "{list}");
    assert_eq!(
        refused("{\"mcpServers\": {,}}").to_string(),
        "line 1, column 17, key mcpServers: key must be a string",
    );
    assert_eq!(refused("").to_string(), "line 1, column 0: EOF while parsing a value");
}

#[test]
fn what_deerflow_writes_is_read_and_the_disabled_are_left_out() {
    let file = json!({
        "mcpServers": {
            "off": { "enabled": false, "type": "sse", "url": "http://127.0.0.1:1/sse" },
            "github": {
                "enabled": true, "type": "stdio", "command": "npx", "args": ["-y", "server"],
                "env": { "GITHUB_TOKEN": "$GITHUB_TOKEN" }, "url": null, "headers": {}, "oauth": null,
                "description": "Issues", "routing": { "mode": "auto", "priority": 3, "keywords": [] },
                "tool_call_timeout": 30, "session_init_timeout": 60.0, "x-unknown": [1],
            },
        },
        "skills": { "x": { "enabled": true } },
        "mcpInterceptors": [], "middlewares": null,
    });
    let config = McpConfig::parse(&file.to_string(), &HashMap::new()).unwrap();
    let shown = format!("{config:?}");
    assert!(shown.starts_with("McpConfig { servers: [Server(github at npx)], unusable: [], "), "{shown}");
    let unknown: Vec<&str> = config.unknown_keys().iter().map(|unknown| unknown.path.as_str()).collect();
    assert_eq!(unknown, ["mcpServers.github.x-unknown"]);
    assert!(McpConfig::parse("{}", &HashMap::new()).unwrap().is_empty());
}

#[test]
fn what_may_guard_calls_and_does_not_run_here_is_refused() {
    for key in ["mcpInterceptors", "middlewares"] {
        assert_eq!(
            refused(&json!({ key: ["team.parts:Guard"] }).to_string()).hint,
            "an empty list (pudu runs no Python; what guards calls is `approvals.tools` in config.yaml) is expected here",
        );
    }
}

#[tokio::test]
async fn where_programs_are_listed_no_other_is_started() {
    let check = |command: &str, listed: &str, starts: bool| {
        let file = json!({ "mcpServers": { "s": { "command": command } } }).to_string();
        let vars = [("DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST".to_owned(), listed.to_owned())].into();
        let printed = format!("{:?}", McpConfig::parse(&file, &vars).unwrap());
        let expect =
            if starts { format!("Server(s at {command})") } else { "neither npx nor uvx".to_owned() };
        assert!(printed.contains(&expect), "{command} {listed}: {printed}");
    };
    check("python3", "", true);
    check("npx", "uv", true);
    check("uv", "node, uv", true);
    check("python3", "uv", false);
    check("/usr/bin/uv", "uv", false);
}

#[test]
fn no_secret_is_in_what_a_configuration_prints() {
    let printed = format!(
        "{:?}",
        config(&json!({
            "a": { "command": "a", "args": ["--key", "$SERVER_TOKEN"], "env": { "KEY": SECRET } },
            "b": { "type": "http", "url": format!("https://u:{SECRET}@h/{SECRET}?key={SECRET}") },
            "c": { "type": "http", "url": "https://h/mcp", "headers": { "Authorization": SECRET } },
            "d": { "type": "http", "url": "https://h/mcp", "headers": { "no header": SECRET } },
        }))
    );
    assert!(!printed.contains(SECRET), "{printed}");
    assert!(printed.contains("Server(b at https://h)"), "{printed}");
}

#[tokio::test]
async fn an_entry_that_makes_no_sense_is_reported_with_its_mend() {
    let check = async |entry: Value, expect: &str| {
        assert_eq!(skipped(&connect(&entry).await), [format!("MCP server s: {expect}")], "{entry}");
    };
    check(json!({}), "a stdio server needs a `command`").await;
    check(json!({ "command": "$NOT_SET" }), "a stdio server needs a `command`").await;
    check(json!({ "type": "http" }), "an http server needs a `url`").await;
    check(json!({ "url": "mcp.example.org" }), "`url` is not a valid URL").await;
    check(json!({ "url": "file:///mcp" }), "`url` must begin with http:// or https://").await;
    check(json!({ "type": "ws", "url": "ws://h" }), "`type` is ws; it can be stdio or http").await;
    check(
        json!({ "type": "sse", "url": "http://h/sse" }),
        "the sse transport is not in this version; most servers also speak http at another path: set `type` \
         to http and `url` to it",
    )
    .await;
    check(
        json!({ "url": "http://h/mcp", "oauth": { "token_url": "http://h/token", "client_id": "me" } }),
        "OAuth client_credentials requires client_id and client_secret",
    )
    .await;
    check(
        json!({ "command": "x", "tool_call_timeout": -1 }),
        "`tool_call_timeout` must be a number of seconds above 0",
    )
    .await;
    check(
        json!({ "url": "http://h/mcp", "headers": { "a b": "c" } }),
        "`headers` has a name that no header can have",
    )
    .await;
}

#[tokio::test]
async fn nothing_to_connect_to_is_no_failure() {
    let servers = Servers::connect(McpConfig::default()).await;
    assert_eq!(format!("{servers:?}"), "Servers { tools: [], skipped: [] }");
    servers.close().await;
}
