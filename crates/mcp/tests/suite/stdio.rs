//! Servers that run as child processes.

use crate::desk::{SECRET, call, config, connect, cx, ended, fixture, names, skipped, tool, works};
use pudu_base::ToolSpec;
use pudu_mcp::Servers;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn with(mut entry: Value, key: &str, value: Value) -> Value {
    entry[key] = value;
    entry
}

#[tokio::test]
async fn tools_are_named_after_their_server_and_work() {
    let servers = connect(&fixture("")).await;
    assert_eq!(
        names(&servers),
        [
            "s_echo",
            "s_env",
            "s_pid",
            "s_child",
            "s_hang",
            "s_cancelled",
            "s_die",
            "s_giant",
            "s_flood",
            "s_fail",
            "s_refuse",
            "s_raw",
            "s_has_space",
            "s_grow",
            "s_steps",
            "s_ask",
        ],
    );
    assert_eq!(call(&servers, "s_has_space", json!({})).await, Ok("\"has space\"".to_owned()));
    assert_eq!(
        **tool(&servers, "s_echo").spec(),
        ToolSpec {
            name: "s_echo".to_owned(),
            description: "Does echo.".to_owned(),
            parameters: json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
            idempotent: false,
        },
    );
    assert_eq!(call(&servers, "s_echo", json!({ "text": "héllo" })).await, Ok("héllo".to_owned()));
    assert_eq!(call(&servers, "s_echo", Value::Null).await, Ok("(no output)".to_owned()));
    assert_eq!(
        call(&servers, "s_echo", json!("text")).await,
        Err("MCP server s: the arguments must be an object".to_owned()),
    );
    let bare = connect(&with(fixture(""), "tool_name_prefix", json!(false))).await;
    assert_eq!(names(&bare).first().map(String::as_str), Some("echo"));
}

#[tokio::test]
async fn a_tool_that_is_switched_off_is_not_offered() {
    let servers = connect(&with(fixture(""), "tools", json!({ "echo": { "enabled": false } }))).await;
    let all = connect(&fixture("")).await;
    let rest: Vec<_> = names(&all).into_iter().filter(|name| *name != "s_echo").collect();
    assert_eq!((names(&servers), rest.len() + 1), (rest, names(&all).len()));
}

#[tokio::test]
async fn a_child_sees_its_own_environment_and_nothing_of_the_daemons() {
    let servers =
        connect(&with(fixture(""), "env", json!({ "TOKEN": "$SERVER_TOKEN", "EMPTY": "$NO" }))).await;
    let seen = call(&servers, "s_env", json!({})).await.unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            "EMPTY=",
            "HOME=/tmp",
            "LANG=C.UTF-8",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            &format!("TOKEN={SECRET}"),
        ],
    );
}

#[tokio::test]
async fn bad_servers_are_reported_and_hold_no_good_one_up() {
    let begun = Instant::now();
    let servers = Servers::connect(config(&json!({
        "absent": { "command": "no-such-program-anywhere" },
        "dies": fixture("dies"),
        "foreign": fixture("foreign"),
        "good": fixture("noisy"),
        "mute": with(fixture("mute"), "session_init_timeout", json!(0.5)),
        "mute-too": with(fixture("mute"), "session_init_timeout", json!(0.5)),
    })))
    .await;
    assert!(begun.elapsed() < Duration::from_secs(5), "they were not started side by side");
    assert_eq!(
        skipped(&servers),
        [
            "MCP server absent: there is no program no-such-program-anywhere in its PATH: install it, or give \
             its whole path",
            "MCP server dies: it ended before it was ready; it complained: cannot log in with [secret]",
            "MCP server foreign: it ended before it was ready",
            "MCP server mute: did not get ready within 500ms (session_init_timeout)",
            "MCP server mute-too: did not get ready within 500ms (session_init_timeout)",
        ],
    );
    assert_eq!(
        call(&servers, "good_echo", json!({ "text": "still here" })).await,
        Ok("still here".to_owned())
    );
    assert!(!format!("{servers:?}").contains(SECRET));
}

#[tokio::test]
async fn failures_come_as_errors_without_secrets() {
    let servers = connect(&fixture("")).await;
    assert_eq!(
        call(&servers, "s_fail", json!({})).await,
        Err("there is no issue 7 (token [secret])".to_owned()),
    );
    assert_eq!(
        call(&servers, "s_refuse", json!({})).await,
        Err("MCP server s: [secret] may not do that".to_owned()),
    );
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again_at_the_next() {
    let servers = connect(&fixture("")).await;
    let before = call(&servers, "s_pid", json!({})).await.unwrap();
    assert_eq!(
        call(&servers, "s_die", json!({})).await,
        Err("MCP server s: the connection ended before the answer; it may or may not have done the work"
            .to_owned()),
    );
    let after = call(&servers, "s_pid", json!({})).await.unwrap();
    assert!(before != after && !works(&before) && works(&after));
    // The next start is 2 s away, which is still waited for; the one after it is not.
    call(&servers, "s_die", json!({})).await.unwrap_err();
    call(&servers, "s_die", json!({})).await.unwrap_err();
    let down = call(&servers, "s_pid", json!({})).await.unwrap_err();
    assert!(down.starts_with("MCP server s: it is down; it is started again in "), "{down}");
}

#[tokio::test]
async fn giant_answers_are_cut_and_endless_ones_fail_at_once() {
    let servers = connect(&fixture("")).await;
    let giant = call(&servers, "s_giant", json!({})).await.unwrap();
    assert!(giant.contains("[… 251424 characters left out …]") && giant.len() < 1_049_000);
    let flood = call(&servers, "s_flood", json!({})).await.unwrap_err();
    assert!(flood.contains("the connection ended before the answer"), "{flood}");
    assert_eq!(call(&servers, "s_echo", json!({ "text": "back" })).await, Ok("back".to_owned()));
}

#[tokio::test]
async fn a_slow_call_runs_out_of_its_time_and_the_server_is_told() {
    let servers = connect(&with(fixture(""), "tool_call_timeout", json!(0.2))).await;
    assert_eq!(
        call(&servers, "s_hang", json!({})).await,
        Err("MCP server s: no answer within 200ms (tool_call_timeout)".to_owned()),
    );
    assert_eq!(call(&servers, "s_cancelled", json!({})).await, Ok("1".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let servers = connect(&fixture("")).await;
    let (hang, cx) = (tool(&servers, "s_hang"), cx());
    tokio::select! {
        biased;
        _ = hang.call(json!({}), &cx) => panic!("it answered"),
        // An answered call in between: the first one is under way by then.
        echo = call(&servers, "s_echo", json!({ "text": "1" })) => assert_eq!(echo, Ok("1".to_owned())),
    }
    assert_eq!(call(&servers, "s_cancelled", json!({})).await, Ok("1".to_owned()));
}

#[tokio::test]
async fn closing_leaves_no_process_behind_not_even_grandchildren() {
    for mode in ["", "stubborn"] {
        let servers = connect(&fixture(mode)).await;
        let server = call(&servers, "s_pid", json!({})).await.unwrap();
        let grandchild = call(&servers, "s_child", json!({})).await.unwrap();
        assert!(works(&server) && works(&grandchild));
        servers.close().await;
        ended(&server).await;
        ended(&grandchild).await;
        assert_eq!(call(&servers, "s_pid", json!({})).await, Err("MCP server s: it was closed".to_owned()));
    }
}

#[tokio::test]
async fn a_server_runs_until_nobody_holds_a_tool_of_it() {
    let servers = connect(&fixture("")).await;
    let server = call(&servers, "s_pid", json!({})).await.unwrap();
    let grandchild = call(&servers, "s_child", json!({})).await.unwrap();
    let echo = tool(&servers, "s_echo");
    drop(servers);
    let answer = echo.call(json!({ "text": "old run" }), &cx()).await.unwrap();
    assert_eq!(answer.text, "old run");
    drop(echo);
    ended(&server).await;
    ended(&grandchild).await;
}

#[test]
fn a_runtime_that_ends_takes_the_processes_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (server, grandchild, servers) = runtime.block_on(async {
        let servers = connect(&fixture("stubborn")).await;
        let server = call(&servers, "s_pid", json!({})).await.unwrap();
        let grandchild = call(&servers, "s_child", json!({})).await.unwrap();
        (server, grandchild, servers)
    });
    drop(runtime);
    drop(servers);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        ended(&server).await;
        ended(&grandchild).await;
    });
}
