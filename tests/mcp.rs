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
