//! A server's list of tools, checked against the limits of models.

use crate::server::McpServer;
use pudu_base::ToolSpec;
use rmcp::{
    RoleClient,
    model::{PaginatedRequestParams, Tool},
    service::{Peer, ServiceError},
};
use serde_json::Value;

/// The wire to a server, cheap to clone. Requests on it fail once its session has ended.
pub(crate) type McpWire = Peer<RoleClient>;

/// A server may have so many tools; a model could not tell more apart.
const TOOLS: usize = 512;
/// It may tell of them in so many pages.
const PAGES: usize = 64;
/// A tool may describe itself with so many characters.
const ABOUT: usize = 8_000;
/// And its arguments with so many bytes of schema.
const SCHEMA: usize = 64 * 1024;
/// Model providers take names of so many characters.
const NAME: usize = 64;

/// A tool that can be offered to a model.
pub(crate) struct ListedTool {
    /// The server's own name of it.
    pub(crate) remote: String,
    /// The tool's description for the model.
    pub(crate) spec: ToolSpec,
}

/// Asks a server for its tools; what cannot be offered is left out with a warning.
pub(crate) async fn ask(wire: &McpWire, server: &McpServer) -> Result<Vec<ListedTool>, ServiceError> {
    let mut found = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let page = wire.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        found.extend(page.tools.into_iter().filter_map(|tool| offer(tool, server)));
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() > TOOLS {
            break;
        }
    }
    if cursor.is_some() || found.len() > TOOLS {
        tracing::warn!(server = server.name, "dropped tools of MCP server beyond the first {TOOLS}");
        found.truncate(TOOLS);
    }
    Ok(found)
}

fn offer(tool: Tool, server: &McpServer) -> Option<ListedTool> {
    let remote = tool.name.into_owned();
    if server.off.contains(&remote) {
        return None;
    }
    let name = if server.prefix { format!("{}_{remote}", server.name) } else { remote.clone() };
    let parameters = Value::Object((*tool.input_schema).clone());
    if let Err(why) = fits(&name, &parameters) {
        let name: String = name.chars().take(2 * NAME).collect();
        tracing::warn!(server = server.name, tool = name, "dropped tool of MCP server: {why}");
        return None;
    }
    let about = tool.description.unwrap_or_default().chars().take(ABOUT).collect();
    // Whether a call may be repeated after a crash is not believed on a stranger's word.
    Some(ListedTool { remote, spec: ToolSpec { name, description: about, parameters, idempotent: false } })
}

fn fits(name: &str, parameters: &Value) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > NAME || !name.chars().all(plain) {
        return Err("models take names of up to 64 letters, digits, _ and - (server and tool together)");
    }
    if parameters.to_string().len() > SCHEMA {
        return Err("its schema is too large");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_models_refuse_are_left_out() {
        let check = |name: &str, good: bool| assert_eq!(fits(name, &json!({})).is_ok(), good, "{name}");
        check("github_create-issue", true);
        check(&"x".repeat(64), true);
        check(&"x".repeat(65), false);
        check("my server_search", false);
        check("files_lesen·ä", false);
        check("", false);
        assert!(fits("big", &json!({ "description": "x".repeat(SCHEMA) })).is_err());
    }
}
