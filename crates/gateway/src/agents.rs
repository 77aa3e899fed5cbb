//! Custom agents: which there are, making, changing and taking them away. Shapes are DeerFlow's.
//!
//! The whole API is off unless `agents_api.enabled`. Administrators make and change shared agents. Other users find those,
//! and make and change agents of their own.

use super::{GatewayState, JsonReply, caller::Caller};
use crate::{json::Json, query::Query};
use axum::{
    extract::{Path, Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use pudu_client::{
    agents::{AgentChange, AgentError, AgentProfile, Agents, CustomAgent, normal, read_options},
    base::{Sampling, Thinking},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// Lets through where the operator switched this on.
pub(super) async fn enabled(State(gateway): State<GatewayState>, request: Request, next: Next) -> Response {
    if !gateway.0.watcher.current().agents_api {
        let why = "the agents API is off; `agents_api: {enabled: true}` in config.yaml switches it on";
        return (StatusCode::FORBIDDEN, Json(json!({ "detail": why }))).into_response();
    }
    next.run(request).await
}

/// Lists the agents that the caller finds, by name. Those that cannot be used are named apart.
pub(super) async fn list(State(gateway): State<GatewayState>, caller: Caller) -> Json<Value> {
    let roster = gateway.0.shared.client.roster(Some(&caller.user)).await;
    let broken: Vec<Value> =
        roster.broken.iter().map(|broken| json!({ "name": broken.name, "detail": broken.why })).collect();
    Json(json!({ "agents": roster.agents.iter().map(shown).collect::<Vec<_>>(), "broken": broken }))
}

/// A name to look at.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AgentNameQuery {
    name: String,
}

/// Answers whether an agent of a name can be made.
pub(super) async fn check(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Query(AgentNameQuery { name }): Query<AgentNameQuery>,
) -> JsonReply {
    let name = match normal(&name) {
        Ok(name) => name,
        Err(error) => return refused(&error),
    };
    let wanted = name.clone();
    let vacant = work(&gateway, &caller, move |agents| agents.vacant(&wanted)).await;
    (StatusCode::OK, Json(json!({ "available": vacant.is_ok(), "name": name })))
}

/// Shows one agent.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> JsonReply {
    told(StatusCode::OK, work(&gateway, &caller, move |agents| agents.find(&name)).await)
}

/// An agent to make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAgent {
    name: String,
    #[serde(default)]
    description: String,
    model: Option<String>,
    tool_groups: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    #[serde(default)]
    soul: String,
    #[serde(default)]
    model_settings: Value,
    #[serde(default)]
    thinking_enabled: Value,
    #[serde(default)]
    reasoning_effort: Value,
}

/// Makes an agent: a shared one for an administrator, or else one of the caller's own.
pub(super) async fn create(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Json(request): Json<NewAgent>,
) -> JsonReply {
    let NewAgent { name, description: about, model, tool_groups, skills, soul, .. } = request;
    let options = [request.model_settings, request.thinking_enabled, request.reasoning_effort];
    let (thinking, sampling) =
        match read_options(&OPTIONS.map(str::to_owned).into_iter().zip(options).collect()) {
            Ok(options) => options,
            Err(why) => return unprocessable(&why),
        };
    if let Some(refusal) = unknown_model(&gateway, model.as_deref()) {
        return refusal;
    }
    if let Some(refusal) = unknown_parts(&gateway, &caller, tool_groups.as_deref(), skills.as_deref()).await {
        return refusal;
    }
    let profile = AgentProfile { about, model, thinking, sampling, tool_groups, skills, soul };
    told(StatusCode::CREATED, work(&gateway, &caller, move |agents| agents.create(&name, &profile)).await)
}

/// Change of an agent. A missing key keeps its value; null means all or the default. Unknown keys are refused, because
/// a misspelt key would leave an agent with more than it should have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    description: Option<String>,
    #[serde(default, deserialize_with = "there")]
    model: Option<Option<String>>,
    #[serde(default, deserialize_with = "there")]
    tool_groups: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "there")]
    skills: Option<Option<Vec<String>>>,
    soul: Option<String>,
    #[serde(default, deserialize_with = "there")]
    model_settings: Option<Option<Value>>,
    #[serde(default, deserialize_with = "there")]
    thinking_enabled: Option<Option<Value>>,
    #[serde(default, deserialize_with = "there")]
    reasoning_effort: Option<Option<Value>>,
}

/// Keys of how an agent's model thinks and answers.
const OPTIONS: [&str; 3] = ["model_settings", "thinking_enabled", "reasoning_effort"];

impl Edit {
    /// Returns the thinking and sampling options. Options that the edit does not set keep their values.
    fn options(&self, now: &AgentProfile) -> Result<(Option<Thinking>, Sampling), String> {
        let said = [&self.model_settings, &self.thinking_enabled, &self.reasoning_effort];
        // Only an effort can mean that it thinks.
        let is_off = matches!(&self.thinking_enabled, Some(Some(Value::Bool(false))));
        let each = OPTIONS.iter().zip(said).zip(settings(now)).map(|((key, said), now)| {
            let now = if *key == "reasoning_effort" && is_off { Value::Null } else { now };
            ((*key).to_owned(), said.clone().map_or(now, |said| said.unwrap_or(Value::Null)))
        });
        read_options(&each.collect())
    }
}

/// Distinguishes null from a missing key.
fn there<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Changes an agent, from its next run on.
pub(super) async fn update(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Json(edit): Json<Edit>,
) -> JsonReply {
    let Edit { description, model, tool_groups, skills, soul, .. } = &edit;
    if let Some(refusal) = unknown_model(&gateway, model.as_ref().and_then(Option::as_deref)) {
        return refusal;
    }
    let (wanted_groups, wanted_skills) =
        (tool_groups.as_ref().and_then(Option::as_deref), skills.as_ref().and_then(Option::as_deref));
    if let Some(refusal) = unknown_parts(&gateway, &caller, wanted_groups, wanted_skills).await {
        return refusal;
    }
    let change = AgentChange {
        about: description.clone(),
        model: model.clone(),
        tool_groups: tool_groups.clone(),
        skills: skills.clone(),
        soul: soul.clone(),
        ..AgentChange::default()
    };
    let updated = work(&gateway, &caller, move |agents| {
        let now = agents.find(&name)?.profile;
        let (thinking, sampling) = edit.options(&now).map_err(AgentError::Wrong)?;
        agents.update(&name, AgentChange { thinking: Some(thinking), sampling: Some(sampling), ..change })
    });
    told(StatusCode::OK, updated.await)
}

/// Takes an agent away.
pub(super) async fn remove(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
) -> Response {
    match work(&gateway, &caller, move |agents| agents.remove(&name)).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => refused(&error).into_response(),
    }
}

fn unknown_model(gateway: &GatewayState, wanted: Option<&str>) -> Option<JsonReply> {
    let wanted = wanted?;
    let models = gateway.0.shared.client.models();
    if models.iter().any(|model| model.name == wanted) {
        return None;
    }
    Some(unprocessable(&format!("there is no model `{wanted}`")))
}

/// Refuses unknown tool groups and skills: an agent with them has less than its creator expects.
async fn unknown_parts(
    gateway: &GatewayState,
    caller: &Caller,
    groups: Option<&[String]>,
    skills: Option<&[String]>,
) -> Option<JsonReply> {
    let client = &gateway.0.shared.client;
    if let Some(why) = client.unknown_groups(groups.unwrap_or_default()).into_iter().next() {
        return Some(unprocessable(&why));
    }
    let catalog = client.catalog_of(&caller.user).await;
    let unknown = skills.unwrap_or_default().iter().find(|name| catalog.get(name).is_none())?;
    Some(unprocessable(&format!("there is no skill `{unknown}`")))
}

fn unprocessable(detail: &str) -> JsonReply {
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail })))
}

/// Works on agents where it may block.
async fn work<T: Send + 'static>(
    gateway: &GatewayState,
    caller: &Caller,
    work: impl FnOnce(Agents) -> Result<T, AgentError> + Send + 'static,
) -> Result<T, AgentError> {
    let agents = gateway.0.shared.client.agents_of(Some(&caller.user), caller.is_admin());
    tokio::task::spawn_blocking(move || work(agents)).await.unwrap_or_else(|error| {
        Err(AgentError::Io { path: "agents".into(), why: std::io::Error::other(error) })
    })
}

fn told(status: StatusCode, done: Result<CustomAgent, AgentError>) -> JsonReply {
    match done {
        Ok(custom) => (status, Json(shown(&custom))),
        Err(error) => refused(&error),
    }
}

/// Writes how an agent's model thinks and answers, by [`OPTIONS`].
fn settings(profile: &AgentProfile) -> [Value; 3] {
    let Sampling { temperature, max_tokens } = profile.sampling;
    let settings = match (temperature, max_tokens) {
        (None, None) => Value::Null,
        _ => json!({ "temperature": temperature, "max_tokens": max_tokens }),
    };
    let thinks = profile.thinking.map(|thinking| thinking != Thinking::Off);
    [settings, json!(thinks), json!(profile.thinking.and_then(Thinking::effort))]
}

fn shown(custom: &CustomAgent) -> Value {
    let profile = &custom.profile;
    let [model_settings, thinking_enabled, reasoning_effort] = settings(profile);
    json!({
        "name": custom.name,
        "description": profile.about,
        "model": profile.model,
        "tool_groups": profile.tool_groups,
        "skills": profile.skills,
        "soul": profile.soul.trim_end(),
        "model_settings": model_settings,
        "thinking_enabled": thinking_enabled,
        "reasoning_effort": reasoning_effort,
    })
}

fn refused(error: &AgentError) -> JsonReply {
    let status = match error {
        AgentError::Name { .. } | AgentError::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
        AgentError::Unknown(_) => StatusCode::NOT_FOUND,
        AgentError::Shared(_) => StatusCode::FORBIDDEN,
        AgentError::Exists(_) | AgentError::Broken { .. } | AgentError::Legacy(_) | AgentError::Full(_) => {
            StatusCode::CONFLICT
        }
        AgentError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Json(json!({ "detail": error.public_message() })))
}
