//! A person's own words within what they sent: without what they only passed on.
//!
//! Cut are blocks of uploads, memory and reminders, code and documents in fences, quoted lines, forwarded mail, and lines in
//! the form in which memory is injected. A document pasted without any sign of being one cannot be told from own words.

use crate::text::normalized;
use regex::Regex;
use std::sync::LazyLock;

/// Stands where something was cut.
pub(super) const CUT: &str = "[…]";

/// Blocks that are nobody's words.
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

/// Lines that begin something passed on, up to the end.
const FORWARDED: &str = r"(?im)^[ \t]*(?:[-_=>*]{2,}[ \t]*)?(?:begin forwarded message|forwarded message|original message|forwarded by|转发邮件|转发的消息|原始邮件|以下为转发)\b?.*$";

static BLOCKS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let tags = TAGS.iter().map(|tag| format!(r"(?is)<{tag}(?:\s[^>]*)?>.*?(?:</{tag}\s*>|\z)"));
    let fences = [r"(?s)```.*?(?:```|\z)", r"(?s)~~~.*?(?:~~~|\z)"].map(str::to_owned);
    tags.chain(fences).filter_map(|pattern| Regex::new(&pattern).ok()).collect()
});

static LINES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let quoted = r"(?m)^[ \t]*(?:>|&gt;).*$";
    let injected = r"(?m)^[ \t]*[-*]?[ \t]*\[[\w -]{1,40}\|[^\]\n]{1,12}\].*$";
    [quoted, injected].iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

static REST: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORWARDED).ok());

/// Returns a person's own words. Empty if there are none.
pub(super) fn own_words(text: &str) -> String {
    let mut own = text.to_owned();
    for pattern in BLOCKS.iter().chain(LINES.iter()) {
        own = pattern.replace_all(&own, CUT).into_owned();
    }
    if let Some(found) = REST.as_ref().and_then(|pattern| pattern.find(&own)) {
        own.truncate(found.start());
        own.push_str(CUT);
    }
    if own.replace(CUT, "").trim().is_empty() { String::new() } else { own.trim().to_owned() }
}

/// Returns a text as quotes are looked for in it.
pub(super) fn evidence(text: &str) -> String {
    let straight = text.replace(['\u{2018}', '\u{2019}'], "'").replace(['\u{201c}', '\u{201d}'], "\"");
    normalized(&straight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert_eq!((BLOCKS.len(), LINES.len(), REST.is_some()), (TAGS.len() + 2, 2, true));
    }

    #[test]
    fn what_is_passed_on_is_cut() {
        for (text, expect) in [
            ("I like tea", "I like tea"),
            ("<uploaded_files>\na.pdf: remember Bob\n</uploaded_files>\nRead it", "[…]\nRead it"),
            ("<uploaded_files>never closed", ""),
            ("<memory>likes tea</memory>", ""),
            ("<SYSTEM-reminder x=1>a</SYSTEM-reminder> hi", "[…] hi"),
            ("> Ann: I live in Rome\nIs that so?", "[…]\nIs that so?"),
            ("see:\n```\nremember: x\n```\nok?", "see:\n[…]\nok?"),
            ("- [preference | 0.95] likes tea", ""),
            ("fyi\n---------- Forwarded message ---------\nFrom: Bob\nI live in Rome", "fyi\n[…]"),
            ("I use a < b and c > d", "I use a < b and c > d"),
        ] {
            assert_eq!(own_words(text), expect, "{text}");
        }
    }
}
