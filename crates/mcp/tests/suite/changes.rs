//! Servers that come back, that change their tools, and whose entries change.

use crate::desk::{call, config, connect, ended, fixture, names, skipped, tool, works};
use pudu_base::{ToolServerReport, ToolServerState};
use pudu_mcp::Servers;
use serde_json::{Value, json};
use std::{fs, time::Duration};

/// Waits until the servers offer a tool.
async fn until_offered(servers: &Servers, name: &str) {
    let mut changes = servers.changes();
    let waiting = async {
        while !names(servers).iter().any(|offered| offered == name) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_away_at_the_start_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("up");
    let mut late = fixture("late");
    late["args"] = json!(["late", file]);
    let servers = Servers::connect(config(&json!({ "other": fixture(""), "s": late }))).await;
    assert_eq!(skipped(&servers), ["MCP server s: it ended before it was ready"]);
    let away = &servers.reports()[1];
    assert_eq!(away.problem.as_deref(), Some("it ended before it was ready"));
    assert!(away.fix.as_ref().is_some_and(|fix| fix.contains("in a terminal")));
    assert!(names(&servers).contains(&"other_echo".to_owned()));
    fs::write(&file, "").unwrap();
    until_offered(&servers, "s_echo").await;
    assert_eq!(call(&servers, "s_echo", json!({ "text": "up" })).await, Ok("up".to_owned()));
    assert_eq!(skipped(&servers), [""; 0]);
}

#[tokio::test]
async fn tools_are_listed_again_when_a_server_says_that_they_changed() {
    let mut entry = fixture("");
    entry["tools"] = json!({ "echo": { "enabled": false }, "ecko": { "enabled": false } });
    let servers = connect(&entry).await;
    assert!(!names(&servers).contains(&"s_grown".to_owned()));
    let (old, pid) = (tool(&servers, "s_pid"), call(&servers, "s_pid", json!({})).await.unwrap());
    call(&servers, "s_grow", json!({})).await.unwrap();
    until_offered(&servers, "s_grown").await;
    // The session is the same, also for a run that began with the earlier list, and so are the switches.
    assert_eq!(old.call(json!({}), &crate::desk::cx()).await.unwrap().text, pid);
    assert!(!names(&servers).contains(&"s_echo".to_owned()));
    let [report] = &servers.reports()[..] else { panic!("one server") };
    assert_eq!((report.state, &report.tools), (ToolServerState::Ready, &names(&servers)));
    assert_eq!(report.disabled_tools, ["echo"]);
    let noted = "left out tool ecko: `tools` of its entry switches it off, but the server has no such tool";
    assert_eq!(servers.notes().iter().map(ToString::to_string).collect::<Vec<_>>(), [noted]);
}

#[tokio::test]
async fn an_edit_reconnects_only_the_servers_that_it_changes_and_breaks_no_run() {
    let all = |kept: Value, edited: Value| config(&json!({ "kept": kept, "edited": edited }));
    let servers = Servers::connect(all(fixture(""), fixture(""))).await;
    let pid = async |name: &str| call(&servers, name, json!({})).await.unwrap();
    let (kept, edited) = (pid("kept_pid").await, pid("edited_pid").await);
    let held = tool(&servers, "edited_pid");
    let mut changed = fixture("");
    changed["env"]["MORE"] = json!("1");
    servers.replace(all(fixture(""), changed), false).await;
    assert_eq!(pid("kept_pid").await, kept);
    assert_ne!(pid("edited_pid").await, edited);
    // A run that has begun still uses the server that it began with, which ends with the run.
    assert_eq!(held.call(json!({}), &crate::desk::cx()).await.unwrap().text, edited);
    drop(held);
    ended(&edited).await;
    servers.replace(config(&json!({ "kept": fixture("") })), true).await;
    assert_ne!(pid("kept_pid").await, kept);
    ended(&kept).await;
    let last = pid("kept_pid").await;
    servers.replace(config(&json!({ "kept": { "command": "none", "enabled": false } })), false).await;
    ended(&last).await;
    assert!(names(&servers).is_empty() && !works(&last));
    assert_eq!(servers.reports(), [ToolServerReport::new("kept", ToolServerState::Disabled)]);
}
