//! Results that are too long for a model, and tools that it searches for: the real daemon, its sandbox and a real MCP
//! server over standard input and output.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::{
    model::{Ask, Reply},
    telegram::View,
};
use serde_json::{Value, json};
use std::{
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

/// An MCP server in the shell: it sends letters, and writes long ones.
const SERVER: &str = r#"#!/bin/sh
[ -e "$(dirname "$0")/slow" ] && sleep 2
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  said() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"mail","version":"1"}}' ;;
    *'"tools/list"'*) answer '{"tools":[
{"name":"send","description":"Sends a letter.","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}},
{"name":"read","description":"Reads a long letter.","inputSchema":{"type":"object"}}]}' | tr -d '\n'; echo ;;
    *'"tools/call"'*'"send"'*) said sent ;;
    *'"tools/call"'*) said "dear$(printf '%15000s' end)" ;;
  esac
done
"#;

/// A house with a mail server, and Ada in a chat.
async fn furnished(rest: &str) -> (House, Talker) {
    let mut house = House::build("").await;
    house.configure("", rest);
    let server = house.path("mail.sh");
    std::fs::write(&server, SERVER).unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    let servers = json!({"mcpServers": {"mail": {"command": server}}});
    std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    house.logs("connected MCP servers").await;
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// Sends a message, waits for the answer, and returns all requests to the model, whose number is `count`.
async fn ask(house: &House, ada: &Talker, count: usize) -> Vec<Arc<Ask>> {
    ada.says(&format!("go on {count}"), &format!("echo: go on {count}")).await;
    let asked = house.model.requests();
    assert_eq!(asked.len(), count, "{asked:#?}");
    asked
}

/// Returns the paths of the thread's stored results on this machine.
fn kept(house: &House) -> Vec<PathBuf> {
    let folders = house.threads().into_iter().map(|thread| thread.join("user-data/outputs/.tool-results"));
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the audit of sandbox actions.
async fn audit(house: &House) -> String {
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let url = format!("http://{}/api/audit?limit=10", house.address);
    let told = http().get(url).bearer_auth(token).send().await.unwrap();
    assert_eq!(told.status(), 200);
    told.text().await.unwrap()
}

/// Returns the path in a preview.
fn named(preview: &str) -> String {
    let (_, rest) = preview.split_once(" is in ").unwrap_or_else(|| panic!("{preview}"));
    rest.split_once(": ").unwrap().0.to_owned()
}

#[tokio::test]
async fn a_long_result_of_any_tool_is_kept_whole_and_read_part_by_part() {
    let (house, ada) = furnished("").await;
    house.model.next(Reply::tool("mail_read", &json!({})));
    let asked = ask(&house, &ada, 2).await;
    let preview = asked[1].last_tool();
    assert!(
        preview.starts_with("dear  ") && preview.ends_with("  end") && preview.len() < 3_500,
        "{preview}"
    );
    let path = named(&preview);
    assert!(
        path.starts_with("/mnt/user-data/outputs/.tool-results/mail_read-") && path.ends_with(".txt"),
        "{path}"
    );
    let files = kept(&house);
    assert_eq!(files.len(), 1);
    let whole = std::fs::read_to_string(&files[0]).unwrap();
    assert_eq!(whole, format!("dear{}end", " ".repeat(14_997)));
    // The suggested call works, also within a long line.
    house.model.next(Reply::tool("read_file", &json!({"path": path, "offset": 15_000})));
    let asked = ask(&house, &ada, 4).await;
    assert_eq!(asked[3].last_tool(), " end");
    // None of this was an action of the agent, and nothing is sent to users.
    let audit = audit(&house).await;
    assert!(!audit.contains("tool-results"), "{audit}");
    assert!(ada.answers().iter().all(|seen| !seen.text.contains("tool-results")));
}

#[tokio::test]
async fn of_what_a_command_wrote_too_much_of_both_ends_are_kept_and_nothing_is_called_whole() {
    let (house, ada) = furnished("").await;
    if !house.log().contains("confining commands") {
        println!("skipped: commands cannot be confined here");
        return;
    }
    house.model.next(Reply::tool("bash", &json!({"command": "seq 1 200000"})));
    let preview = ask(&house, &ada, 2).await[1].last_tool();
    assert!(preview.starts_with("1\n2\n") && preview.ends_with("\n199999\n200000"), "{preview}");
    assert!(preview.contains("too long to be stored in full: its beginning and its end, "), "{preview}");
    assert!(!preview.contains("The whole result"), "{preview}");
    let held = std::fs::read_to_string(&kept(&house)[0]).unwrap();
    assert!(held.contains(" bytes omitted …]") && held.len() < 600 * 1024);
}

#[tokio::test]
async fn what_a_command_wrote_is_kept_whole_and_sub_agents_have_it_too() {
    let (house, ada) = furnished("").await;
    if !house.log().contains("confining commands") {
        println!("skipped: commands cannot be confined here");
        return;
    }
    let count = json!({"command": "seq 1 20000"});
    let wholly: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    house.model.next(Reply::tool("bash", &count));
    let preview = ask(&house, &ada, 2).await[1].last_tool();
    assert!(preview.starts_with("1\n2\n") && preview.ends_with("\n19999\n20000"), "{preview}");
    assert!(preview.contains("The whole result, 20000 lines, is in "), "{preview}");
    assert_eq!(std::fs::read_to_string(&kept(&house)[0]).unwrap(), wholly.trim_end());
    let audit = audit(&house).await;
    assert!(audit.contains("seq 1 20000") && !audit.contains("tool-results"), "{audit}");
    let work = json!({"description": "count", "prompt": "count", "subagent_type": "bash"});
    house.model.next(Reply::tool("task", &work));
    house.model.next(Reply::tool("bash", &count));
    let asked = ask(&house, &ada, 6).await;
    assert!(
        asked[4].last_tool().contains("The whole result, 20000 lines, is in "),
        "{}",
        asked[4].last_tool()
    );
    assert_eq!(kept(&house).len(), 2);
}

#[tokio::test]
async fn what_cannot_be_kept_is_cut_and_said() {
    let (house, ada) = furnished(
        "tool_output: {externalize_min_chars: 1000, preview_head_chars: 100, preview_tail_chars: 100, \
         fallback_max_chars: 2000, fallback_head_chars: 50, fallback_tail_chars: 50}\n",
    )
    .await;
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    ask(&house, &ada, 2).await;
    // A file is in place of the folder.
    let thread = house.threads().remove(0);
    std::fs::write(thread.join("user-data/outputs/.tool-results"), "in the way").unwrap();
    house.model.next(Reply::tool("mail_read", &json!({})));
    let preview = ask(&house, &ada, 4).await[3].last_tool();
    assert!(preview.contains("characters left out; they could not be stored"), "{preview}");
    assert!(preview.len() < 250, "{preview}");
    assert!(house.log().contains("failed to store long result"));
}

const SEARCHED: &str = "tool_search: {enabled: true}\n";

#[tokio::test]
async fn tools_of_servers_are_searched_for_and_stay_over_a_restart() {
    let (mut house, ada) = furnished(SEARCHED).await;
    house.model.next(Reply::tool("mail_send", &json!({"to": "Bob"})));
    house.model.next(Reply::tool("tool_search", &json!({"query": "+send"})));
    house.model.next(Reply::tool("mail_send", &json!({"to": "Bob"})));
    let asked = ask(&house, &ada, 4).await;
    let system = asked[0].messages()[0]["content"].as_str().unwrap().to_owned();
    assert!(system.ends_with("\nmail_read\nmail_send\n</available-deferred-tools>"), "{system}");
    assert!(!asked[0].tools().contains(&"mail_send") && asked[0].tools().contains(&"tool_search"));
    assert!(
        asked[1].last_tool().contains("Call tool_search with select:mail_send first"),
        "{}",
        asked[1].last_tool()
    );
    let told: Value = serde_json::from_str(&asked[2].last_tool()).unwrap();
    assert_eq!(told[0]["name"], "mail_send");
    assert_eq!(told[0]["parameters"]["properties"]["to"]["type"], "string");
    assert_eq!(asked[2].tools().last(), Some(&"mail_send"));
    assert_eq!(asked[3].last_tool(), "sent");
    house.kill();
    house.start();
    house.model.next(Reply::tool("mail_send", &json!({"to": "Bob"})));
    // Servers are started in the background; an earlier turn would not have their tools.
    connected(&house, 2).await;
    let asked = ask(&house, &ada, 6).await;
    assert_eq!(asked[4].tools().last(), Some(&"mail_send"));
    assert_eq!(asked[5].last_tool(), "sent");
    // The server has another tool now: found tools have to be searched for again.
    house.kill();
    let more = SERVER.replace("Sends a letter.", "Sends a letter at once.");
    std::fs::write(house.path("mail.sh"), more).unwrap();
    house.start();
    connected(&house, 3).await;
    let asked = ask(&house, &ada, 7).await;
    assert!(!asked[6].tools().contains(&"mail_send"), "{:?}", asked[6].tools());
}

/// Waits until the servers were connected this number of times.
async fn connected(house: &House, times: usize) {
    let deadline = Instant::now() + SOON;
    while house.log().matches("connected MCP servers").count() < times {
        assert!(Instant::now() < deadline, "{}", house.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_pattern_that_is_none_is_told() {
    let (house, ada) = furnished(SEARCHED).await;
    house.model.next(Reply::tool("tool_search", &json!({"query": "(mail"})));
    let said = ask(&house, &ada, 2).await[1].last_tool();
    assert!(said.starts_with("Error: the query is not a valid regular expression"), "{said}");
}

#[tokio::test]
async fn a_call_that_waited_for_approval_finds_its_tool_after_a_restart_though_the_server_is_slow() {
    let (mut house, ada) = furnished("approvals: {tools: [mail_send]}\n").await;
    house.model.next(Reply::tool("mail_send", &json!({"to": "bob"})));
    ada.say("write to bob");
    let waits = house.telegram.wait(SOON, |view| {
        let last = view.answers(ada.chat).pop()?;
        last.buttons.iter().flatten().any(|button| button.text == "Approve").then_some(last)
    });
    let asked = waits.await.unwrap();
    house.kill();
    std::fs::write(house.path("slow"), "").unwrap();
    house.start();
    // A press during the end of the old connection is lost, and users press again.
    for _ in 0..SOON.as_secs() {
        house.telegram.press(ada.chat, ada.person, asked.id, "Approve").ok();
        let patience = Duration::from_secs(1);
        let done = |view: &View<'_>| view.last_answer(ada.chat)?.starts_with("echo: ").then_some(());
        if house.telegram.wait(patience, done).await.is_ok() {
            break;
        }
    }
    ada.reads_so(|text| text.contains(" approved mail_send ") && text.starts_with("echo: write to bob"))
        .await;
    assert_eq!(house.model.requests()[1].last_tool(), "sent");
}
