//! Entities: formatted spans of a text, and how the platform detects and adjusts them.
//!
//! Offsets and lengths count UTF-16 units, as everywhere in the Bot API. Commands, mentions, hashtags and web links are
//! detected; e-mail addresses, phone numbers and cashtags are deliberately not.

use super::error::{Answer, Refusal};
use serde::{Deserialize, Serialize};

/// A span of a text and its kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// `bold`, `code`, `mention`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Start, in UTF-16 units.
    pub offset: usize,
    /// Length, in UTF-16 units.
    pub length: usize,
    /// Target of a `text_link`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The language of a `pre`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The emoji of a `custom_emoji`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_emoji_id: Option<String>,
}

impl Entity {
    /// A plain entity.
    #[must_use]
    pub fn new(kind: &str, offset: usize, length: usize) -> Self {
        Self { kind: kind.to_owned(), offset, length, url: None, language: None, custom_emoji_id: None }
    }

    fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// Returns the length of a text in UTF-16 units.
pub(crate) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Trims the text and adjusts its entities; empty ones are removed.
pub(crate) fn trim(text: &str, entities: Vec<Entity>) -> (String, Vec<Entity>) {
    let trimmed = text.trim();
    let cut = units(text) - units(text.trim_start());
    let end = units(trimmed);
    let fit = |mut entity: Entity| {
        let stop = entity.end().saturating_sub(cut).min(end);
        entity.offset = entity.offset.saturating_sub(cut);
        entity.length = stop.saturating_sub(entity.offset);
        (entity.length > 0).then_some(entity)
    };
    (trimmed.to_owned(), entities.into_iter().filter_map(fit).collect())
}

/// Checks entities from a caller.
pub(crate) fn check(text: &str, entities: &[Entity]) -> Answer<()> {
    let end = units(text);
    match entities.iter().find(|entity| entity.offset >= end || entity.end() > end) {
        Some(entity) => Err(Refusal::bad(format!(
            "can't parse entities: entity {} at offset {} ends after the end of the text",
            entity.kind, entity.offset
        ))),
        None => Ok(()),
    }
}

/// Adds detected entities outside of code and links.
pub(crate) fn detect(text: &str, mut entities: Vec<Entity>) -> Vec<Entity> {
    let taken: Vec<_> = entities
        .iter()
        .filter(|entity| matches!(entity.kind.as_str(), "code" | "pre" | "text_link"))
        .map(|entity| entity.offset..entity.end())
        .collect();
    let found = words(text).filter_map(|(offset, word)| recognise(offset, word));
    entities.extend(found.filter(|entity| !taken.iter().any(|span| span.contains(&entity.offset))));
    entities.sort_by_key(|entity| (entity.offset, std::cmp::Reverse(entity.length)));
    entities
}

/// Returns the words of a text with their offsets; a leading bracket or quote is not part of a word.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split_inclusive(char::is_whitespace).map(move |piece| {
        let word = piece.trim_end().trim_start_matches(['(', '[', '"', '\'', ',']);
        let at = offset + units(piece.trim_end()) - units(word);
        offset += units(piece);
        (at, word)
    })
}

fn recognise(offset: usize, word: &str) -> Option<Entity> {
    if let Some(rest) = word.strip_prefix('/') {
        let length = command_length(rest)?;
        return Some(Entity::new("bot_command", offset, 1 + length));
    }
    if let Some(rest) = word.strip_prefix('@') {
        let length = name_length(rest);
        return (3..=32).contains(&length).then(|| Entity::new("mention", offset, 1 + length));
    }
    if let Some(rest) = word.strip_prefix('#') {
        let tag: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        return (!tag.is_empty()).then(|| Entity::new("hashtag", offset, 1 + units(&tag)));
    }
    let link = word.starts_with("http://") || word.starts_with("https://");
    let address = word.trim_end_matches(['.', ',', ')', ']', '!', '?', ';', ':']);
    (link && address.len() > 8).then(|| Entity::new("url", offset, units(address)))
}

fn name_length(text: &str) -> usize {
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
}

/// Returns the length of `name` or `name@bot`, if it is a command's name.
fn command_length(rest: &str) -> Option<usize> {
    let name = name_length(rest);
    let tail = rest.get(name..)?;
    let bot = tail.strip_prefix('@').map_or(0, name_length);
    let next = tail.chars().next();
    let ends = next.is_none_or(|c| c == '@' || !(c.is_alphanumeric() || c == '/'));
    ((1..=64).contains(&name) && ends).then_some(if bot >= 3 { name + 1 + bot } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_found(text: &str, expected: &[(&str, usize, usize)]) {
        let found = detect(text, Vec::new());
        let found: Vec<_> = found.iter().map(|e| (e.kind.as_str(), e.offset, e.length)).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn commands_mentions_tags_and_links_are_found_at_their_utf16_offsets() {
        check_found("hello", &[]);
        check_found("/new", &[("bot_command", 0, 4)]);
        check_found("/new@pudu_bot now", &[("bot_command", 0, 13)]);
        check_found("/usr/bin", &[]);
        check_found("a@b and @pudu_bot, hi", &[("mention", 8, 9)]);
        check_found("🦌🦌 @pudu_bot", &[("mention", 5, 9)]);
        check_found("see (https://a.example/x).", &[("url", 5, 19)]);
        check_found("#größe!", &[("hashtag", 0, 6)]);
    }

    #[test]
    fn nothing_is_found_inside_code() {
        let code = Entity::new("code", 0, 4);
        assert_eq!(detect("/new @someone", vec![code.clone()]), [code, Entity::new("mention", 5, 8)]);
    }

    #[test]
    fn trimming_moves_the_entities_and_drops_empty_ones() {
        let entities = vec![Entity::new("bold", 0, 4), Entity::new("italic", 5, 2)];
        assert_eq!(trim("  ab   ", entities), ("ab".to_owned(), vec![Entity::new("bold", 0, 2)]));
    }
}
