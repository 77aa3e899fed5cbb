//! Follow-up questions and rewritten texts, by a model call charged to the caller. Requests and responses have
//! DeerFlow's shapes.

use crate::{
    ApiError, Caller, GatewayState, Json,
    threads::{
        owned::{ThreadPath, own_if_there},
        thread,
    },
};
use pudu_agent::{AssistError, AssistFor};
use pudu_base::ThreadId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of messages read; the newest are used.
const MAX_MESSAGES: usize = 20;
/// Maximum number of questions requested.
const MAX_QUESTIONS: u32 = 5;

/// Whether questions are suggested, and how many.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SuggestionRules {
    enabled: bool,
    max_suggestions: u32,
}

/// Returns whether questions are suggested, and their number.
pub(crate) async fn config(gateway: GatewayState) -> Json<SuggestionRules> {
    let rules = &gateway.config().assistance;
    Json(SuggestionRules { enabled: rules.suggests, max_suggestions: rules.max_suggestions })
}

/// The end of a conversation for which questions are requested.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SuggestionRequest {
    messages: Vec<SuggestionMessage>,
    #[serde(default = "three")]
    n: u32,
    #[serde(default)]
    model_name: Option<String>,
}

fn three() -> u32 {
    3
}

/// A message of that conversation.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SuggestionMessage {
    role: String,
    /// Text, or blocks that contain text.
    #[serde(default)]
    content: Value,
}

impl SuggestionMessage {
    /// Returns the role and the text; `None` for another role or an empty text.
    fn role_and_text(&self) -> Option<(String, String)> {
        let role = match self.role.as_str() {
            "user" | "human" => "user",
            "assistant" | "ai" => "assistant",
            _ => return None,
        };
        let text = match &self.content {
            Value::String(text) => text.trim().to_owned(),
            Value::Array(blocks) => {
                let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
                texts.collect::<Vec<_>>().join("\n").trim().to_owned()
            }
            _ => String::new(),
        };
        (!text.is_empty()).then(|| (role.to_owned(), text))
    }
}

/// Suggested questions.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Suggestions {
    suggestions: Vec<String>,
}

/// Suggests questions; returns none if that fails for any reason.
pub(crate) async fn suggest(
    gateway: GatewayState,
    caller: Caller,
    thread: ThreadPath,
    Json(request): Json<SuggestionRequest>,
) -> Result<Json<Suggestions>, ApiError> {
    let SuggestionRequest { messages, n, model_name: model } = request;
    let thread = spending_thread(&gateway, &caller, Some(&thread.0)).await?;
    if !(1..=MAX_QUESTIONS).contains(&n) {
        return Err(ApiError::invalid("n must be a whole number from 1 to 5"));
    }
    let rules = gateway.config().assistance.clone();
    let skipped = messages.len().saturating_sub(MAX_MESSAGES);
    let conversation: Vec<_> =
        messages.iter().skip(skipped).filter_map(SuggestionMessage::role_and_text).collect();
    let mut suggestions = Vec::new();
    if rules.suggests && !conversation.is_empty() {
        let requester = AssistFor { user: caller.user, thread, model };
        let count = n.min(rules.max_suggestions) as usize;
        match gateway.agent().follow_ups(&requester, &conversation, count).await {
            Ok(questions) => suggestions = questions,
            // The missing model was logged at startup.
            Err(AssistError::NoModel) => {}
            Err(error) => tracing::warn!(%error, "failed to suggest questions"),
        }
    }
    Ok(Json(Suggestions { suggestions }))
}

/// A text to rewrite.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PolishRequest {
    text: String,
    #[serde(default)]
    locale: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
}

/// The rewritten text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PolishedText {
    rewritten_text: String,
    changed: bool,
}

/// Rewrites a text. Nothing is stored.
pub(crate) async fn polish(
    gateway: GatewayState,
    caller: Caller,
    Json(PolishRequest { text, locale, thread_id }): Json<PolishRequest>,
) -> Result<Json<PolishedText>, ApiError> {
    let rules = gateway
        .config()
        .assistance
        .polish
        .clone()
        .ok_or_else(|| ApiError::not_found("rewording is disabled: `input_polish.enabled` is false"))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(ApiError::bad_request("the text is empty"));
    }
    if text.chars().count() > rules.max_chars {
        let detail = format!("the text has more than {} characters", rules.max_chars);
        return Err(ApiError::bad_request(detail));
    }
    let thread = thread_id.as_deref().and_then(thread::parse);
    let thread = spending_thread(&gateway, &caller, thread.as_ref()).await?;
    let requester = AssistFor { user: caller.user, thread, model: rules.model };
    let rewritten_text = match gateway.agent().reword(&requester, text, locale.as_deref()).await {
        Ok(rewritten) => rewritten,
        Err(AssistError::NoModel) => text.to_owned(),
        Err(error) => {
            tracing::warn!(%error, "failed to reword text");
            return Err(ApiError::unavailable("the model returned no new wording; try again"));
        }
    };
    Ok(Json(PolishedText { changed: rewritten_text != text, rewritten_text }))
}

/// Returns the caller's thread that a model call is charged to, if there is one.
async fn spending_thread(
    gateway: &GatewayState,
    caller: &Caller,
    thread: Option<&ThreadId>,
) -> Result<Option<ThreadId>, ApiError> {
    let Some(thread) = thread else { return Ok(None) };
    Ok(own_if_there(gateway, caller, thread).await?.map(|thread| thread.id))
}
