//! MCP servers of the extensions file, for administrators: shows them without secrets, changes them, and reconnects
//! them. Requests and responses have DeerFlow's shapes.

use super::mcp_edit as edit;
use crate::{ApiError, Caller, Confirmation, GatewayState, Json};
use pudu_base::ToolServerReport;
use pudu_config::extensions;
use pudu_kit::blocking;
use pudu_skills::{SkillError, Skills};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Key of the servers in the file.
const KEY: &str = "mcpServers";

/// The MCP servers without secrets.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Servers")]
pub(crate) struct ShownServers {
    mcp_servers: Map<String, Value>,
}

/// Shows the servers.
pub(crate) async fn show(gateway: GatewayState, caller: Caller) -> Result<Json<ShownServers>, ApiError> {
    check_admin(&caller)?;
    gateway.mcp_servers().await
}

/// Refuses a caller who is not an administrator.
fn check_admin(caller: &Caller) -> Result<(), ApiError> {
    match caller.is_admin() {
        true => Ok(()),
        false => Err(ApiError::forbidden("Admin privileges required to manage MCP configuration.")),
    }
}

/// The complete new set of servers.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewServers {
    mcp_servers: Map<String, Value>,
}

/// Replaces the servers.
pub(crate) async fn replace(
    gateway: GatewayState,
    caller: Caller,
    Json(NewServers { mcp_servers: wanted }): Json<NewServers>,
) -> Result<Json<ShownServers>, ApiError> {
    check_admin(&caller)?;
    let commands = gateway.config().mcp_commands.clone();
    gateway.edit_mcp(move |stored| edit::replaced(&wanted, &stored, &commands)).await
}

/// The switch of a server.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ServerSwitch {
    server_name: String,
    enabled: bool,
}

/// Switches one server on or off.
pub(crate) async fn switch(
    gateway: GatewayState,
    caller: Caller,
    Json(ServerSwitch { server_name: name, enabled }): Json<ServerSwitch>,
) -> Result<Json<ShownServers>, ApiError> {
    check_admin(&caller)?;
    let switched = move |mut servers: Map<String, Value>| match servers.get_mut(&name) {
        Some(Value::Object(server)) => {
            server.insert("enabled".to_owned(), enabled.into());
            Ok(servers)
        }
        _ => {
            let detail = format!("MCP server '{name}' not found");
            Err(ApiError::not_found(detail))
        }
    };
    gateway.edit_mcp(switched).await
}

/// Reconnects all servers.
pub(crate) async fn reset(gateway: GatewayState, caller: Caller) -> Result<Json<Confirmation>, ApiError> {
    check_admin(&caller)?;
    gateway.0.shared.servers.reconnect();
    let message = "MCP servers are reconnecting; their tools are available from the next run after that";
    Ok(Json(Confirmation::with_message(message)))
}

/// The state of the servers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerReports {
    servers: Vec<ToolServerReport>,
}

/// Reports the state of each server.
pub(crate) async fn report(gateway: GatewayState, caller: Caller) -> Result<Json<ServerReports>, ApiError> {
    check_admin(&caller)?;
    let servers = Arc::clone(&gateway.0.shared.servers);
    // Without connections, this reads the file.
    let read = blocking(move || Ok(servers.report()), |error| error);
    Ok(Json(ServerReports { servers: read.await.unwrap_or_default() }))
}

/// The server to test.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct TestedServer {
    /// Its name; all servers if it is missing.
    server_name: Option<String>,
}

/// Connects to one server or to all, and reports the outcome.
pub(crate) async fn test(
    gateway: GatewayState,
    caller: Caller,
    Json(TestedServer { server_name: name }): Json<TestedServer>,
) -> Result<Json<ServerReports>, ApiError> {
    check_admin(&caller)?;
    let servers = Arc::clone(&gateway.0.shared.servers);
    let tested = servers.test(name.as_deref()).await;
    let servers = tested.map_err(|why| {
        tracing::error!("failed to load extensions: {why}");
        ApiError::conflict("the extensions file cannot be used; see the log for the reason")
    })?;
    match name {
        Some(name) if servers.is_empty() => {
            Err(ApiError::not_found(format!("MCP server '{name}' not found")))
        }
        _ => Ok(Json(ServerReports { servers })),
    }
}

impl GatewayState {
    async fn mcp_servers(&self) -> Result<Json<ShownServers>, ApiError> {
        let servers = self.with_skills(|skills| skills.state_section(KEY).map(objects)).await?;
        let masked = servers.iter().map(|(name, server)| (name.clone(), edit::display_json(server)));
        Ok(Json(ShownServers { mcp_servers: masked.collect() }))
    }

    /// Changes the servers in the file, and shows them. The daemon reconnects those that changed.
    async fn edit_mcp(
        &self,
        change: impl FnOnce(Map<String, Value>) -> Result<Map<String, Value>, ApiError> + Send + 'static,
    ) -> Result<Json<ShownServers>, ApiError> {
        let start = self.0.watcher.start().clone();
        let written = self.with_skills(move |skills| {
            let path = &skills.places().state;
            if let Err(report) = extensions::may_be_changed(path, &start) {
                tracing::error!("refused change of extensions: {report}");
                let detail = "pudu cannot change the extensions file; see the log for the reason";
                return Ok(Err(ApiError::conflict(detail)));
            }
            skills.edit_state(KEY, |stored| {
                let changed = change(objects(stored))?;
                extensions::check_servers(&changed, &start).map_err(ApiError::bad_request)?;
                Ok(Value::Object(changed))
            })
        });
        written.await??;
        // The daemon follows edits of the file.
        tracing::info!("changed MCP servers over HTTP");
        self.mcp_servers().await
    }

    /// Runs blocking work on the file.
    async fn with_skills<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Skills) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let skills = self.agent().skills();
        let broken = |error| SkillError::Io { path: "extensions".into(), why: std::io::Error::other(error) };
        blocking(move || work(&skills), broken).await.map_err(|error| {
            tracing::error!(%error, "failed to use extensions file");
            ApiError::internal("the extensions file cannot be used; see the log for the reason")
        })
    }
}

/// Returns the servers that are objects. The daemon does not start with any others.
fn objects(section: Option<Value>) -> Map<String, Value> {
    match section {
        Some(Value::Object(servers)) => {
            servers.into_iter().filter(|(_, server)| server.is_object()).collect()
        }
        _ => Map::new(),
    }
}
