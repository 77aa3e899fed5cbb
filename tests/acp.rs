//! The Agent Client Protocol from end to end: an agent that works for people in a chat, and `pudu acp` for an editor.

#[path = "acp/editor.rs"]
mod editor;

use crate::house::{House, SOON, Talker, http};
use editor::Editor;
use pudu_sim::{
    model::{At, Reply},
    telegram::Seen,
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt};

/// An agent in the shell: it writes a file, asks for permission, and says which option was chosen.
const AGENT: &str = r##"#!/bin/sh
echo "Starting the agent…"
send() { printf '%s\n' "$1"; }
update() { send "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":$1}}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { send "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
  case "$line" in
    *'"initialize"'*) answer "$id" '{"protocolVersion":1}' ;;
    *'"session/new"'*) answer "$id" '{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
      prompt=$id
      echo "three notes" > report.txt
      update '{"sessionUpdate":"tool_call","toolCallId":"t","title":"Counting the notes","status":"in_progress"}'
      send '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Delete the notes","rawInput":{"path":"notes"}},"options":[{"optionId":"go","name":"Yes, once","kind":"allow_once"},{"optionId":"stop","name":"No","kind":"reject_once"}]}}' ;;
    *'"optionId"'*)
      chosen=$(printf '%s' "$line" | sed -n 's/.*"optionId":"\([a-z]*\)".*/\1/p')
      update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"The option is $chosen.\"}}"
      answer "$prompt" '{"stopReason":"end_turn"}' ;;
  esac
done
"##;

/// Builds a house with that agent, and one whose program does not exist.
async fn house_with_agents() -> House {
    let house = House::build("").await;
    let agent = house.path("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let none = "{command: npx-that-is-not-there, description: is not installed}";
    let coder =
        format!("{{command: {}, description: counts notes, env: {{KEY: $NOT_SET}}}}", agent.display());
    house.configure("", &format!("acp_agents: {{coder: {coder}, none: {none}}}\n"));
    house
}

fn invoke(agent: &str) -> Reply {
    Reply::tool("invoke_acp_agent", &json!({ "agent": agent, "prompt": "Count the notes" })).into()
}

/// Waits for the question about the permission, and presses a button.
async fn decide(house: &House, ada: &Talker, button: &str) {
    let asked = house.telegram.wait(SOON, |view| {
        let has = |one: &Seen| one.buttons.iter().flatten().any(|it| it.text == button);
        view.answers(ada.chat).iter().find(|one| has(one) && one.text.contains("Delete the notes")).cloned()
    });
    let asked = asked.await.unwrap();
    assert!(asked.text.contains("coder: Delete the notes"), "{}", asked.text);
    house.telegram.press(ada.chat, ada.person, asked.id, button).unwrap();
}

#[tokio::test]
async fn an_agent_works_for_people_who_decide_on_its_actions() {
    let mut house = house_with_agents().await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    for (button, option) in [("Approve", "go"), ("Deny", "stop")] {
        house.model.next(invoke("coder"));
        house.model.next(Reply::tool("read_file", &json!({ "path": "/mnt/acp-workspace/report.txt" })));
        house.model.next(Reply::text("There are three."));
        ada.say("how many notes?");
        decide(&house, &ada, button).await;
        ada.reads_so(|text| text.starts_with("There are three.")).await;
        let requests = house.model.requests();
        let [.., invoked, read] = &requests[..] else { panic!("{}", requests.len()) };
        let result = invoked.last_tool();
        assert!(result.contains(&format!("The option is {option}.")), "{result}");
        assert_eq!(result.contains("did not allow"), button == "Deny", "{result}");
        assert!(read.last_tool().contains("three notes"), "{}", read.last_tool());
        assert!(invoked.tools().contains(&"invoke_acp_agent"), "{:?}", invoked.tools());
    }
    assert!(house.audit(&[]).contains("acp"), "{}", house.audit(&[]));
}

#[tokio::test]
async fn people_see_the_activity_of_an_agent() {
    let mut house = house_with_agents().await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(invoke("coder"));
    house.model.next(Reply::text("Done."));
    ada.say("how many notes?");
    ada.reads_so(|text| text.contains("Count the notes: Counting the notes")).await;
    decide(&house, &ada, "Deny").await;
    ada.reads_so(|text| text.starts_with("Done.")).await;
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_with_the_fix() {
    let mut house = house_with_agents().await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    for (agent, expect) in [
        ("none", "there is no program `npx-that-is-not-there` in the PATH of pudu"),
        ("other", "Unknown agent 'other'. Available: coder, none"),
    ] {
        house.model.next(invoke(agent));
        house.model.next(Reply::text(agent));
        ada.says("how many notes?", agent).await;
        let result = house.model.requests().last().unwrap().last_tool();
        assert!(result.contains(expect), "{result}");
    }
}

#[tokio::test]
async fn an_api_client_that_shows_no_questions_allows_nothing() {
    let mut house = house_with_agents().await;
    house.start();
    house.model.next(invoke("coder"));
    house.model.next(Reply::text("Done."));
    let token = fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let url = format!("http://{}/api/runs/wait", house.address);
    let body = json!({ "input": { "messages": [{ "type": "human", "content": "count" }] } });
    let ended = http().post(url).bearer_auth(token.trim()).json(&body).send().await.unwrap();
    assert!(ended.status().is_success() && ended.text().await.unwrap().contains("Done."));
    let last = house.model.requests().last().unwrap().last_tool();
    assert!(last.contains("The option is stop.") && last.contains("no person could be asked"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_talks_to_a_running_daemon() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let mut editor = Editor::start(&house, &[]);
    let about = editor.request("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(
        (about["protocolVersion"].as_u64(), about["agentInfo"]["name"].as_str()),
        (Some(1), Some("pudu"))
    );
    let session = editor.open();
    house.model.next(Reply::text("Hello to you."));
    assert_eq!(editor.prompt(&session, "hello"), "end_turn");
    assert_eq!(editor.text(), "Hello to you.");

    // A call that needs an approval asks the editor.
    for (option, expect) in [("allow", "completed"), ("deny", "failed")] {
        let args = json!({ "path": "/mnt/user-data/workspace/a.txt", "content": option });
        house.model.next(Reply::tool("write_file", &args));
        house.model.next(Reply::text("Well."));
        editor.chooses(option);
        assert_eq!(editor.prompt(&session, "write"), "end_turn");
        let updates = editor.take();
        let ended = updates.iter().find(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
        assert_eq!(ended["status"], expect, "{updates:?}");
        let called = updates.iter().find(|update| update["sessionUpdate"] == "tool_call").unwrap();
        assert_eq!((called["kind"].as_str(), &called["toolCallId"]), (Some("edit"), &ended["toolCallId"]));
    }

    // Slash commands are answered, and listed.
    assert_eq!(editor.prompt(&session, "/help"), "end_turn");
    assert!(editor.text().contains("/stop"));

    // The session is found again by another process.
    drop(editor);
    let mut again = Editor::start(&house, &[]);
    let listed = again.request("session/list", json!({}));
    assert_eq!(listed["sessions"][0]["sessionId"], *session);
    for unknown in ["none", "../runs", ""] {
        let refused =
            again.call("session/load", json!({ "sessionId": unknown, "cwd": "/", "mcpServers": [] }));
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
    }
    again.request("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    let history = again.take();
    let kinds: Vec<&str> = history.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect();
    assert_eq!(kinds[..3], ["user_message_chunk", "agent_message_chunk", "user_message_chunk"], "{kinds:?}");
    assert_eq!(again.prompt(&session, "/new"), "end_turn");
    again.take();
    assert_eq!(again.prompt(&session, "more"), "end_turn");
    assert_eq!(again.text(), "echo: more");

    // A session continues where a command moved it.
    drop(again);
    let mut third = Editor::start(&house, &[]);
    third.request("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    assert_eq!(third.text(), "echo: more");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_stops_a_run_and_the_next_prompt_works() {
    let house = House::open("").await;
    let mut editor = Editor::start(&house, &[]);
    editor.request("initialize", json!({ "protocolVersion": 1 }));
    let session = editor.open();
    // Without a prompt there is nothing to stop.
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.notify("session/cancel", json!({ "sessionId": "none" }));
    let mut hold = house.model.hold(1, At::Chunk(3));
    house.model.next(Reply::text("one two three four five six").words_per_chunk(1));
    let id = editor.send("session/prompt", Editor::prompt_params(&session, "count"));
    hold.reached().await.unwrap();
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let ended = editor.answer(id);
    assert_eq!(ended["result"]["stopReason"], "cancelled", "{ended}");
    hold.proceed();
    editor.take();
    assert_eq!(editor.prompt(&session, "next"), "end_turn");
    assert_eq!(editor.text(), "echo: next");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_breaks_the_protocol_is_answered() {
    let house = House::open("").await;
    let mut editor = Editor::start(&house, &[]);
    editor.write("this is no message");
    assert_eq!(editor.answer_to(&Value::Null)["error"]["code"], -32700);
    let giant = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":\"{}\"}}",
        "x".repeat(9 << 20)
    );
    editor.write(&giant);
    assert_eq!(editor.answer_to(&json!(1))["error"]["code"], -32600);
    let code = |editor: &mut Editor, method: &str, params: Value| {
        editor.call(method, params)["error"]["code"].clone()
    };
    assert_eq!(code(&mut editor, "session/dream", json!({})), -32601);
    assert_eq!(code(&mut editor, "session/prompt", json!({ "sessionId": "none", "prompt": [] })), -32002);
    assert_eq!(code(&mut editor, "session/prompt", json!(7)), -32602);
    let session = editor.open();
    assert_eq!(code(&mut editor, "session/prompt", json!({ "sessionId": session, "prompt": [] })), -32602);
    let option = json!({ "sessionId": session, "configId": "model", "value": "none" });
    assert_eq!(code(&mut editor, "session/set_config_option", option), -32602);
    house.model.next(Reply::status(401));
    let failed = editor.call("session/prompt", Editor::prompt_params(&session, "hi"));
    assert_eq!(failed["error"]["code"], -32603, "{failed}");
    assert_eq!(editor.prompt(&session, "still"), "end_turn");
    assert_eq!(editor.text(), "echo: still");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_daemon_one_runs_in_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut editor = Editor::start_in(folder.path(), &[]);
    editor.request("initialize", json!({ "protocolVersion": 1 }));
    let session = editor.open();
    assert_eq!(editor.prompt(&session, "hi"), "end_turn");
    assert!(editor.text().starts_with("I am pudu's built-in **offline** model"));
    assert!(editor.close().success());
    assert!(folder.path().join(".pudu/acp.log").is_file());
}
