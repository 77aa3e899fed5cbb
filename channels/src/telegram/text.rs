//! Text of a message, and whether it addresses the bot.

use super::wire::{Entity, TelegramIdentity, TelegramMessage};
use std::ops::Range;

/// Text of a message, without mentions of the bot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MessageText {
    pub(super) text: String,
    /// Whether the bot was mentioned.
    pub(super) mentioned: bool,
    /// Whether the text addresses the bot: by a mention, or by a command without a bot's name.
    pub(super) addressed: bool,
}

/// Parses text or caption.
pub(super) fn parse_text(message: &TelegramMessage, me: &TelegramIdentity) -> MessageText {
    let (text, entities) = match &message.text {
        Some(text) => (text.as_str(), &message.entities),
        None => (message.caption.as_deref().unwrap_or_default(), &message.caption_entities),
    };
    let mut own: Vec<Range<usize>> = Vec::new();
    let mut bare_command = false;
    for entity in entities {
        let Some(range) = bytes(text, entity) else { continue };
        match named(text.get(range.clone()).unwrap_or_default(), entity, me) {
            Some(MentionTarget::Whole) => own.push(range),
            Some(MentionTarget::Tail(length)) => own.push(range.end - length..range.end),
            Some(MentionTarget::Nobody) => bare_command |= range.start == 0,
            None => {}
        }
    }
    let mentioned = !own.is_empty();
    MessageText { text: remove_ranges(text, own), mentioned, addressed: mentioned || bare_command }
}

/// How an entity mentions the bot.
enum MentionTarget {
    /// The whole entity is the bot's name.
    Whole,
    /// A command that ends with the bot's name, which has this length in bytes.
    Tail(usize),
    /// A command without a name.
    Nobody,
}

fn named(text: &str, entity: &Entity, me: &TelegramIdentity) -> Option<MentionTarget> {
    let is_own = |name: &str| !me.username.is_empty() && name.eq_ignore_ascii_case(&me.username);
    match entity.kind.as_str() {
        "mention" => text.strip_prefix('@').is_some_and(is_own).then_some(MentionTarget::Whole),
        "text_mention" => {
            entity.user.as_ref().is_some_and(|user| user.id == me.id).then_some(MentionTarget::Whole)
        }
        "bot_command" => match text.split_once('@') {
            None => Some(MentionTarget::Nobody),
            Some((_, name)) => is_own(name).then_some(MentionTarget::Tail(name.len() + 1)),
        },
        _ => None,
    }
}

/// Returns an entity's range in bytes. Telegram counts UTF-16 units.
fn bytes(text: &str, entity: &Entity) -> Option<Range<usize>> {
    let start = byte_at(text, entity.offset)?;
    Some(start..byte_at(text, entity.offset.checked_add(entity.length)?)?)
}

fn byte_at(text: &str, units: usize) -> Option<usize> {
    let mut seen = 0;
    for (at, c) in text.char_indices() {
        if seen == units {
            return Some(at);
        }
        seen += c.len_utf16();
    }
    (seen == units).then_some(text.len())
}

/// Removes the bot's names, without leaving a double space, or a comma at the start.
fn remove_ranges(text: &str, mut own: Vec<Range<usize>>) -> String {
    own.sort_by_key(|range| range.start);
    let mut cleaned = String::with_capacity(text.len());
    let mut at = 0;
    for range in own {
        cleaned.push_str(text.get(at..range.start).unwrap_or_default());
        at = range.end.max(at);
        let rest = text.get(at..).unwrap_or_default();
        let called = rest.strip_prefix([',', ':']).filter(|rest| rest.starts_with(char::is_whitespace));
        let skipped = called.filter(|_| cleaned.trim().is_empty()).unwrap_or(rest);
        let doubled = cleaned.ends_with(char::is_whitespace) && skipped.starts_with(' ');
        at = text.len() - skipped.len() + usize::from(doubled);
    }
    cleaned.push_str(text.get(at..).unwrap_or_default());
    cleaned.trim().to_owned()
}
