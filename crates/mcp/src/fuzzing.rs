//! Entry points for fuzzers, which are in a separate workspace and can access only public items. Each checks properties
//! that hold for any input.

use crate::{
    answer,
    listing::ToolList,
    message::{MessageReader, PendingRequests},
    names::{self, TakenNames},
    server::McpServer,
};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::json;
use std::collections::HashSet;

/// Parses arbitrary bytes as the output of a server with three pending requests: an initialization, a list of tools and
/// a call. Checks that each request gets at most one answer and that providers would accept each listed tool.
///
/// # Panics
/// When one of these checks fails.
pub fn messages(bytes: &[u8]) {
    let pending = PendingRequests::default();
    let requests = [
        json!({ "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" },
        } }),
        json!({ "method": "tools/list" }),
        json!({ "method": "tools/call", "params": { "name": "go" } }),
    ];
    for (id, mut request) in requests.into_iter().enumerate() {
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(id);
        let request: ClientJsonRpcMessage =
            serde_json::from_value(request).unwrap_or_else(|_| unreachable!());
        pending.note_sent(&request);
    }
    let reader = MessageReader::shared(pending);
    let mut answered = HashSet::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        for message in reader.read(line) {
            match message {
                ServerJsonRpcMessage::Response(response) => {
                    assert!(answered.insert(response.id), "two answers");
                    check_result(response.result);
                }
                ServerJsonRpcMessage::Error(error) => {
                    assert!(error.id.is_some_and(|id| answered.insert(id)), "an answer to nothing");
                }
                _ => {}
            }
        }
    }
}

fn check_result(result: ServerResult) {
    match result {
        ServerResult::ListToolsResult(page) => check_tools(page),
        ServerResult::CallToolResult(result) => {
            let read = answer::read(&result);
            assert!(!read.text.is_empty() && read.images.len() <= 8, "{:?}", read.text);
        }
        _ => {}
    }
}

fn check_tools(page: rmcp::model::ListToolsResult) {
    let server = McpServer::for_fuzzing();
    let mut list = ToolList::default();
    list.add(page, &server);
    let remotes: Vec<&str> = list.tools.iter().map(|tool| tool.remote.as_str()).collect();
    let names = names::assign("s", true, &remotes, &mut TakenNames::new(|_| false));
    let different: HashSet<&String> = names.iter().collect();
    assert!(
        different.len() == list.tools.len() && names.iter().all(|name| names::is_tool_name(name)),
        "{names:?}"
    );
    for tool in &list.tools {
        let parameters = &tool.schema.parameters;
        assert!(parameters["type"] == "object" && parameters["properties"].is_object(), "{parameters}");
        assert!(parameters.to_string().len() <= 64 * 1024, "{}", parameters.to_string().len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::{fs, path::Path};

    #[test]
    fn every_seed_passes() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/mcp_messages");
        let seeds: Vec<_> = fs::read_dir(seeds).unwrap().map(|seed| seed.unwrap().path()).collect();
        assert!(seeds.len() >= 10);
        for seed in seeds {
            let bytes = fs::read(&seed).unwrap();
            super::messages(&bytes);
            // Truncated at any position, as by a process that dies.
            for end in (0..bytes.len()).step_by(7) {
                super::messages(&bytes[..end]);
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_passes(
            text in "([{}\\[\\]\",:0-2a\\\\ \n]|\"id\":|\"jsonrpc\":\"2.0\"|\"result\":|\"error\":|\"tools\":|\"name\":\"a\"|\"inputSchema\":|\"properties\":|\"type\":|\"content\":|\"text\"|\\\\ud83d|null|true){0,60}"
        ) {
            super::messages(text.as_bytes());
        }
    }
}
