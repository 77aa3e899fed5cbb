//! MCP servers of the extensions file, for administrators: shown without secrets, changed, and reconnected. Shapes are
//! DeerFlow's.

use super::{GatewayState, JsonReply, caller::Caller, mcp_edit as edit};
use crate::json::Json;
use axum::{extract::State, http::StatusCode};
use pudu_client::skills::{SkillError, Skills};
use pudu_config::extensions;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The file's key with the servers.
const KEY: &str = "mcpServers";
/// Answer to a caller who is not an administrator.
const ADMIN: &str = "Admin privileges required to manage MCP configuration.";

/// Shows the servers.
pub(super) async fn show(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    if !caller.is_admin() {
        return told(StatusCode::FORBIDDEN, ADMIN);
    }
    gateway.mcp_servers().await
}

/// All servers as they are to be.
#[derive(Deserialize, JsonSchema)]
pub(super) struct NewServers {
    mcp_servers: Map<String, Value>,
}

/// Replaces the servers.
pub(super) async fn replace(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Json(NewServers { mcp_servers: wanted }): Json<NewServers>,
) -> JsonReply {
    if !caller.is_admin() {
        return told(StatusCode::FORBIDDEN, ADMIN);
    }
    let commands = gateway.0.watcher.current().mcp_commands.clone();
    gateway.edit_mcp(move |stored| edit::replaced(&wanted, &stored, &commands)).await
}

/// The switch of a server.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ServerSwitch {
    server_name: String,
    enabled: bool,
}

/// Switches one server on or off.
pub(super) async fn switch(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Json(ServerSwitch { server_name: name, enabled }): Json<ServerSwitch>,
) -> JsonReply {
    if !caller.is_admin() {
        return told(StatusCode::FORBIDDEN, ADMIN);
    }
    let switched = move |mut servers: Map<String, Value>| match servers.get_mut(&name) {
        Some(Value::Object(server)) => {
            server.insert("enabled".to_owned(), enabled.into());
            Ok(servers)
        }
        _ => {
            let detail = format!("MCP server '{name}' not found");
            Err(edit::McpRefusal { status: StatusCode::NOT_FOUND, detail })
        }
    };
    gateway.edit_mcp(switched).await
}

/// Reconnects all servers.
pub(super) async fn reset(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    if !caller.is_admin() {
        return told(StatusCode::FORBIDDEN, ADMIN);
    }
    gateway.0.shared.reconnect_extensions.notify_one();
    let message = "MCP servers are connected anew; their tools are there from the next run after that";
    (StatusCode::OK, Json(json!({ "success": true, "message": message })))
}

impl GatewayState {
    async fn mcp_servers(&self) -> JsonReply {
        let read = self.with_skills(|skills| servers(skills.state_section(KEY)));
        match read.await {
            Ok(servers) => {
                let masked: Map<String, Value> =
                    servers.iter().map(|(name, server)| (name.clone(), edit::shown(server))).collect();
                (StatusCode::OK, Json(json!({ "mcp_servers": masked })))
            }
            Err(error) => failed(&error),
        }
    }

    /// Changes the servers in the file, reconnects them, and shows them.
    async fn edit_mcp(
        &self,
        change: impl FnOnce(Map<String, Value>) -> Result<Map<String, Value>, edit::McpRefusal> + Send + 'static,
    ) -> JsonReply {
        let start = self.0.watcher.start().clone();
        let written = self.with_skills(move |skills| {
            let path = &skills.places().state;
            if let Err(report) = extensions::may_be_changed(path, &start) {
                tracing::error!("refused change of extensions: {report}");
                let detail =
                    "the extensions file is not one that pudu may change; the log says why".to_owned();
                return Ok(Err(edit::McpRefusal { status: StatusCode::CONFLICT, detail }));
            }
            skills.edit_state(KEY, |stored| {
                let changed = change(objects(stored))?;
                extensions::check_servers(&changed, &start).map_err(edit::McpRefusal::bad)?;
                Ok(Value::Object(changed))
            })
        });
        match written.await {
            Ok(Ok(())) => {
                tracing::info!("changed MCP servers over HTTP");
                self.0.shared.reconnect_extensions.notify_one();
                self.mcp_servers().await
            }
            Ok(Err(refusal)) => told(refusal.status, &refusal.detail),
            Err(error) => failed(&error),
        }
    }

    /// Works on the file where it may block.
    async fn with_skills<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Skills) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        let skills = self.0.shared.client.skills();
        tokio::task::spawn_blocking(move || work(&skills)).await.unwrap_or_else(|error| {
            Err(SkillError::Io { path: "extensions".into(), why: std::io::Error::other(error) })
        })
    }
}

fn servers(section: Result<Option<Value>, SkillError>) -> Result<Map<String, Value>, SkillError> {
    section.map(objects)
}

/// Takes the servers that are objects; others the daemon does not start with.
fn objects(section: Option<Value>) -> Map<String, Value> {
    match section {
        Some(Value::Object(servers)) => {
            servers.into_iter().filter(|(_, server)| server.is_object()).collect()
        }
        _ => Map::new(),
    }
}

fn failed(error: &SkillError) -> JsonReply {
    tracing::error!(%error, "failed to use extensions file");
    told(StatusCode::INTERNAL_SERVER_ERROR, "the extensions file cannot be used; the log says why")
}

fn told(status: StatusCode, detail: &str) -> JsonReply {
    (status, Json(json!({ "detail": detail })))
}
