//! Content that a message refers to. DingTalk includes it in the event, in several forms: a bot cannot read other
//! messages.

use super::{file, number, object, text};
use crate::{
    Attachment, PointedAt, PointedKind,
    pointed::{MAX_PIECES, card_words, lines},
};
use serde_json::Value;

/// Message types that carry no text of the sender's own: forwarded records, and cards from apps.
pub(in crate::dingtalk) const FORWARDED_TYPES: [&str; 6] =
    ["actionCard", "chatRecord", "interactiveCard", "link", "markdown", "oa"];
/// Keys of cards and links whose values are visible text.
const WORDS: [&str; 6] = ["title", "text", "content", "markdown", "value", "messageUrl"];
/// Shown when DingTalk omitted a message's content.
const NOT_GIVEN: &str = "DingTalk did not provide its content";

/// Returns the content that a message refers to: the message it replies to, and forwarded messages.
pub(in crate::dingtalk) fn pointed(data: &Value) -> Vec<PointedAt> {
    let mut pieces: Vec<PointedAt> = reply(data).into_iter().collect();
    let content = object(&data["content"]);
    let kind = text(data, "msgtype");
    if kind == "chatRecord" {
        pieces.extend(record(&content));
    } else if FORWARDED_TYPES.contains(&kind.as_str()) {
        let card_texts = [&content, &object(&data[kind.as_str()])].map(card_text);
        let card = PointedAt::of_text(PointedKind::Card, &lines(card_texts));
        let problem = card.is_empty().then(|| NOT_GIVEN.to_owned());
        pieces.push(PointedAt { problem, ..card });
    }
    pieces
}

/// Returns the message being replied to. Only the desktop app includes all of its content.
fn reply(data: &Value) -> Option<PointedAt> {
    let said = object(&data["text"]);
    let content = object(&data["content"]);
    let candidates =
        [object(&said["repliedMsg"]), object(&data["quoteMessage"]), object(&content["quoteMessage"])];
    let replied = candidates.into_iter().find(Value::is_object);
    let known = [&data["originalMsgId"], &data["originalProcessQueryKey"], &said["isReplyMsg"]];
    let answers = known
        .iter()
        .any(|value| value.as_bool() == Some(true) || value.as_str().is_some_and(|id| !id.is_empty()));
    let (words, files, replied) = match replied {
        Some(replied) => {
            let (words, files) = quoted(&replied);
            (words, files, replied)
        }
        None if answers || content["quoteContent"].is_string() => {
            (text(&content, "quoteContent"), Vec::new(), Value::Null)
        }
        None => return None,
    };
    let author = [text(&replied, "senderNick"), text(&replied, "senderName")];
    let sender = text(&replied, "senderId");
    let by_key = !text(data, "originalProcessQueryKey").is_empty();
    let own = by_key || (!sender.is_empty() && sender == text(data, "chatbotUserId"));
    let at = [&replied["createdAt"], &replied["createAt"]].into_iter().find_map(number).filter(|at| *at > 0);
    let piece = PointedAt::of_text(PointedKind::Reply, &words).with_files(files);
    let problem = piece.is_empty().then(|| NOT_GIVEN.to_owned());
    let author = author.into_iter().find(|name| !name.is_empty());
    Some(PointedAt { own, at, problem, ..piece.by(author.as_deref()) })
}

/// Returns the text and files of a quoted message.
fn quoted(replied: &Value) -> (String, Vec<Attachment>) {
    // Content that is not JSON is plain text.
    let content = match object(&replied["content"]) {
        Value::Null => replied["content"].clone(),
        content => content,
    };
    let kind = [text(replied, "msgType"), text(replied, "msgtype")].into_iter().find(|kind| !kind.is_empty());
    let with_file = |name: &str| file(&content, name).into_iter().collect::<Vec<_>>();
    let plain = || match content.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let inner = object(&replied["text"]);
            lines([text(&content, "text"), text(&content, "content"), text(&inner, "content")])
        }
    };
    match kind.as_deref().unwrap_or_default() {
        "richText" => parts(&content),
        "picture" | "image" => (String::new(), with_file("picture.png")),
        "file" => (String::new(), with_file("file")),
        "video" => (String::new(), with_file("video.mp4")),
        "audio" | "voice" => (text(&content, "recognition"), with_file("audio.amr")),
        "chatRecord" => {
            let pieces = record(&content);
            let line = |piece: &PointedAt| match &piece.author {
                Some(author) => format!("{author}: {}", piece.text),
                None => piece.text.clone(),
            };
            let files = pieces.iter().flat_map(|piece| piece.attachments.clone()).collect();
            (lines(pieces.iter().map(line)), files)
        }
        kind if FORWARDED_TYPES.contains(&kind) => (card_text(&content), Vec::new()),
        _ => {
            let plain = plain();
            (if plain.trim().is_empty() { card_text(&content) } else { plain }, with_file("file"))
        }
    }
}

/// Returns the text and files of a rich text. Quotes and messages name its fields differently.
fn parts(content: &Value) -> (String, Vec<Attachment>) {
    let list = content["richText"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (mut joined, mut files) = (String::new(), Vec::new());
    for part in list {
        let kind = [text(part, "msgType"), text(part, "type")].concat();
        match file(part, &format!("picture-{}.png", files.len() + 1)) {
            Some(picture) => files.push(picture),
            None if kind == "picture" => joined.push_str("[picture]"),
            None => {
                let said = [text(part, "text"), text(part, "content"), text(part, "atName")];
                joined.push_str(said.iter().find(|said| !said.is_empty()).map_or("", String::as_str));
            }
        }
    }
    (joined, files)
}

/// Returns the messages of a forwarded record. The list of messages has the authors' ids; the summary has their names,
/// in the same order.
fn record(content: &Value) -> Vec<PointedAt> {
    let title = text(content, "title");
    let summary = list(&content["summary"]);
    let said = |n: usize| summary.get(n).and_then(Value::as_str).unwrap_or_default();
    let name = |n: usize| said(n).split_once([':', '：']).map(|(name, _)| name.trim().to_owned());
    let entries = ["chatRecord", "records", "messages"].iter().map(|key| list(&content[*key]));
    let entries = entries.into_iter().find(|entries| !entries.is_empty()).unwrap_or_default();
    let omitted = entries.len().saturating_sub(MAX_PIECES);
    let entry = |(n, entry): (usize, &Value)| {
        let (words, files) = quoted(entry);
        let names = [text(entry, "senderNick"), text(entry, "senderName"), text(entry, "sender")];
        let author = names.into_iter().find(|name| !name.is_empty()).or_else(|| name(n));
        let at = ["createAt", "createdAt", "sendTime"].iter().find_map(|key| number(&entry[*key]));
        let words = if words.trim().is_empty() { text(entry, "message") } else { words };
        let piece = PointedAt::of_text(PointedKind::Forward, &words).with_files(files);
        PointedAt { at: at.filter(|at| *at > 0), ..piece.by(author.as_deref()).from(Some(&title)) }
    };
    let mut pieces: Vec<PointedAt> = entries.iter().take(MAX_PIECES).enumerate().map(entry).collect();
    pieces.retain(|piece| !piece.is_empty());
    if omitted > 0 {
        let problem = format!("{omitted} more messages omitted");
        pieces.push(PointedAt::unreadable(PointedKind::Forward, problem));
    }
    if pieces.is_empty() {
        // DingTalk sent only a summary.
        let short = match &content["summary"] {
            Value::String(text) if summary.is_empty() => text.clone(),
            _ => lines(summary.iter().filter_map(Value::as_str)),
        };
        let piece = PointedAt::of_text(PointedKind::Forward, &short);
        let problem = piece.is_empty().then(|| NOT_GIVEN.to_owned());
        pieces.push(PointedAt { problem, ..piece.from(Some(&title)) });
    }
    pieces
}

/// Reads a list, sent as a list or as JSON in a string.
fn list(value: &Value) -> Vec<Value> {
    match object(value) {
        Value::Array(list) => list,
        _ => Vec::new(),
    }
}

/// Returns the text of a card: a tree of elements, or fields of any name.
fn card_text(card: &Value) -> String {
    card_words(card, &WORDS)
}

#[cfg(test)]
mod tests;
