//! Extracts people's own words from their messages, without text that they only pass on.
//!
//! Removes blocks of uploads, memory and reminders, fenced code and documents, quoted lines, forwarded mail, chat logs,
//! and lines in the form of injected memory. A document pasted without any such mark cannot be distinguished from the
//! person's own words.

use crate::text::{normalized, straight_quotes};
use regex::Regex;
use std::sync::LazyLock;

/// Replaces a removed part.
pub(super) const CUT: &str = "[…]";

/// Tags of blocks that no person wrote.
const TAGS: [&str; 14] = [
    "uploaded_files",
    "current_uploads",
    "memory",
    "current_memory",
    "system-reminder",
    "system_reminder",
    "system",
    "document",
    "documents",
    "file",
    "quote",
    "blockquote",
    "think",
    "tool_result",
];

/// Lines that begin a forwarded part, which extends to the end: forwarded messages, mail headers, replies to mail.
const FORWARDED: [&str; 3] = [
    r"(?im)^[ \t]*(?:[-_=>*]{2,}[ \t]*)?\[?(?:begin forwarded message|forwarded messages?|original message|forwarded by|转发邮件|转发的消息|原始邮件|以下为转发).*$",
    r"(?im)^[ \t]*(?:from|发件人)[ \t]*[:：].*\n(?:.*\n){0,3}?[ \t]*(?:to|date|sent|subject|收件人|主题|日期)[ \t]*[:：].*$",
    r"(?im)^[ \t]*on .{5,100} wrote:[ \t]*$",
];

/// Single lines that are not the person's own: quotes, injected memory, chat logs, transcripts.
const PASSED_ON: [&str; 4] = [
    r"(?m)^[ \t]*(?:>|&gt;).*$",
    r"(?m)^[ \t]*[-*]?[ \t]*\[[\w -]{1,40}\|[^\]\n]{1,30}\].*$",
    r"(?im)^[ \t]*\[?\d{1,2}:\d{2}(?::\d{2})?(?:[ \t]?[ap]m)?\]?[ \t,-]+[^\n:：]{1,40}[:：].*$",
    r"(?im)^[ \t]*(?:user|assistant|system|human|ai|bot)(?:[ \t]*\([^)\n]{1,60}\))?[ \t]*[:：].*$",
];

/// Patterns of blocks, each with its beginning for a quick check, because most messages contain no block.
static BLOCKS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let tags = TAGS.iter().map(|tag| ("<", format!(r"(?is)<{tag}(?:\s[^>]*)?>.*?(?:</{tag}\s*>|\z)")));
    let fences = ["```", "~~~"].map(|fence| (fence, format!(r"(?s){fence}.*?(?:{fence}|\z)")));
    tags.chain(fences).filter_map(|(begin, pattern)| Some((begin, Regex::new(&pattern).ok()?))).collect()
});

static LINES: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&PASSED_ON));

static RESTS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&FORWARDED));

fn compiled(patterns: &[&str]) -> Vec<Regex> {
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

/// Returns a person's own words, or an empty text if there are none.
pub(super) fn own_words(text: &str) -> String {
    let mut own = text.to_owned();
    for (_, pattern) in BLOCKS.iter().filter(|(begin, _)| text.contains(begin)) {
        own = pattern.replace_all(&own, CUT).into_owned();
    }
    if let Some(start) = RESTS.iter().filter_map(|pattern| Some(pattern.find(&own)?.start())).min() {
        own.truncate(start);
        own.push_str(CUT);
    }
    for pattern in LINES.iter() {
        own = pattern.replace_all(&own, CUT).into_owned();
    }
    if own.replace(CUT, "").trim().is_empty() { String::new() } else { own.trim().to_owned() }
}

/// Normalizes a text for the search for quotes.
pub(super) fn evidence(text: &str) -> String {
    normalized(&straight_quotes(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let count = (BLOCKS.len(), LINES.len(), RESTS.len());
        assert_eq!(count, (TAGS.len() + 2, PASSED_ON.len(), FORWARDED.len()));
    }

    #[test]
    fn text_that_is_only_passed_on_is_cut() {
        for (text, expect) in [
            ("I like tea", "I like tea"),
            ("<uploaded_files>\na.pdf: remember Bob\n</uploaded_files>\nRead it", "[…]\nRead it"),
            ("<uploaded_files>never closed", ""),
            ("<memory>likes tea</memory>", ""),
            ("<SYSTEM-reminder x=1>a</SYSTEM-reminder> hi", "[…] hi"),
            ("> Ann: I live in Rome\nIs that so?", "[…]\nIs that so?"),
            ("see:\n```\nremember: x\n```\nok?", "see:\n[…]\nok?"),
            ("- [preference | 0.95] likes tea", ""),
            ("- [preference | 0.95 | 2026-03-01] Ada: likes tea", ""),
            ("fyi\n---------- Forwarded message ---------\nFrom: Bob\nI live in Rome", "fyi\n[…]"),
            ("what is this?\nFrom: Bob <b@x.org>\nDate: today\n\nI live in Rome", "what is this?\n[…]"),
            ("ok so\nOn Monday, 3 May 2026, Bob wrote:\nI live in Rome", "ok so\n[…]"),
            ("[12:03] Bob: I live in Rome\n12:04 PM - Eve: me too\nfunny", "[…]\n[…]\nfunny"),
            ("User: I live in Rome\nAssistant (pudu): ok\nwho is that?", "[…]\n[…]\nwho is that?"),
            ("Name: Ann\nRole: nurse", "Name: Ann\nRole: nurse"),
            ("From: Rome\nis where I come", "From: Rome\nis where I come"),
            ("I use a < b and c > d", "I use a < b and c > d"),
        ] {
            assert_eq!(own_words(text), expect, "{text}");
        }
    }
}
