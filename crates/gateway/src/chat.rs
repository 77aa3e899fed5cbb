//! The local chats over HTTP: say, press, follow, fetch.

use super::{
    GatewayState,
    content::{self, PostedContent},
    errors::refuse,
    file::{self as files, FileDisposition},
    options::NamedOptions,
};
use crate::{
    console,
    json::{BodyRejection, Json},
};
use axum::{
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode, header},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::StreamExt;
use pudu_channels::{AcceptError, Accepted};
use pudu_client::base::MessageId;
use pudu_dispatch::local::{self, LocalMessage, TranscriptChange, TranscriptLine};
use pudu_texts::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{convert::Infallible, time::Duration};

/// Maximum length of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024;

/// Maximum size of a posted message with its images, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A message that is posted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ChatMessage {
    #[serde(default)]
    text: String,
    /// In place of `text`: words and images as LangGraph's messages have them.
    #[serde(default)]
    content: Value,
    /// Options of the run, in the places where LangGraph's clients put them.
    #[serde(default)]
    config: Value,
    #[serde(default)]
    context: Value,
    /// Deduplication key: a message with the same key is taken once, however often it is sent.
    key: Option<String>,
}

/// Takes a message. It is kept for good when this answers.
pub(super) async fn say(
    State(gateway): State<GatewayState>,
    Path(chat): Path<String>,
    headers: HeaderMap,
    said: Result<Json<ChatMessage>, BodyRejection>,
) -> Response {
    let Json(said) = match said {
        Ok(said) => said,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    if let Some(refusal) = bad_name(&chat).or_else(|| bad_key(said.key.as_deref())) {
        return refusal;
    }
    let key = said.key.clone().unwrap_or_else(|| MessageId::fresh().to_string());
    let language = local::language(&gateway.0.shared, preferred(&headers));
    match message(&gateway, said) {
        Ok(message) => answer(gateway.0.local.say(&chat, &key, language, message).await),
        Err(refusal) => *refusal,
    }
}

/// Reads a posted message.
fn message(gateway: &GatewayState, said: ChatMessage) -> Result<LocalMessage, Box<Response>> {
    let refused = |status, detail: &str| Box::new(refuse(status, detail));
    let PostedContent { text, images } = match (&said.content, said.text.is_empty()) {
        (Value::Null, _) => PostedContent { text: said.text, images: Vec::new() },
        (content, true) => {
            content::read(content).map_err(|why| refused(StatusCode::UNPROCESSABLE_ENTITY, &why))?
        }
        (_, false) => {
            let why = "a message has text or content, and not both";
            return Err(refused(StatusCode::UNPROCESSABLE_ENTITY, why));
        }
    };
    // An image needs no words.
    if let Some(refusal) =
        bad_text(if images.is_empty() { &text } else { "image" }).or_else(|| too_long(&text))
    {
        return Err(Box::new(refusal));
    }
    let models = gateway.0.shared.client.models();
    let options = NamedOptions::of(&said.config, &said.context)
        .and_then(|options| options.model(|name| models.iter().any(|model| model.name == name)))
        .map_err(|(status, why)| refused(status, &why))?;
    Ok(LocalMessage { text, images, options })
}

/// A button that was pressed.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ButtonPress {
    line: String,
    action: String,
    key: Option<String>,
}

/// Takes a press of a button.
pub(super) async fn press(
    State(gateway): State<GatewayState>,
    Path(chat): Path<String>,
    headers: HeaderMap,
    pressed: Result<Json<ButtonPress>, BodyRejection>,
) -> Response {
    let Json(pressed) = match pressed {
        Ok(pressed) => pressed,
        Err(error) => return refuse(error.status(), &error.body_text()),
    };
    let bad = bad_name(&chat).or_else(|| bad_text(&pressed.action));
    let bad = bad.or_else(|| bad_key(pressed.key.as_deref())).or_else(|| bad_key(Some(&pressed.line)));
    if let Some(refusal) = bad {
        return refusal;
    }
    let key = pressed.key.unwrap_or_else(|| MessageId::fresh().to_string());
    let language = local::language(&gateway.0.shared, preferred(&headers));
    answer(gateway.0.local.press(&chat, &key, language, &pressed.line, &pressed.action).await)
}

/// Returns the language that a browser prefers, of those that there are.
pub(super) fn preferred(headers: &HeaderMap) -> Option<Language> {
    let weight = |part: &str| part.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
    let weighted = |tag| {
        let mut parts = str::split(tag, ';');
        let tag = parts.next().unwrap_or_default().trim();
        (parts.find_map(weight).unwrap_or(1.0), tag)
    };
    let tags = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?.split(',').map(weighted);
    let mut tags: Vec<(f32, &str)> = tags.filter(|(weight, _)| *weight > 0.0).collect();
    // Of the same weight the first counts.
    tags.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    tags.into_iter().find_map(|(_, tag)| Language::of_person(tag))
}

fn answer(kept: Result<Accepted, AcceptError>) -> Response {
    match kept {
        Ok(kept) => {
            let body = serde_json::json!({ "duplicate": kept == Accepted::Duplicate });
            (StatusCode::ACCEPTED, Json(body)).into_response()
        }
        Err(error @ AcceptError::Full) => {
            let mut refusal = refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
            refusal.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("2"));
            refusal
        }
        Err(error @ AcceptError::Store(_)) => {
            tracing::error!(%error, "failed to store message");
            refuse(StatusCode::SERVICE_UNAVAILABLE, "the message could not be stored")
        }
    }
}

fn bad_name(chat: &str) -> Option<Response> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let good = (1..=64).contains(&chat.len()) && chat.chars().all(plain);
    (!good).then(|| refuse(StatusCode::UNPROCESSABLE_ENTITY, "a chat's name is 1 to 64 of A-Z a-z 0-9 _ -"))
}

fn bad_key(key: Option<&str>) -> Option<Response> {
    let bad = key.is_some_and(|key| !(1..=128).contains(&key.len()));
    bad.then(|| refuse(StatusCode::UNPROCESSABLE_ENTITY, "a key has 1 to 128 bytes"))
}

fn bad_text(text: &str) -> Option<Response> {
    if text.trim().is_empty() {
        return Some(refuse(StatusCode::UNPROCESSABLE_ENTITY, "the message is empty"));
    }
    too_long(text)
}

fn too_long(text: &str) -> Option<Response> {
    (text.len() > MAX_MESSAGE_BYTES).then(|| {
        let detail =
            format!("the message has {} bytes; a chat takes 256 KiB (262144 bytes) at most", text.len());
        refuse(StatusCode::PAYLOAD_TOO_LARGE, &detail)
    })
}

/// A line as the page gets it, its Markdown as safe HTML beside it.
#[derive(Serialize)]
struct RenderedLine<'a> {
    #[serde(flatten)]
    line: &'a TranscriptLine,
    html: String,
}

impl<'a> From<&'a TranscriptLine> for RenderedLine<'a> {
    fn from(line: &'a TranscriptLine) -> Self {
        Self { line, html: console::html(&line.text) }
    }
}

/// Follows a chat until the reader or the daemon goes.
pub(super) async fn events(State(gateway): State<GatewayState>, Path(chat): Path<String>) -> Response {
    if let Some(refusal) = bad_name(&chat) {
        return refusal;
    }
    let shared = &gateway.0.shared;
    let changes = gateway.0.local.follow(&chat, &shared.db, &shared.client).await;
    let events = changes.map(|change| Ok::<_, Infallible>(told(&change)));
    let following = events.take_until(gateway.0.stop.clone().cancelled_owned());
    let keep = KeepAlive::new().interval(Duration::from_secs(15)).text("heartbeat");
    ([("x-accel-buffering", "no")], Sse::new(following).keep_alive(keep)).into_response()
}

fn told(change: &TranscriptChange) -> Event {
    match change {
        TranscriptChange::Transcript(lines) => transcript(lines),
        TranscriptChange::Line(line) => event("line", &RenderedLine::from(line)),
    }
}

fn transcript(lines: &[TranscriptLine]) -> Event {
    event("transcript", &lines.iter().map(RenderedLine::from).collect::<Vec<_>>())
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).json_data(data).unwrap_or_default()
}

/// Sends a file that came with a line, always as a download.
pub(super) async fn file(
    State(gateway): State<GatewayState>,
    place: Result<Path<(String, String, usize)>, PathRejection>,
    headers: HeaderMap,
) -> Response {
    let missing = || refuse(StatusCode::NOT_FOUND, "there is no such file");
    let Ok(Path((chat, line, index))) = place else { return missing() };
    let Some(file) = gateway.0.local.file(&chat, &line, index) else { return missing() };
    let Ok(open) = tokio::fs::File::open(&file.path).await else { return missing() };
    let sent = files::send(&headers, open.into_std().await, &file.name, FileDisposition::Download).await;
    sent.unwrap_or_else(|_| missing())
}
