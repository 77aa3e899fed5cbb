//! Writes styled text as DingTalk's Markdown.
//!
//! DingTalk's clients support bold, italic, links, quotations and code, but no tables (which are already drawn). They
//! keep a line break only after two spaces or as an empty line. Delimiters are closed at the end of each line and
//! reopened in the next. Only the minimum that keeps text from becoming markup is escaped: not every client hides an
//! unnecessary backslash. No text can mention a user: a mention needs a separate list of users, which is never sent.

use super::{APART, Rich, Style, hides_mark};
use std::ops::Range;

/// Returns the text as DingTalk's Markdown.
#[must_use]
pub fn markdown(rich: &Rich) -> String {
    let mut out = String::with_capacity(rich.text.len() * 2);
    let mut at = 0;
    for span in rich.spans.iter().filter(|span| span.style.is_block_code()) {
        if span.range.start < at {
            continue;
        }
        lines(rich, at..span.range.start, &mut out);
        fence(rich.part(span.range.clone()), &mut out);
        at = span.range.end;
    }
    lines(rich, at..rich.text.len(), &mut out);
    out.truncate(out.trim_end().len());
    out
}

/// Writes a block with significant white space, between fences longer than any fence in it.
fn fence(text: &str, out: &mut String) {
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("{ticks}\n{text}\n{ticks}\n"));
}

fn lines(rich: &Rich, range: Range<usize>, out: &mut String) {
    let text = rich.part(range.clone());
    let (mut start, mut before) = (range.start, None);
    for line in text.split('\n') {
        match before {
            None => {}
            Some(blank) if blank || line.trim().is_empty() => out.push('\n'),
            Some(_) => out.push_str("  \n"),
        }
        before = Some(line.trim().is_empty());
        if !line.trim().is_empty() {
            write_line(rich, start..start + line.len(), out);
        }
        start += line.len() + 1;
    }
}

fn write_line(rich: &Rich, range: Range<usize>, out: &mut String) {
    let touches = |style: &Range<usize>| style.start < range.end && range.start < style.end;
    if rich.spans.iter().any(|span| span.style == Style::Quote && touches(&span.range)) {
        out.push_str("> ");
    }
    // Spaces at the start of a line are not shown, or turn it into code.
    let line = rich.part(range.clone());
    let indent = line.len() - line.trim_start_matches(' ').len();
    out.push_str(&"\u{a0}".repeat(indent));
    let range = range.start + indent..range.end;
    if rich.part(range.clone()).starts_with(['#', '>', '+', '-', '=']) && is_first_plain(rich, range.start) {
        out.push('\\');
    }
    inline(rich, range, out);
}

/// Returns whether a line begins without a style, so that its first character could be read as markup.
fn is_first_plain(rich: &Rich, at: usize) -> bool {
    !rich.spans.iter().any(|span| span.range.contains(&at) && rank(&span.style).is_some())
}

/// Writes a part of one line with its styles, whose delimiters are nested in a fixed order.
fn inline(rich: &Rich, range: Range<usize>, out: &mut String) {
    let marks: Vec<(Range<usize>, &Style)> =
        rich.spans.iter().filter_map(|span| Some((within(rich, span, &range)?, &span.style))).collect();
    let mut edges: Vec<usize> = marks.iter().flat_map(|(range, _)| [range.start, range.end]).collect();
    edges.extend([range.start, range.end]);
    edges.sort_unstable();
    edges.dedup();
    let mut open: Vec<&Style> = Vec::new();
    let mut before = None;
    for pair in edges.windows(2) {
        let &[from, to] = pair else { continue };
        let here = marks.iter().filter(|(range, _)| range.start <= from && to <= range.end);
        let wanted = allowed(here.map(|(_, style)| *style).collect());
        let piece = rich.part(from..to);
        change_between(&mut open, &wanted, CharPair { before, after: piece.chars().next() }, out);
        before = piece.chars().next_back();
        if matches!(open.last(), Some(Style::Code)) { code(piece, out) } else { escape(piece, out) }
    }
    change_between(&mut open, &[], CharPair { before, after: None }, out);
}

/// The characters around a position in a line.
#[derive(Clone, Copy)]
struct CharPair {
    before: Option<char>,
    after: Option<char>,
}

/// Closes and opens delimiters between two characters so that each is recognised as a delimiter.
fn change_between<'a>(open: &mut Vec<&'a Style>, wanted: &[&'a Style], around: CharPair, out: &mut String) {
    let CharPair { before, after } = around;
    let common = open.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    let has_mark = |styles: &[&Style]| styles.iter().skip(common).any(|style| is_emphasis(style));
    let (closes, opens) = (has_mark(open), has_mark(wanted));
    if closes && hides_mark(after, before) {
        out.push(APART);
    }
    change(open, wanted, out);
    if opens && hides_mark(before, after) {
        out.push(APART);
    }
}

fn is_emphasis(style: &Style) -> bool {
    matches!(style, Style::Bold | Style::Italic | Style::Strike)
}

/// Returns the part of a line that a style covers, without white space at its ends.
fn within(rich: &Rich, span: &super::Span, line: &Range<usize>) -> Option<Range<usize>> {
    rank(&span.style)?;
    let range = span.range.start.max(line.start)..span.range.end.min(line.end);
    if range.start >= range.end {
        return None;
    }
    let text = rich.part(range.clone());
    let start = range.start + text.len() - text.trim_start().len();
    let end = range.end - (text.len() - text.trim_end().len());
    (start < end).then_some(start..end)
}

/// Returns the nesting order of an inline style, outermost first; `None` for blocks and quotations.
fn rank(style: &Style) -> Option<u8> {
    match style {
        Style::Link(_) => Some(0),
        Style::Bold => Some(1),
        Style::Italic => Some(2),
        Style::Strike => Some(3),
        Style::Code => Some(4),
        Style::Quote | Style::Rows | Style::Pre(_) | Style::Table { .. } => None,
    }
}

fn allowed(mut marks: Vec<&Style>) -> Vec<&Style> {
    marks.sort_by_key(|style| rank(style));
    marks.dedup_by_key(|style| rank(style));
    marks
}

fn change<'a>(open: &mut Vec<&'a Style>, wanted: &[&'a Style], out: &mut String) {
    let common = open.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    open.drain(common..).rev().for_each(|style| close(style, out));
    wanted.iter().skip(common).for_each(|style| begin(style, out));
    *open = wanted.to_vec();
}

fn begin(style: &Style, out: &mut String) {
    out.push_str(match style {
        Style::Link(_) => "[",
        Style::Bold => "**",
        Style::Italic => "*",
        Style::Strike => "~~",
        _ => "",
    });
}

fn close(style: &Style, out: &mut String) {
    match style {
        Style::Link(url) => out.push_str(&format!("]({})", url.replace('(', "%28").replace(')', "%29"))),
        Style::Bold => out.push_str("**"),
        Style::Italic => out.push('*'),
        Style::Strike => out.push_str("~~"),
        _ => {}
    }
}

/// Writes inline code, delimited by more backticks than any run in it.
fn code(text: &str, out: &mut String) {
    let ticks = "`".repeat(longest_run(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    out.push_str(&format!("{ticks}{pad}{text}{pad}{ticks}"));
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Appends text, with a backslash before characters that would be markup.
fn escape(text: &str, out: &mut String) {
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if is_markup(before, c, next) {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
}

fn is_markup(before: Option<char>, c: char, next: Option<char>) -> bool {
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let space = |c: Option<char>| c.is_some_and(char::is_whitespace);
    match c {
        '`' => true,
        '*' => !(space(before) && space(next)),
        '_' => !(word(before) && word(next) || space(before) && space(next)),
        '~' => next == Some('~'),
        ']' => next == Some('('),
        '<' => next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!')),
        '&' => next.is_some_and(|c| c.is_ascii_alphabetic() || c == '#'),
        '\\' => next.is_some_and(|c| c.is_ascii_punctuation()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;
    use proptest::prelude::*;

    fn check(cases: &[(&str, &str)]) {
        for (given, expected) in cases {
            assert_eq!(markdown(&parse(given)), *expected, "for {given:?}");
        }
    }

    #[test]
    fn styles_become_dingtalk_markdown() {
        check(&[
            ("plain", "plain"),
            ("**bold** *italic* ~~gone~~", "**bold** *italic* ~~gone~~"),
            ("**bold *both* bold**", "**bold *both* bold**"),
            ("a `b < c` d", "a `b < c` d"),
            ("``a ` b``", "``a ` b``"),
            ("# Title\ntext", "**Title**\n\ntext"),
            ("[see](https://a.b/c_(d))", "[see](https://a.b/c_%28d%29)"),
            ("![cat](https://x.y/c.png)", "[cat](https://x.y/c.png)"),
            ("> quote\n> more\n\nend", "> quote  \n> more\n\nend"),
        ]);
    }

    #[test]
    fn line_breaks_are_kept() {
        check(&[
            ("one\ntwo", "one  \ntwo"),
            ("one\n\ntwo", "one\n\ntwo"),
            ("- a\n- b\n  - c", "• a  \n• b  \n\u{a0}\u{a0}◦ c"),
            ("1. a\n2. b", "1. a  \n2. b"),
            ("**one\ntwo**", "**one**  \n**two**"),
        ]);
    }

    #[test]
    fn code_and_tables_are_fenced_without_a_language() {
        check(&[
            ("```rust\nfn a() {\n    b\n}\n```\nend", "```\nfn a() {\n    b\n}\n```\n\n\nend"),
            ("````\n```\n````", "````\n```\n````"),
            ("| a | b |\n|--|--|\n| 1 | 2 |", "```\na │ b\n──┼──\n1 │ 2\n```"),
        ]);
    }

    #[test]
    fn text_does_not_become_markup() {
        check(&[
            ("snake_case and 2 * 3", "snake_case and 2 * 3"),
            ("\\*not bold\\*", "\\*not bold\\*"),
            (
                "a \\[x\\](dtmd://dingtalkclient/sendMessage?content=hi)",
                "a [x\\](dtmd://dingtalkclient/sendMessage?content=hi)",
            ),
            (
                "[go](dtmd://dingtalkclient/sendMessage?content=hi)",
                "go (dtmd://dingtalkclient/sendMessage?content=hi)",
            ),
            ("<font color=red>x</font>", "\\<font color=red>x\\</font>"),
            ("\\# no title", "\\# no title"),
            ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
            ("@all @13800000000", "@all @13800000000"),
        ]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn arbitrary_text_can_be_written(text in "[a-z*_`~<>#\\[\\]() \n|-]{0,120}") {
            let rich = parse(&text);
            let written = markdown(&rich);
            prop_assert!(written.is_empty() == rich.text.trim().is_empty());
        }
    }
}
