//! Custom agents: list, create, change and delete. Requests and responses have DeerFlow's shapes.
//!
//! The whole API is off unless `agents_api.enabled` is set. Administrators create and change shared agents. Other users
//! can use those, and create and change agents of their own.

use crate::{ApiError, Caller, Created, GatewayState, Json, Query};
use axum::{
    extract::{Path, Request},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use pudu_agent::agents::{AgentChange, AgentError, AgentProfile, Agents, CustomAgent, normal, read_options};
use pudu_base::{Sampling, Thinking};
use pudu_kit::blocking;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// Admits a request if the operator has enabled this API.
pub(crate) async fn enabled(
    gateway: GatewayState,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !gateway.config().agents_api {
        let why = "the agents API is disabled; enable it with `agents_api: {enabled: true}` in config.yaml";
        return Err(ApiError::forbidden(why));
    }
    Ok(next.run(request).await)
}

/// The agents available to a user.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ListedAgents {
    agents: Vec<ShownAgent>,
    /// Agents that cannot be used.
    broken: Vec<UnusableAgent>,
}

/// A custom agent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub(crate) struct ShownAgent {
    name: String,
    description: String,
    /// Its model; null for the default.
    model: Option<String>,
    /// The groups of its tools; null for all.
    tool_groups: Option<Vec<String>>,
    /// Its skills; null for all.
    skills: Option<Vec<String>>,
    /// Its character, in Markdown.
    soul: String,
    model_settings: Value,
    thinking_enabled: Value,
    reasoning_effort: Value,
}

/// An agent that cannot be used, and the reason.
#[derive(Serialize, JsonSchema)]
struct UnusableAgent {
    name: String,
    detail: String,
}

/// Lists the agents available to the caller, by name.
pub(crate) async fn list(gateway: GatewayState, caller: Caller) -> Json<ListedAgents> {
    let roster = gateway.agent().roster(Some(&caller.user)).await;
    let broken = roster.broken.iter();
    Json(ListedAgents {
        agents: roster.agents.iter().map(ShownAgent::from).collect(),
        broken: broken
            .map(|broken| UnusableAgent { name: broken.name.clone(), detail: broken.why.clone() })
            .collect(),
    })
}

/// A name to check.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct AgentNameQuery {
    name: String,
}

/// Whether an agent with this name can be created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NameAvailability {
    available: bool,
    /// The name as it would be stored.
    name: String,
}

/// Returns whether an agent with this name can be created.
pub(crate) async fn check(
    gateway: GatewayState,
    caller: Caller,
    Query(AgentNameQuery { name }): Query<AgentNameQuery>,
) -> Result<Json<NameAvailability>, ApiError> {
    let name = normal(&name)?;
    let owned_name = name.clone();
    let vacant = work(&gateway, &caller, move |agents| agents.vacant(&owned_name)).await;
    Ok(Json(NameAvailability { available: vacant.is_ok(), name }))
}

/// Shows one agent.
pub(crate) async fn show(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<ShownAgent>, ApiError> {
    let found = work(&gateway, &caller, move |agents| agents.find(&name)).await?;
    Ok(Json(ShownAgent::from(&found)))
}

/// An agent to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAgent {
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

/// Creates an agent: a shared one for an administrator, otherwise one of the caller's own.
pub(crate) async fn create(
    gateway: GatewayState,
    caller: Caller,
    Json(request): Json<NewAgent>,
) -> Result<Created<ShownAgent>, ApiError> {
    let NewAgent { name, description: about, model, tool_groups, skills, soul, .. } = request;
    let options = [request.model_settings, request.thinking_enabled, request.reasoning_effort];
    let (thinking, sampling) = read_options(&OPTIONS.map(str::to_owned).into_iter().zip(options).collect())
        .map_err(ApiError::invalid)?;
    check_model(&gateway, model.as_deref())?;
    check_parts(&gateway, &caller, tool_groups.as_deref(), skills.as_deref()).await?;
    let profile = AgentProfile { about, model, thinking, sampling, tool_groups, skills, soul };
    let created = work(&gateway, &caller, move |agents| agents.create(&name, &profile)).await?;
    Ok(Created(ShownAgent::from(&created)))
}

/// Change of an agent. A missing key keeps its value; null means all or the default. Unknown keys are refused, because
/// a misspelt key would leave an agent with more than it should have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
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

/// Keys for the sampling and thinking of an agent's model.
const OPTIONS: [&str; 3] = ["model_settings", "thinking_enabled", "reasoning_effort"];

impl Edit {
    /// Returns the thinking and sampling options. Options that the edit does not set keep their values.
    fn options(&self, now: &AgentProfile) -> Result<(Option<Thinking>, Sampling), String> {
        let values = [&self.model_settings, &self.thinking_enabled, &self.reasoning_effort];
        // Otherwise the stored effort would switch thinking on again.
        let is_off = matches!(&self.thinking_enabled, Some(Some(Value::Bool(false))));
        let each = OPTIONS.iter().zip(values).zip(settings(now)).map(|((key, value), now)| {
            let now = if *key == "reasoning_effort" && is_off { Value::Null } else { now };
            ((*key).to_owned(), value.clone().map_or(now, |value| value.unwrap_or(Value::Null)))
        });
        read_options(&each.collect())
    }
}

/// Distinguishes null from a missing key.
fn there<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// Changes an agent. The change takes effect with its next run.
pub(crate) async fn update(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
    Json(edit): Json<Edit>,
) -> Result<Json<ShownAgent>, ApiError> {
    let Edit { description, model, tool_groups, skills, soul, .. } = &edit;
    check_model(&gateway, model.as_ref().and_then(Option::as_deref))?;
    let (wanted_groups, wanted_skills) =
        (tool_groups.as_ref().and_then(Option::as_deref), skills.as_ref().and_then(Option::as_deref));
    check_parts(&gateway, &caller, wanted_groups, wanted_skills).await?;
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
    Ok(Json(ShownAgent::from(&updated.await?)))
}

/// Deletes an agent.
pub(crate) async fn remove(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    work(&gateway, &caller, move |agents| agents.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses an unknown model.
fn check_model(gateway: &GatewayState, wanted: Option<&str>) -> Result<(), ApiError> {
    let models = gateway.agent().models();
    match wanted.filter(|wanted| !models.iter().any(|model| model.name == **wanted)) {
        Some(unknown) => Err(ApiError::invalid(format!("unknown model `{unknown}`"))),
        None => Ok(()),
    }
}

/// Refuses unknown tool groups and skills: an agent with these would have less than its creator expects.
async fn check_parts(
    gateway: &GatewayState,
    caller: &Caller,
    groups: Option<&[String]>,
    skills: Option<&[String]>,
) -> Result<(), ApiError> {
    let agent = gateway.agent();
    if let Some(why) = agent.unknown_groups(groups.unwrap_or_default()).into_iter().next() {
        return Err(ApiError::invalid(why));
    }
    let catalog = agent.catalog_of(&caller.user).await;
    match skills.unwrap_or_default().iter().find(|name| catalog.get(name).is_none()) {
        Some(unknown) => Err(ApiError::invalid(format!("unknown skill `{unknown}`"))),
        None => Ok(()),
    }
}

/// Runs blocking work on agents.
async fn work<T: Send + 'static>(
    gateway: &GatewayState,
    caller: &Caller,
    work: impl FnOnce(Agents) -> Result<T, AgentError> + Send + 'static,
) -> Result<T, AgentError> {
    let agents = gateway.agent().agents_of(Some(&caller.user), caller.is_admin());
    blocking(move || work(agents), AgentError::broken).await
}

/// Returns the values of [`OPTIONS`] for an agent.
fn settings(profile: &AgentProfile) -> [Value; 3] {
    let Sampling { temperature, max_tokens } = profile.sampling;
    let settings = match (temperature, max_tokens) {
        (None, None) => Value::Null,
        _ => json!({ "temperature": temperature, "max_tokens": max_tokens }),
    };
    let thinks = profile.thinking.map(|thinking| thinking != Thinking::Off);
    [settings, json!(thinks), json!(profile.thinking.and_then(Thinking::effort))]
}

impl From<&CustomAgent> for ShownAgent {
    fn from(custom: &CustomAgent) -> Self {
        let profile = &custom.profile;
        let [model_settings, thinking_enabled, reasoning_effort] = settings(profile);
        Self {
            name: custom.name.clone(),
            description: profile.about.clone(),
            model: profile.model.clone(),
            tool_groups: profile.tool_groups.clone(),
            skills: profile.skills.clone(),
            soul: profile.soul.trim_end().to_owned(),
            model_settings,
            thinking_enabled,
            reasoning_effort,
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let status = match error {
            AgentError::Name { .. } | AgentError::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
            AgentError::Unknown(_) => StatusCode::NOT_FOUND,
            AgentError::Shared(_) => StatusCode::FORBIDDEN,
            AgentError::Exists(_)
            | AgentError::Broken { .. }
            | AgentError::Legacy(_)
            | AgentError::Full(_) => StatusCode::CONFLICT,
            AgentError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.public_message())
    }
}
