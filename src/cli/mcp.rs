//! `pudu mcp`: lists and tests the MCP servers of the extensions file, and logs in at them.

mod login;

use super::{remote::ApiRequest, storage::several};
use anyhow::Result;
use clap::Subcommand;
use pudu_base::{ToolServerReport, ToolServerState};
use pudu_config::Start;
use pudu_net::reqwest::Method;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// List the MCP servers of this folder's daemon, with their state and tools.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Log in at an MCP server over HTTP, in a browser on this machine.
    Login {
        /// Name of the server: its key under `mcpServers`.
        name: String,
        /// Port of this machine to which the browser returns (default: a free one).
        #[arg(long, default_value_t = 0, hide_default_value = true)]
        port: u16,
    },
    /// Connect to MCP servers, list their tools and the time that it took, and suggest fixes.
    Test {
        /// Name of the server: its key under `mcpServers` (default: all servers).
        name: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Deserialize)]
struct ServersAnswer {
    servers: Vec<ToolServerReport>,
}

/// Runs `pudu mcp`.
pub(super) async fn mcp(start: &Start, verb: &McpCommand) -> Result<String> {
    let (request, json) = match verb {
        McpCommand::Login { name, port } => return login::login(start, name, *port).await,
        McpCommand::List { json } => (ApiRequest::get(&["mcp", "servers"]), json),
        // It changes nothing in the store.
        McpCommand::Test { name, json } => {
            let request = ApiRequest::get(&["mcp", "test"]).method(Method::POST);
            (request.body(json!({ "server_name": name })).long(), json)
        }
    };
    let answer = request.send(start).await?;
    if *json {
        return Ok(serde_json::to_string_pretty(&answer)?);
    }
    let ServersAnswer { servers } = serde_json::from_value(answer)?;
    if servers.is_empty() {
        return Ok("There are no MCP servers; see docs/extensions.md.".to_owned());
    }
    Ok(servers.iter().map(describe).collect::<Vec<_>>().join("\n"))
}

/// Renders one server: a line with its state, then its tools, the problem and the notes.
fn describe(server: &ToolServerReport) -> String {
    let state = match server.state {
        ToolServerState::Disabled => "disabled".to_owned(),
        ToolServerState::Stopped => "pudu is not running; `pudu mcp test` connects to this server".to_owned(),
        ToolServerState::Starting => "starting".to_owned(),
        ToolServerState::Away => "failed".to_owned(),
        ToolServerState::Ready => {
            let time = server.seconds.map(|seconds| format!(" in {seconds:.1} s")).unwrap_or_default();
            format!("ready{time}, {}", several(server.tools.len() as u64, "tool"))
        }
    };
    let mut lines = vec![format!("{}: {state}", server.name)];
    let mut add = |title: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("    {title}: {text}"));
        }
    };
    add("tools", server.tools.join(", "));
    add("disabled", server.disabled_tools.join(", "));
    add("problem", server.problem.clone().unwrap_or_default());
    add("fix", server.fix.clone().unwrap_or_default());
    for note in &server.notes {
        add("note", note.clone());
    }
    lines.join("\n")
}
