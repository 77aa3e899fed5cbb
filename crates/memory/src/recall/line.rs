//! Renders a fact or a turn as one line.

use crate::{inject::fact_head, time::FactTime};
use jiff::{Timestamp, tz::TimeZone};
use pudu_store::RecallHit;

/// The displayed fields of a fact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecallableFact<'f> {
    /// Its id in the search index.
    pub id: &'f str,
    /// Its category.
    pub category: &'f str,
    /// Its confidence, from 0 to 1.
    pub confidence: f64,
    /// Its content.
    pub text: &'f str,
    /// Time when it was last stated.
    pub at: FactTime,
    /// The name of its author, in a room's memory.
    pub author: Option<&'f str>,
}

/// Maximum length of a line, in characters, so that one text does not use up the budget.
const MAX_LINE_CHARS: usize = 800;

/// Returns `- [category | 0.95 | 2026-03-01] text`. In a room, the author's name precedes the text.
pub(super) fn fact(fact: &RecallableFact<'_>) -> String {
    let name = fact.author.map(|name| format!("{}: ", plain(name))).unwrap_or_default();
    let head = fact_head(&plain(fact.category), fact.confidence, fact.at);
    format!("- {head} {name}{}", plain(fact.text))
}

/// Returns `- 2026-03-01 Name: words`.
pub(super) fn turn(hit: &RecallHit, zone: &TimeZone) -> String {
    let text = plain(&hit.text);
    let said = if hit.author.is_empty() { text } else { format!("{}: {text}", plain(&hit.author)) };
    match Timestamp::from_millisecond(hit.at) {
        Ok(at) => format!("- {} {said}", at.to_zoned(zone.clone()).date()),
        Err(_) => format!("- {said}"),
    }
}

/// Puts a text on one line and escapes it, so that it cannot imitate the end of the tags around it.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(MAX_LINE_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
