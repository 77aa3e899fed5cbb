//! Follow-up questions and rewritten texts, by a model call that is booked on the caller. Shapes are DeerFlow's.

use super::{
    GatewayState,
    caller::Caller,
    json::Json,
    owned::own_if_there,
    refusal::{Refusal, answer, refused, wrong},
    thread,
};
use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use pudu_client::{AssistError, AssistFor, base::ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum number of messages read, the newest.
const MAX_MESSAGES: usize = 20;
/// Number of questions that are asked for at most.
const MAX_QUESTIONS: u32 = 5;

/// Answers whether questions are suggested, and how many.
pub(super) async fn config(State(gateway): State<GatewayState>) -> Json<Value> {
    let rules = gateway.0.watcher.current().assistance.clone();
    Json(json!({ "enabled": rules.suggests, "max_suggestions": rules.max_suggestions }))
}

/// End of a conversation, for which questions are wanted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SuggestionRequest {
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
pub(super) struct SuggestionMessage {
    role: String,
    /// Text, or blocks with texts in them.
    #[serde(default)]
    content: Value,
}

impl SuggestionMessage {
    /// Returns the role and the text; `None` for another role or an empty text.
    fn told(&self) -> Option<(String, String)> {
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

/// Suggests questions; none if that fails, whatever the cause.
pub(super) async fn suggest(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(thread): Path<String>,
    Json(request): Json<SuggestionRequest>,
) -> Response {
    answer(suggested(gateway, caller, &thread, request).await)
}

async fn suggested(
    gateway: GatewayState,
    caller: Caller,
    thread: &str,
    request: SuggestionRequest,
) -> Result<Json<Value>, Refusal> {
    let SuggestionRequest { messages, n, model_name: model } = request;
    let thread = spending_thread(&gateway, &caller, Some(&thread::id(thread)?)).await?;
    if !(1..=MAX_QUESTIONS).contains(&n) {
        return wrong("n is 1 to 5");
    }
    let rules = gateway.0.watcher.current().assistance.clone();
    let skipped = messages.len().saturating_sub(MAX_MESSAGES);
    let conversation: Vec<_> = messages.iter().skip(skipped).filter_map(SuggestionMessage::told).collect();
    let mut suggestions = Vec::new();
    if rules.suggests && !conversation.is_empty() {
        let whose = AssistFor { user: caller.user, thread, model };
        let count = n.min(rules.max_suggestions) as usize;
        match gateway.0.shared.client.follow_ups(&whose, &conversation, count).await {
            Ok(questions) => suggestions = questions,
            // That was said at the start.
            Err(AssistError::NoModel) => {}
            Err(error) => tracing::warn!(%error, "failed to suggest questions"),
        }
    }
    Ok(Json(json!({ "suggestions": suggestions })))
}

/// A text to rewrite.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PolishRequest {
    text: String,
    #[serde(default)]
    locale: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
}

/// Rewrites a text. Nothing is stored.
pub(super) async fn polish(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Json(request): Json<PolishRequest>,
) -> Response {
    answer(polished(gateway, caller, request).await)
}

async fn polished(
    gateway: GatewayState,
    caller: Caller,
    PolishRequest { text, locale, thread_id }: PolishRequest,
) -> Result<Json<Value>, Refusal> {
    let Some(rules) = gateway.0.watcher.current().assistance.polish.clone() else {
        return refused(
            StatusCode::NOT_FOUND,
            "texts are not worded anew here: `input_polish.enabled` is false",
        );
    };
    let text = text.trim();
    if text.is_empty() {
        return refused(StatusCode::BAD_REQUEST, "the text is empty");
    }
    if text.chars().count() > rules.max_chars {
        let detail = format!("the text has more than {} characters", rules.max_chars);
        return refused(StatusCode::BAD_REQUEST, &detail);
    }
    let thread = thread_id.as_deref().and_then(thread::read);
    let thread = spending_thread(&gateway, &caller, thread.as_ref()).await?;
    let whose = AssistFor { user: caller.user, thread, model: rules.model };
    let rewritten = match gateway.0.shared.client.reword(&whose, text, locale.as_deref()).await {
        Ok(rewritten) => rewritten,
        Err(AssistError::NoModel) => text.to_owned(),
        Err(error) => {
            tracing::warn!(%error, "failed to word text anew");
            let detail = "the model has no other wording just now; try again";
            return refused(StatusCode::SERVICE_UNAVAILABLE, detail);
        }
    };
    let changed = rewritten != text;
    Ok(Json(json!({ "rewritten_text": rewritten, "changed": changed })))
}

/// Returns the thread that a model call is booked on, if there is one. It belongs to the caller.
async fn spending_thread(
    gateway: &GatewayState,
    caller: &Caller,
    thread: Option<&ThreadId>,
) -> Result<Option<ThreadId>, Refusal> {
    let Some(thread) = thread else { return Ok(None) };
    Ok(own_if_there(gateway, caller, thread).await?.map(|thread| thread.id))
}
