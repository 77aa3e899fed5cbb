//! MCP servers of the extensions file, for administrators: shown without secrets, changed, and reconnected. Shapes are
//! DeerFlow's.

use super::mcp_edit as edit;
use crate::{ApiError, Caller, Confirmation, GatewayState, Json};
use pudu_client::skills::{SkillError, Skills};
use pudu_config::extensions;
use pudu_kit::blocking;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The file's key with the servers.
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

/// All servers as they are to be.
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
    gateway.0.shared.reconnect_extensions.notify_one();
    let message = "MCP servers are connected anew; their tools are there from the next run after that";
    Ok(Json(Confirmation::with_message(message)))
}

impl GatewayState {
    async fn mcp_servers(&self) -> Result<Json<ShownServers>, ApiError> {
        let servers = self.with_skills(|skills| skills.state_section(KEY).map(objects)).await?;
        let masked = servers.iter().map(|(name, server)| (name.clone(), edit::display_json(server)));
        Ok(Json(ShownServers { mcp_servers: masked.collect() }))
    }

    /// Changes the servers in the file, reconnects them, and shows them.
    async fn edit_mcp(
        &self,
        change: impl FnOnce(Map<String, Value>) -> Result<Map<String, Value>, ApiError> + Send + 'static,
    ) -> Result<Json<ShownServers>, ApiError> {
        let start = self.0.watcher.start().clone();
        let written = self.with_skills(move |skills| {
            let path = &skills.places().state;
            if let Err(report) = extensions::may_be_changed(path, &start) {
                tracing::error!("refused change of extensions: {report}");
                let detail = "the extensions file is not one that pudu may change; the log says why";
                return Ok(Err(ApiError::conflict(detail)));
            }
            skills.edit_state(KEY, |stored| {
                let changed = change(objects(stored))?;
                extensions::check_servers(&changed, &start).map_err(ApiError::bad_request)?;
                Ok(Value::Object(changed))
            })
        });
        written.await??;
        tracing::info!("changed MCP servers over HTTP");
        self.0.shared.reconnect_extensions.notify_one();
        self.mcp_servers().await
    }

    /// Works on the file where it may block.
    async fn with_skills<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Skills) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let skills = self.client().skills();
        let broken = |error| SkillError::Io { path: "extensions".into(), why: std::io::Error::other(error) };
        blocking(move || work(&skills), broken).await.map_err(|error| {
            tracing::error!(%error, "failed to use extensions file");
            ApiError::internal("the extensions file cannot be used; the log says why")
        })
    }
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
