//! Bots that can be linked, and the caller's identities on chat platforms. Requests and responses have DeerFlow's
//! shapes.

use super::pairing::{self, ConnectCode};
use crate::{ApiError, Caller, GatewayState, Json, auth::caller::CallerRole};
use axum::{extract::Path, http::StatusCode};
use pudu_base::{UserId, digest};
use pudu_channels::HealthState;
use pudu_dispatch::{GOOD_FOR, local};
use pudu_kit::clock;
use pudu_store::Identity;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Method of linking: the person sends the bot a code. A link would not let them confirm the user that they join.
const MODE: &str = "binding_code";
/// Length of a connection's id, in characters.
const ID_CHARS: usize = 32;

/// Bots that can be linked.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LinkProviders {
    /// Whether there are any.
    enabled: bool,
    providers: Vec<LinkProvider>,
}

/// A bot that can be linked.
#[derive(Serialize, JsonSchema)]
struct LinkProvider {
    provider: String,
    display_name: String,
    enabled: bool,
    configured: bool,
    connectable: bool,
    unavailable_reason: Option<String>,
    auth_mode: &'static str,
    /// `connected` or `not_connected`.
    connection_status: &'static str,
    /// Always empty.
    credential_fields: Vec<Value>,
    /// Always empty.
    credential_values: Map<String, Value>,
}

/// Lists the bots. `provider` is the account's name: that of its platform, unless the operator chose another.
pub(crate) async fn providers(
    gateway: GatewayState,
    caller: Caller,
) -> Result<Json<LinkProviders>, ApiError> {
    let linked = gateway.linked(&caller.user).await?;
    let accounts = gateway.0.shared.accounts.all().into_iter();
    let providers = accounts.filter(|(name, _)| name != local::ACCOUNT).map(|(name, account)| {
        let channel = account.channel();
        let running = matches!(channel.health().state, HealthState::Ready | HealthState::Degraded);
        let display = display(channel.platform());
        let display_name =
            if name == channel.platform() { display.to_owned() } else { format!("{display} ({name})") };
        let is_linked = linked.iter().any(|identity| identity.account == name);
        LinkProvider {
            unavailable_reason: (!running).then(|| format!("{display_name} is not connected at the moment.")),
            provider: name,
            display_name,
            enabled: true,
            configured: true,
            connectable: running,
            auth_mode: MODE,
            connection_status: if is_linked { "connected" } else { "not_connected" },
            credential_fields: Vec::new(),
            credential_values: Map::new(),
        }
    });
    let providers: Vec<LinkProvider> = providers.collect();
    Ok(Json(LinkProviders { enabled: !providers.is_empty(), providers }))
}

fn display(platform: &str) -> &str {
    match platform {
        "telegram" => "Telegram",
        "slack" => "Slack",
        "discord" => "Discord",
        "feishu" => "Feishu",
        "dingtalk" => "DingTalk",
        other => other,
    }
}

/// The caller's identities on chat platforms.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LinkedIdentities {
    connections: Vec<LinkedIdentity>,
}

/// An identity of the caller's on a chat platform.
#[derive(Serialize, JsonSchema)]
struct LinkedIdentity {
    id: String,
    provider: String,
    /// Always `connected`.
    status: &'static str,
    external_account_id: String,
    external_account_name: String,
    /// Always null.
    workspace_id: Option<String>,
    /// Always null.
    workspace_name: Option<String>,
    /// Always empty.
    scopes: Vec<String>,
    metadata: LinkNotes,
}

/// Metadata of a linked identity.
#[derive(Serialize, JsonSchema)]
struct LinkNotes {
    connected_at: String,
}

/// Lists the caller's identities on chat platforms.
pub(crate) async fn list(gateway: GatewayState, caller: Caller) -> Result<Json<LinkedIdentities>, ApiError> {
    let linked = gateway.linked(&caller.user).await?;
    Ok(Json(LinkedIdentities { connections: linked.into_iter().map(LinkedIdentity::from).collect() }))
}

impl From<Identity> for LinkedIdentity {
    fn from(identity: Identity) -> Self {
        Self {
            id: id(&identity),
            provider: identity.account,
            status: "connected",
            external_account_id: identity.person,
            external_account_name: identity.name,
            workspace_id: None,
            workspace_name: None,
            scopes: Vec::new(),
            metadata: LinkNotes { connected_at: clock::text(identity.at) },
        }
    }
}

fn id(identity: &Identity) -> String {
    digest(format!("{}\0{}", identity.account, identity.person)).chars().take(ID_CHARS).collect()
}

/// Makes a person on a platform a separate user again.
pub(crate) async fn part(
    gateway: GatewayState,
    caller: Caller,
    Path(connection): Path<String>,
) -> Result<StatusCode, ApiError> {
    let shared = &gateway.0.shared;
    let linked = gateway.linked(&caller.user).await?;
    let identity = linked.into_iter().find(|identity| id(identity) == connection);
    let identity = identity.ok_or_else(|| ApiError::not_found("Channel connection not found"))?;
    // This finishes even if the caller disconnects.
    let (own, Identity { account, person, name, .. }) = (shared.clone(), identity);
    let parted =
        shared.tasks.spawn(async move { own.part_person(&account, &person, &name).await.map(drop) }).await;
    parted.map_err(|_| ApiError::internal("the request failed; see the log for the reason"))??;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a code. A person who sends it to the bot becomes the same user as the caller. The operator's token, which
/// belongs to no user, instead gets a code that admits a person.
pub(crate) async fn connect(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ConnectCode>, ApiError> {
    if caller.role == CallerRole::Admin && caller.user == UserId::local() {
        return pairing::connect(&gateway, &name).await.map(Json);
    }
    let shared = &gateway.0.shared;
    if name == local::ACCOUNT || shared.accounts.get(&name).is_none() {
        return Err(ApiError::not_found("Unknown channel provider"));
    }
    if !gateway.0.sign_in.may_offer_link(&caller.user) {
        let detail = "Too many pending channel connection codes. Try again later.";
        return Err(ApiError::too_many(detail));
    }
    let code = shared.offer_join_of(&caller.user).await.map_err(|error| {
        tracing::error!("failed to create code: {error:#}");
        ApiError::unavailable("the change could not be stored; try again")
    })?;
    Ok(Json(ConnectCode {
        provider: name,
        mode: MODE,
        url: None,
        instruction: format!("Send /connect {code} to the bot in a private chat."),
        code,
        expires_in: GOOD_FOR.as_secs(),
    }))
}

impl GatewayState {
    /// Returns a user's identities on chat platforms.
    async fn linked(&self, user: &UserId) -> Result<Vec<Identity>, ApiError> {
        let identities = self.db().identities().await?.into_iter();
        Ok(identities
            .filter(|identity| identity.user == *user && identity.account != local::ACCOUNT)
            .collect())
    }
}
