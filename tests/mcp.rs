//! MCP servers that violate the protocol, as seen by the daemon: what the model receives, and what stays hidden.

use crate::house::{House, Talker};
use pudu_sim::model::{Ask, Reply};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

/// A server in the shell. A call returns the text for its tool's name.
const SERVER: &str = r##"#!/bin/sh
echo "STDIO MCP Server started in $REGION"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":null,"serverInfo":{"name":"odd"}}' ;;
    *'"tools/list"'*) answer '{"tools":[{"name":"report.get","inputSchema":null},{"name":"cut","annotations":{"readOnlyHint":"yes"}},{"name":"refuse"},{"description":"no name"}],"nextCursor":"same"}' ;;
    *'"report.get"'*) answer '{"content":[{"type":"text","text":"2 found, cut \ud83d here"}],"structuredContent":{"items":["STRUCTURED-1","STRUCTURED-2"]}}' ;;
    *'"cut"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text\n' "$id" ;;
    *'"refuse"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"%s and %s may not do that"}}\n' "$id" "$REGION" "$PASS" ;;
  esac
done
"##;

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A configured value that does not look like a secret, and one that does.
const GIVEN: [&str; 2] = ["northern-sea", "hunter2-hunter2"];

async fn house_with_servers() -> House {
    let mut house = House::build("").await;
    let server = house.path("odd.sh");
    executable(&server, SERVER);
    let env = json!({ "REGION": GIVEN[0], "PASS": GIVEN[1] });
    let dies = json!({ "command": "sh", "args": ["-c", "echo no $REGION >&2; exit 1"], "env": env });
    let servers = json!({ "mcpServers": { "odd": { "command": server, "env": env }, "dies": dies } });
    fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.set("RUST_LOG", "trace");
    house.start();
    house.logs("connected MCP servers").await;
    house
}

/// Returns the newest request to the model.
fn newest(house: &House) -> Arc<Ask> {
    house.model.requests().last().unwrap().clone()
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn a_model_uses_an_odd_server_and_no_value_of_its_entry_is_read_anywhere() {
    let house = house_with_servers().await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("odd_report_get", &json!({})));
    house.model.next(Reply::text("Two."));
    ada.says("how many?", "Two.").await;
    let asked = newest(&house);
    let tools = asked.tools();
    let names: Vec<&str> = tools.iter().filter_map(|name| name.strip_prefix("odd_")).collect();
    assert_eq!(names, ["report_get", "cut", "refuse"]);
    let result = asked.last_tool();
    assert!(result.contains("2 found, cut \u{fffd} here"), "{result}");
    assert!(result.contains("STRUCTURED-1") && result.contains("STRUCTURED-2"), "{result}");
    let begun = Instant::now();
    house.model.next(Reply::tool("odd_cut", &json!({})));
    house.model.next(Reply::text("It broke off."));
    ada.says("again", "It broke off.").await;
    assert!(begun.elapsed().as_secs() < 60, "the call waited for its time limit");
    let result = newest(&house).last_tool();
    assert!(result.contains("it sent an answer that cannot be read"), "{result}");
    house.model.next(Reply::tool("odd_refuse", &json!({})));
    house.model.next(Reply::text("It refused."));
    ada.says("and now?", "It refused.").await;
    let result = newest(&house).last_tool();
    assert!(result.contains("[secret] and [secret] may not do that"), "{result}");
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("it complained: no [secret]"), "{doctor}");
    assert!(doctor.contains("entry 4 of its list has no name"), "{doctor}");
    let body = newest(&house).body.to_string();
    let mut read = vec![("doctor", doctor), ("the log", house.log()), ("a request", body)];
    for path in files(&house.path(".pudu")) {
        read.push(("the home", String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()));
    }
    assert!(read.len() > 4, "the home is elsewhere");
    for (place, text) in read {
        for given in GIVEN {
            assert!(!text.contains(given), "{given} is in {place}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_and_tested_by_commands_and_an_edit_of_their_file_needs_no_restart() {
    let mut house = House::build("").await;
    let server = house.path("odd.sh");
    executable(&server, SERVER);
    let write = |servers: serde_json::Value| {
        let file = house.path("extensions_config.json");
        fs::write(file, json!({ "mcpServers": servers }).to_string()).unwrap();
    };
    let odd = json!({ "command": server, "tools": { "cut": { "enabled": false } } });
    let dies = json!({ "command": "sh", "args": ["-c", "echo no licence >&2; exit 1"] });
    write(json!({ "odd": odd, "dies": dies, "off": { "command": "x", "enabled": false } }));
    let tested = [
        "odd: ready in ",
        "tools: odd_report_get, odd_refuse",
        "disabled: cut",
        "dies: failed",
        "problem: it ended before it was ready; it complained: no licence",
        "fix: check that its `command` works in a terminal",
        "off: disabled",
    ];
    let check = |house: &House, args: &[&str], expect: &[&str]| {
        let (ok, said) = house.pudu(args);
        assert!(ok && expect.iter().all(|line| said.contains(line)), "{args:?}: {said}");
    };
    check(&house, &["mcp", "list"], &["odd: pudu is not running", "off: disabled"]);
    check(&house, &["mcp", "test"], &tested);
    check(&house, &["mcp", "test", "odd", "--json"], &["\"odd_report_get\""]);
    let (ok, said) = house.pudu(&["mcp", "test", "none"]);
    assert!(!ok && said.contains("MCP server 'none' not found"), "{said}");
    house.start();
    house.logs("connected MCP servers").await;
    check(&house, &["mcp", "list"], &tested);
    let write = |servers: serde_json::Value| {
        let file = house.path("extensions_config.json");
        fs::write(file, json!({ "mcpServers": servers }).to_string()).unwrap();
    };
    write(json!({ "odd": odd, "new": { "command": server } }));
    let is_new_ready = |house: &House| house.pudu(&["mcp", "list"]).1.contains("new: ready in ");
    assert!((0..200).any(|_| is_new_ready(&house)), "{}", house.log());
    check(&house, &["mcp", "test", "new"], &["new: ready in ", "new_cut"]);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_started_are_listed_while_another_one_starts() {
    let mut house = House::build("").await;
    let server = house.path("odd.sh");
    executable(&server, SERVER);
    let silent = json!({ "command": "sh", "args": ["-c", "cat > /dev/null"] });
    let servers = json!({ "mcpServers": { "odd": { "command": server }, "silent": silent } });
    fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    let are_listed = |house: &House| {
        let (_, said) = house.pudu(&["mcp", "list"]);
        said.contains("odd: ready in ") && said.contains("silent: starting")
    };
    assert!((0..200).any(|_| are_listed(&house)), "{}", house.pudu(&["mcp", "list"]).1);
    house.stop().await;
}

/// A server in the shell that asks people during a call, offers a prompt, and has the thread's folder as its root.
const ASKING_SERVER: &str = r##"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
  ask() { call=$id; printf '{"jsonrpc":"2.0","id":"%s","method":"%s","params":%s}\n' "$1" "$2" "$3"; }
  told() { text=$(printf '%s' "$line" | sed 's/[\\"]/\\&/g'); answer "$call" "{\"content\":[{\"type\":\"text\",\"text\":\"$text\"}]}"; }
  case "$line" in
    *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"ask"}}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"book","inputSchema":{"type":"object"}},{"name":"pay","inputSchema":{"type":"object"}},{"name":"think","inputSchema":{"type":"object"}},{"name":"look","inputSchema":{"type":"object"}}]}' ;;
    *'"prompts/list"'*) answer "$id" '{"prompts":[{"name":"plan","description":"Plans a trip.","arguments":[{"name":"city","required":true},{"noname":1}]},{"bad":true}]}' ;;
    *'"prompts/get"'*) city=$(printf '%s' "$line" | sed -n 's/.*"city":"\([^"]*\)".*/\1/p'); answer "$id" "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Plan a trip to $city in three steps.\"}}]}" ;;
    *'"name":"book"'*) ask a elicitation/create '{"message":"Who travels?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Full name"},"nights":{"type":"integer"}},"required":["name"]}}' ;;
    *'"name":"pay"'*) ask b elicitation/create '{"mode":"url","message":"Pay the hotel","url":"https://pay.example/42","elicitationId":"42"}' ;;
    *'"name":"think"'*) ask c sampling/createMessage '{"messages":[{"role":"user","content":{"type":"text","text":"Name a deer."}}],"maxTokens":50}' ;;
    *'"name":"look"'*) ask d roots/list '{}' ;;
    *'"id":"'[abcd]'"'*) told ;;
  esac
done
"##;

async fn house_with_asking_server() -> House {
    let mut house = House::build("").await;
    let server = house.path("ask.sh");
    executable(&server, ASKING_SERVER);
    let servers = json!({ "mcpServers": { "trip": { "command": server } } });
    fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    house.logs("connected MCP servers").await;
    house
}

/// Sends a message and waits for an answer that contains a text.
async fn hears(ada: &Talker, text: &str, answer: &str) {
    ada.say(text);
    ada.reads_so(|last| last.contains(answer)).await;
}

#[tokio::test]
async fn a_server_asks_people_with_a_form_and_continues_its_call_with_their_answer() {
    let house = house_with_asking_server().await;
    let ada = Talker::new(&house, "Ada");
    let book = || Reply::tool("trip_book", &json!({ "city": "Oslo" }));
    house.model.next(book());
    hears(&ada, "book Oslo", "Who travels?").await;
    house.model.next(book());
    hears(&ada, "Full name: Ada Lovelace\nnights: a few", "nights: it must be a number").await;
    house.model.next(book());
    house.model.next(Reply::text("Booked."));
    ada.says("1. Full name: Ada Lovelace\n2. nights: 3", "Booked.").await;
    let result = newest(&house).last_tool();
    assert!(result.contains(r#""action":"accept""#) && result.contains("Ada Lovelace"), "{result}");
    assert!(result.contains(r#""nights":3"#), "{result}");
}

#[tokio::test]
async fn a_person_approves_links_and_questions_to_the_model_and_the_workspace_is_a_root() {
    let house = house_with_asking_server().await;
    let ada = Talker::new(&house, "Ada");
    let press = async |button: &str| {
        let waits = |ada: &Talker| {
            ada.answers().pop().filter(|last| last.buttons.iter().flatten().any(|b| b.text == button))
        };
        let message = loop {
            match waits(&ada) {
                Some(message) => break message,
                None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        };
        house.telegram.press(ada.chat, ada.person, message.id, button).unwrap();
        message.text
    };
    house.model.next(Reply::tool("trip_pay", &json!({})));
    house.model.next(Reply::text("Paid."));
    ada.say("pay");
    let shown = press("Approve").await;
    assert!(shown.contains("trip: Pay the hotel") && shown.contains("https://pay.example/42"), "{shown}");
    ada.reads_so(|last| last.contains("Paid.")).await;
    assert!(newest(&house).last_tool().contains(r#""action":"accept""#));
    house.model.next(Reply::tool("trip_think", &json!({})));
    house.model.next(Reply::text("Pudu."));
    house.model.next(Reply::text("It is a pudu."));
    ada.say("think");
    let shown = press("Approve").await;
    assert!(shown.contains("trip asks the model: Name a deer."), "{shown}");
    ada.reads_so(|last| last.contains("It is a pudu.")).await;
    assert!(newest(&house).last_tool().contains("Pudu."), "{}", newest(&house).last_tool());
    house.model.next(Reply::tool("trip_think", &json!({})));
    house.model.next(Reply::text("You did not allow it."));
    ada.say("think again");
    press("Deny").await;
    ada.reads_so(|last| last.contains("You did not allow it.")).await;
    assert!(newest(&house).last_tool().contains("a person did not allow it"));
    house.model.next(Reply::tool("trip_look", &json!({})));
    house.model.next(Reply::text("There."));
    hears(&ada, "look", "There.").await;
    let result = newest(&house).last_tool();
    assert!(result.contains("file://") && result.contains("/user-data/workspace"), "{result}");
}

#[tokio::test]
async fn people_start_a_servers_prompt_by_its_name() {
    let house = house_with_asking_server().await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("1, 2, 3."));
    ada.says("/trip_plan Oslo", "1, 2, 3.").await;
    let body = newest(&house).body.to_string();
    assert!(body.contains("Plan a trip to Oslo in three steps."), "{body}");
    house.model.next(Reply::text("Which city?"));
    ada.says("/trip_plan", "Which city?").await;
    let body = newest(&house).body.to_string();
    assert!(body.contains("the arguments lack `city`"), "{body}");
    hears(&ada, "/help", "/trip_plan").await;
    hears(&ada, "/trip_plam Oslo", "/trip_plan").await;
}
