//! Lists and removes pairings of people with a bot, and creates pairing codes.

use crate::{ApiError, Confirmation, GatewayState, Json};
use axum::extract::Path;
use pudu_dispatch::GOOD_FOR;
use schemars::JsonSchema;
use serde::Serialize;

/// A code for a person in a chat.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Connect")]
pub(crate) struct ConnectCode {
    pub(crate) provider: String,
    /// `binding_code`, or `deep_link` if a link opens the chat.
    pub(crate) mode: &'static str,
    pub(crate) url: Option<String>,
    pub(crate) code: String,
    /// Instruction for the person.
    pub(crate) instruction: String,
    /// Time for which it is valid, in seconds.
    pub(crate) expires_in: u64,
}

/// Creates a code that lets one person pair.
pub(crate) async fn connect(gateway: &GatewayState, name: &str) -> Result<ConnectCode, ApiError> {
    let shared = &gateway.0.shared;
    let account = shared.accounts.get(name);
    let account = account.ok_or_else(|| ApiError::not_found(format!("there is no bot `{name}`")))?;
    if !account.policy().access.pairing {
        let why = format!("set `channels.{name}.pairing: true` first: codes have no effect without it");
        return Err(ApiError::conflict(why));
    }
    let Some(code) = shared.offer_code(name).await.map_err(|error| failed(&error))? else {
        return Err(ApiError::too_many("too many unused codes; a code expires after ten minutes"));
    };
    let url = account.channel().connect_link(&code);
    Ok(ConnectCode {
        provider: account.channel().platform().to_owned(),
        mode: if url.is_some() { "deep_link" } else { "binding_code" },
        url,
        instruction: format!("Send this to the bot: /connect {code}"),
        code,
        expires_in: GOOD_FOR.as_secs(),
    })
}

/// The people who paired with an account.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PairedPersons {
    people: Vec<PairedPerson>,
}

/// A person who paired with an account.
#[derive(Serialize, JsonSchema)]
struct PairedPerson {
    /// The platform's id.
    id: String,
    name: String,
    /// When the code was used, in milliseconds since 1970.
    since: i64,
}

/// Lists the people who paired with an account.
pub(crate) async fn list(
    gateway: GatewayState,
    Path(name): Path<String>,
) -> Result<Json<PairedPersons>, ApiError> {
    let paired = gateway.db().paired().await.map_err(|error| failed(&error.into()))?;
    let own = paired.into_iter().filter(|paired| paired.account == name);
    let person = own.map(|paired| PairedPerson { id: paired.person, name: paired.name, since: paired.at });
    Ok(Json(PairedPersons { people: person.collect() }))
}

/// Removes a person's pairing with an account.
pub(crate) async fn forget(
    gateway: GatewayState,
    Path((name, person)): Path<(String, String)>,
) -> Result<Json<Confirmation>, ApiError> {
    match gateway.0.shared.unpair(&name, &person).await.map_err(|error| failed(&error.into()))? {
        true => Ok(Json(Confirmation::silent())),
        false => Err(ApiError::not_found("this user is not paired with the bot")),
    }
}

fn failed(error: &anyhow::Error) -> ApiError {
    tracing::error!("failed to create pairing code: {error:#}");
    ApiError::internal("the change could not be stored; try again")
}
