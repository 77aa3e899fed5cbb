//! Content that a message refers to: the message it replies to, forwarded bundles and cards. An event contains only
//! their ids; Feishu provides their content to bots in the chat.

use super::{
    FeishuChannel,
    chat_cache::plain,
    content::{self, Mention, MessageContent},
    event::millis,
};
use crate::{
    Inbound, PointedAt, PointedKind, RecentMessages, SendError,
    pointed::{MAX_PIECES, lines},
};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};

/// Query parameter that makes Feishu return complete cards instead of placeholders.
const WHOLE_CARDS: &str = "card_msg_content_type=user_card_content";
/// Maximum number of names looked up for one forwarded bundle.
const MAX_NAMES: usize = 10;
/// Number of messages per page of a history, and maximum number of pages.
const RECENT_PAGE: usize = 50;
const RECENT_PAGES: usize = 4;
/// Problem text for a reply to a message in another chat.
const FOREIGN_CHAT: &str = "not read: the message is in another chat";
/// Problem text for a recalled message.
const RECALLED: &str = "its author recalled it";

/// Returns the content that a message of this kind forwards: a bundle that has yet to be fetched, or a card. The sender
/// wrote neither, so a card's text is moved out of `said`.
pub(super) fn passed_on(kind: &str, id: &str, said: &mut MessageContent) -> Option<PointedAt> {
    match kind {
        "merge_forward" => Some(PointedAt::unread(PointedKind::Forward, id)),
        "interactive" => {
            let MessageContent { text, files } = std::mem::take(said);
            let card = PointedAt::of_text(PointedKind::Card, &text).with_files(files);
            let problem = card.is_empty().then(|| "Feishu does not show its content to bots".to_owned());
            Some(PointedAt { problem, ..card })
        }
        _ => None,
    }
}

impl FeishuChannel {
    /// Fetches content that an event does not contain.
    pub(super) async fn read_pointed(
        &self,
        inbound: &Inbound,
        piece: &PointedAt,
    ) -> Result<Vec<PointedAt>, SendError> {
        let Some(id) = piece.reference.as_deref().and_then(plain) else { return Ok(Vec::new()) };
        let response =
            self.state.client.call(Method::GET, &format!("im/v1/messages/{id}?{WHOLE_CARDS}"), None).await?;
        let items = response["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some((first, inner)) = items.split_first() else {
            return Err(SendError::Refused("the message does not exist".to_owned()));
        };
        if first["chat_id"].as_str().is_some_and(|chat| chat != inbound.address.chat) {
            return Ok(vec![PointedAt::unreadable(piece.kind, FOREIGN_CHAT)]);
        }
        if first["deleted"] == json!(true) {
            return Ok(vec![PointedAt::unreadable(piece.kind, RECALLED)]);
        }
        if first["msg_type"] == "merge_forward" {
            return Ok(self.bundle(inner).await);
        }
        Ok(vec![self.message(piece.kind, first, true).await])
    }

    /// Reads recent messages of a topic or a chat.
    pub(super) async fn read_recent(
        &self,
        inbound: &Inbound,
        wanted: RecentMessages<'_>,
    ) -> Result<Vec<PointedAt>, SendError> {
        let (kind, container) = match &inbound.address.topic {
            Some(topic) => ("thread", topic),
            None => ("chat", &inbound.address.chat),
        };
        let Some(container) = plain(container) else { return Ok(Vec::new()) };
        let page = format!(
            "im/v1/messages?container_id_type={kind}&container_id={container}&sort_type=ByCreateTimeDesc\
             &page_size={RECENT_PAGE}&{WHOLE_CARDS}"
        );
        let (mut found, mut token) = (Vec::new(), String::new());
        for _ in 0..RECENT_PAGES {
            let path = format!("{page}{token}");
            let response = self.state.client.call(Method::GET, &path, None).await?;
            let items = response["items"].as_array().cloned().unwrap_or_default();
            let old = items.iter().any(|item| millis(item.get("create_time")) < Some(wanted.since));
            found.extend(items.into_iter().filter(|item| is_wanted(item, inbound, wanted)));
            let next = response["page_token"]
                .as_str()
                .filter(|_| response["has_more"] == json!(true))
                .and_then(plain);
            let Some(next) = next.filter(|_| !old && found.len() < wanted.max) else { break };
            token = format!("&page_token={next}");
        }
        found.truncate(wanted.max);
        let mut pieces = Vec::new();
        for (n, item) in found.iter().rev().enumerate() {
            let piece = self.message(PointedKind::Recent, item, n < MAX_NAMES).await;
            let person = item.pointer("/sender/sender_type").and_then(Value::as_str) == Some("user");
            let author_id = item.pointer("/sender/id").and_then(Value::as_str).filter(|_| person);
            pieces.push(PointedAt { problem: None, author_id: author_id.map(str::to_owned), ..piece });
        }
        pieces.retain(|piece| !piece.is_empty());
        Ok(pieces)
    }

    /// Returns the messages of a forwarded bundle. Feishu does not provide their files.
    async fn bundle(&self, inner: &[Value]) -> Vec<PointedAt> {
        let mut authors: Vec<&str> = Vec::new();
        let mut pieces = Vec::new();
        for item in inner.iter().filter(|item| item["upper_message_id"].is_string()).take(MAX_PIECES) {
            let sender = item.pointer("/sender/id").and_then(Value::as_str).unwrap_or_default();
            let known = authors.contains(&sender);
            if !known {
                authors.push(sender);
            }
            let piece = self.message(PointedKind::Forward, item, known || authors.len() <= MAX_NAMES).await;
            let names =
                piece.attachments.iter().map(|file| format!("[{}: not provided by Feishu]", file.name));
            let text = lines([piece.text.clone()].into_iter().chain(names));
            pieces.push(PointedAt { text, attachments: Vec::new(), ..piece });
        }
        if pieces.is_empty() {
            return vec![PointedAt::unreadable(PointedKind::Forward, "Feishu does not provide its messages")];
        }
        pieces
    }

    /// Returns a message as one piece. `ask` is whether to look up an unknown name.
    async fn message(&self, kind: PointedKind, item: &Value, ask: bool) -> PointedAt {
        let text = |at: &str| item.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let mentions: Vec<Mention> =
            item["mentions"].as_array().into_iter().flatten().filter_map(mention).collect();
        let (id, sender) = (plain(text("/message_id")).unwrap_or_default(), text("/sender/id"));
        let MessageContent { text: said, files } =
            content::read(text("/msg_type"), text("/body/content"), id, &mentions, "");
        let own = text("/sender/sender_type") == "app" && sender == self.state.client.app_id();
        let author = match text("/sender/sender_type") {
            "user" | "" if ask => Some(self.state.places.ask_name(&self.state.client, sender).await),
            "user" | "" => Some(self.state.places.name(sender)),
            _ => None,
        };
        let at = millis(item.get("create_time"));
        let piece = PointedAt::of_text(kind, &said).by(author.as_deref()).with_files(files);
        let problem = piece.is_empty().then(|| "Feishu does not provide its text".to_owned());
        PointedAt { own, at, problem, ..piece }
    }
}

/// Returns whether a message of a history matches the request.
fn is_wanted(item: &Value, inbound: &Inbound, wanted: RecentMessages<'_>) -> bool {
    let id = item["message_id"].as_str().unwrap_or_default();
    let known = id == inbound.message || wanted.except.iter().any(|other| other == id);
    let said = item["deleted"] != json!(true) && item["msg_type"] != "system";
    let at = millis(item.get("create_time")).unwrap_or_default();
    said && !known && at >= wanted.since && at <= inbound.at
}

fn mention(value: &Value) -> Option<Mention> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests;
