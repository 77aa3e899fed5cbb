//! Writes styled text as Telegram's HTML.
//!
//! In Telegram, code can contain no other style and can be nested only in a quotation; links and quotations cannot be
//! nested. Tags therefore do not follow the nesting of the source: wherever a style begins or ends, the styles that can
//! be combined there are computed again, in a fixed order.

use super::{Rich, Span, Style};
use std::{fmt::Write, ops::Range};

/// Character without width that allows no line break.
pub(crate) const WORD_JOINER: char = '\u{2060}';

/// Returns the text as HTML for `parse_mode: HTML`.
#[must_use]
pub fn html(rich: &Rich) -> String {
    let mut out = String::with_capacity(rich.text.len() * 2);
    let mut open: Vec<&Style> = Vec::new();
    let mut at = 0;
    for (from, marks) in style_changes(rich) {
        write_words(rich, at..from, &open, &mut out);
        change(&mut open, marks, &mut out);
        at = from;
    }
    write_words(rich, at..rich.text.len(), &open, &mut out);
    change(&mut open, Vec::new(), &mut out);
    out
}

/// Writes text. After `@`, an invisible character prevents a mention: Telegram would turn a name there into one, except
/// in code.
fn write_words(rich: &Rich, range: Range<usize>, open: &[&Style], out: &mut String) {
    let mut before = rich.part(0..range.start).chars().next_back();
    let code = open.iter().any(|style| matches!(style, Style::Code) || style.is_block_code());
    for c in rich.part(range).chars() {
        escape(c.encode_utf8(&mut [0; 4]), out);
        if calls(before, c) && !code {
            out.push(WORD_JOINER);
        }
        before = Some(c);
    }
}

/// Returns the text without markup. No name mentions a user, not even one that was code.
#[must_use]
pub(crate) fn plain(rich: &Rich) -> String {
    let mut out = String::with_capacity(rich.text.len());
    let mut before = None;
    for c in rich.text.chars() {
        out.push(c);
        if calls(before, c) {
            out.push(WORD_JOINER);
        }
        before = Some(c);
    }
    out
}

/// Returns whether a mention begins with this character.
fn calls(before: Option<char>, c: char) -> bool {
    c == '@' && !before.is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '/'))
}

/// Returns each position where styles change, and the styles from there on.
fn style_changes(rich: &Rich) -> Vec<(usize, Vec<&Style>)> {
    let mut edges: Vec<usize> =
        rich.spans.iter().flat_map(|span| [span.range.start, span.range.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut starts: Vec<&Span> = rich.spans.iter().collect();
    starts.sort_by_key(|span| span.range.start);
    let mut starts = starts.into_iter().peekable();
    let mut active: Vec<&Span> = Vec::new();
    let mut marks = |edge: usize| {
        active.retain(|span| span.range.end > edge);
        while let Some(span) = starts.next_if(|span| span.range.start <= edge) {
            active.push(span);
        }
        (edge, allowed(&active))
    };
    edges.into_iter().map(&mut marks).collect()
}

/// Returns the styles that can be combined, outermost first.
fn allowed<'a>(active: &[&'a Span]) -> Vec<&'a Style> {
    let mut marks: Vec<&Style> =
        active.iter().map(|span| &span.style).filter(|style| **style != Style::Rows).collect();
    marks.sort_by_key(|style| rank(style));
    marks.dedup_by_key(|style| rank(style));
    let has = |wanted: u8| marks.iter().any(|style| rank(style) == wanted);
    let (in_block, in_link, in_code) = (has(BLOCK), has(LINK), has(CODE));
    marks.retain(|style| match rank(style) {
        BLOCK => true,
        _ if in_block => false,
        QUOTE | LINK => true,
        CODE => !in_link,
        _ => !in_code || in_link,
    });
    marks
}

const QUOTE: u8 = 0;
const LINK: u8 = 1;
const CODE: u8 = 5;
const BLOCK: u8 = 6;

fn rank(style: &Style) -> u8 {
    match style {
        Style::Quote => QUOTE,
        Style::Link(_) => LINK,
        Style::Bold => 2,
        Style::Italic => 3,
        Style::Strike => 4,
        Style::Code => CODE,
        Style::Pre(_) | Style::Table { .. } | Style::Rows => BLOCK,
    }
}

/// Closes tags that no longer apply, and opens new ones.
fn change<'a>(open: &mut Vec<&'a Style>, wanted: Vec<&'a Style>, out: &mut String) {
    let common = open.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    open.drain(common..).rev().for_each(|style| close(style, out));
    wanted.iter().skip(common).for_each(|style| begin(style, out));
    *open = wanted;
}

fn begin(style: &Style, out: &mut String) {
    match style {
        Style::Quote => out.push_str("<blockquote>"),
        Style::Link(url) => {
            out.push_str("<a href=\"");
            escape(url, out);
            out.push_str("\">");
        }
        Style::Bold => out.push_str("<b>"),
        Style::Italic => out.push_str("<i>"),
        Style::Strike => out.push_str("<s>"),
        Style::Code => out.push_str("<code>"),
        // The parser ensures that a language contains only characters that need no escape.
        Style::Pre(Some(language)) => {
            let _ = write!(out, "<pre><code class=\"language-{language}\">");
        }
        Style::Pre(None) | Style::Table { .. } => out.push_str("<pre>"),
        Style::Rows => {}
    }
}

fn close(style: &Style, out: &mut String) {
    out.push_str(match style {
        Style::Quote => "</blockquote>",
        Style::Link(_) => "</a>",
        Style::Bold => "</b>",
        Style::Italic => "</i>",
        Style::Strike => "</s>",
        Style::Code => "</code>",
        Style::Pre(Some(_)) => "</code></pre>",
        Style::Pre(None) | Style::Table { .. } => "</pre>",
        Style::Rows => "",
    });
}

/// Appends text. Escapes the four special characters of Telegram's HTML.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn a_name_mentions_no_user() {
        let cases = [
            ("ask @ada, (@bob)", "ask @\u{2060}ada, (@\u{2060}bob)"),
            ("**@ada**", "<b>@\u{2060}ada</b>"),
            ("a@b.org", "a@b.org"),
            ("https://x.org/@ada", "https://x.org/@ada"),
            ("`@ada`", "<code>@ada</code>"),
        ];
        for (markdown, expected) in cases {
            assert_eq!(html(&parse(markdown)), expected, "{markdown}");
        }
        let text = plain(&parse("ask **@ada** & `@bob`, a@b.org"));
        assert_eq!(text, "ask @\u{2060}ada & @\u{2060}bob, a@b.org");
    }
}
