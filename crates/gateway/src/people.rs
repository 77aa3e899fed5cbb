//! People who are known to an account by a code, and codes for new ones.

use super::{GatewayState, JsonReply};
use crate::json::Json;
use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use pudu_dispatch::{GOOD_FOR, bus::STORE_TIMEOUT};
use serde_json::json;

/// Makes a code by which one person can connect.
pub(super) async fn connect(State(gateway): State<GatewayState>, Path(name): Path<String>) -> JsonReply {
    let shared = &gateway.0.shared;
    let Some(account) = shared.accounts.get(&name) else { return unknown(&name) };
    if !account.policy().access.pairing {
        let why = format!("set `channels.{name}.pairing: true` first: without it a code opens nothing");
        return (StatusCode::CONFLICT, Json(json!({ "detail": why })));
    }
    match shared.offer_code(&name).await {
        Ok(Some(code)) => {
            let url = account.channel().connect_link(&code);
            let mode = if url.is_some() { "deep_link" } else { "binding_code" };
            let instruction = format!("Send this to the bot: /connect {code}");
            let answer = json!({
                "provider": account.channel().platform(),
                "mode": mode,
                "url": url,
                "code": code,
                "instruction": instruction,
                "expires_in": GOOD_FOR.as_secs(),
            });
            (StatusCode::OK, Json(answer))
        }
        Ok(None) => {
            let why = "too many codes are unused; they go after ten minutes";
            (StatusCode::TOO_MANY_REQUESTS, Json(json!({ "detail": why })))
        }
        Err(error) => failed(&error),
    }
}

/// Lists the people that an account knows by a code.
pub(super) async fn list(State(gateway): State<GatewayState>, Path(name): Path<String>) -> JsonReply {
    match gateway.0.shared.db.within(STORE_TIMEOUT).paired().await {
        Ok(paired) => {
            let own = paired.into_iter().filter(|paired| paired.account == name);
            let people =
                own.map(|paired| json!({ "id": paired.person, "name": paired.name, "since": paired.at }));
            (StatusCode::OK, Json(json!({ "people": people.collect::<Vec<_>>() })))
        }
        Err(error) => failed(&error.into()),
    }
}

/// Forgets a person that an account knows by a code.
pub(super) async fn forget(
    State(gateway): State<GatewayState>,
    Path((name, person)): Path<(String, String)>,
) -> JsonReply {
    match gateway.0.shared.unpair(&name, &person).await {
        Ok(true) => (StatusCode::OK, Json(json!({ "success": true }))),
        Ok(false) => (StatusCode::NOT_FOUND, Json(json!({ "detail": "the account does not know them" }))),
        Err(error) => failed(&error.into()),
    }
}

fn unknown(name: &str) -> JsonReply {
    (StatusCode::NOT_FOUND, Json(json!({ "detail": format!("there is no account `{name}`") })))
}

fn failed(error: &anyhow::Error) -> JsonReply {
    tracing::error!("failed to make pairing code: {error:#}");
    (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({ "detail": "that could not be stored just now" })))
}
