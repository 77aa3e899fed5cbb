//! Bots that a user can link to, and the caller's identities on chat platforms. Shapes are DeerFlow's.

use super::{
    GatewayState, JsonReply,
    caller::{Caller, CallerRole},
    errors::refuse,
    people,
};
use crate::json::Json;
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use pudu_channels::HealthState;
use pudu_client::{
    base::{UserId, digest},
    store::{Identity, StoreError},
};
use pudu_dispatch::{GOOD_FOR, bus::STORE_TIMEOUT, local};
use pudu_kit::clock;
use serde_json::{Value, json};

/// Way of linking: the person sends the bot a code. A link would not ask for the user that they join.
const MODE: &str = "binding_code";
/// Characters of a connection's id.
const ID_CHARS: usize = 32;

/// Lists the bots. `provider` is the name of the account, which is that of its platform unless the operator gave it another.
pub(super) async fn providers(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    let linked = match gateway.linked(&caller.user).await {
        Ok(linked) => linked,
        Err(error) => return failed(&error),
    };
    let accounts = gateway.0.shared.accounts.all().into_iter();
    let providers = accounts.filter(|(name, _)| name != local::ACCOUNT).map(|(name, account)| {
        let channel = account.channel();
        let running = matches!(channel.health().state, HealthState::Ready | HealthState::Degraded);
        let display = display(channel.platform());
        let display =
            if name == channel.platform() { display.to_owned() } else { format!("{display} ({name})") };
        let reason = (!running).then(|| format!("{display} is not connected just now."));
        let is_linked = linked.iter().any(|identity| identity.account == name);
        json!({
            "provider": name,
            "display_name": display,
            "enabled": true,
            "configured": true,
            "connectable": running,
            "unavailable_reason": reason,
            "auth_mode": MODE,
            "connection_status": if is_linked { "connected" } else { "not_connected" },
            "credential_fields": [],
            "credential_values": {},
        })
    });
    let providers: Vec<Value> = providers.collect();
    (StatusCode::OK, Json(json!({ "enabled": !providers.is_empty(), "providers": providers })))
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

/// Lists the caller's identities on chat platforms.
pub(super) async fn list(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    match gateway.linked(&caller.user).await {
        Ok(linked) => {
            let connections: Vec<Value> = linked.iter().map(connection).collect();
            (StatusCode::OK, Json(json!({ "connections": connections })))
        }
        Err(error) => failed(&error),
    }
}

fn connection(identity: &Identity) -> Value {
    json!({
        "id": id(identity),
        "provider": identity.account,
        "status": "connected",
        "external_account_id": identity.person,
        "external_account_name": identity.name,
        "workspace_id": null,
        "workspace_name": null,
        "scopes": [],
        "metadata": { "connected_at": clock::text(identity.at) },
    })
}

fn id(identity: &Identity) -> String {
    digest(format!("{}\0{}", identity.account, identity.person)).chars().take(ID_CHARS).collect()
}

/// Makes a person of a chat a separate user again.
pub(super) async fn part(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(connection): Path<String>,
) -> Response {
    let shared = &gateway.0.shared;
    let linked = match gateway.linked(&caller.user).await {
        Ok(linked) => linked,
        Err(error) => return failed(&error).into_response(),
    };
    let Some(identity) = linked.iter().find(|identity| id(identity) == connection) else {
        return refuse(StatusCode::NOT_FOUND, "Channel connection not found");
    };
    // It comes to its end when the caller goes.
    let (own, Identity { account, person, name, .. }) = (shared.clone(), identity.clone());
    let parted =
        shared.tasks.spawn(async move { own.part_person(&account, &person, &name).await.map(drop) }).await;
    match parted {
        Ok(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(error)) => failed(&error).into_response(),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "that could not be done just now"),
    }
}

/// Makes a code. The person who shows it to the bot is from then on the same user as the caller. The operator's token,
/// which belongs to no user, gets a code that admits a person instead.
pub(super) async fn connect(state: State<GatewayState>, caller: Caller, path: Path<String>) -> JsonReply {
    if caller.role == CallerRole::Admin && caller.user == UserId::local() {
        return people::connect(state, path).await;
    }
    let (State(gateway), Path(name)) = (state, path);
    let shared = &gateway.0.shared;
    if name == local::ACCOUNT || shared.accounts.get(&name).is_none() {
        return (StatusCode::NOT_FOUND, Json(json!({ "detail": "Unknown channel provider" })));
    }
    if !gateway.0.sign_in.may_offer_link(&caller.user) {
        let detail = "Too many pending channel connection codes. Try again later.";
        return (StatusCode::TOO_MANY_REQUESTS, Json(json!({ "detail": detail })));
    }
    match shared.offer_join_of(&caller.user).await {
        Ok(code) => {
            let answer = json!({
                "provider": name,
                "mode": MODE,
                "url": null,
                "code": code,
                "instruction": format!("Send /connect {code} to the bot in a private chat."),
                "expires_in": GOOD_FOR.as_secs(),
            });
            (StatusCode::OK, Json(answer))
        }
        Err(error) => {
            tracing::error!("failed to make code: {error:#}");
            let detail = "that could not be stored just now";
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": detail })))
        }
    }
}

impl GatewayState {
    /// Returns a user's identities on chat platforms.
    async fn linked(&self, user: &UserId) -> Result<Vec<Identity>, StoreError> {
        let identities = self.0.shared.db.within(STORE_TIMEOUT).identities().await?.into_iter();
        Ok(identities
            .filter(|identity| identity.user == *user && identity.account != local::ACCOUNT)
            .collect())
    }
}

fn failed(error: &StoreError) -> JsonReply {
    tracing::error!(%error, "failed to read who is which user");
    let detail = "the store does not answer just now; try again";
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "detail": detail })))
}
