//! Writes styled text as Discord's Markdown.
//!
//! Discord parses markup in any text, so everything that only looks like markup is escaped. Delimiters are closed at
//! the end of each line, so that any line can begin with `>`. URLs are put between angle brackets, which prevent markup
//! and previews.

use super::{APART, Rich, Span, Style};
use std::{cmp::Reverse, fmt::Write, ops::Range};

/// Returns the text as Markdown for a message's content.
#[must_use]
pub fn markdown(rich: &Rich) -> String {
    let mut out = String::with_capacity(rich.text.len() * 5 / 4);
    let mut at = 0;
    for block in rich.spans.iter().filter(|span| span.style.is_block_code()) {
        // A nested block is part of the outer one.
        if block.range.start < at {
            continue;
        }
        write_lines(rich, at..block.range.start, &mut out);
        fence(rich.part(block.range.clone()), &block.style, &mut out);
        at = block.range.end;
    }
    write_lines(rich, at..rich.text.len(), &mut out);
    out
}

/// Writes a code block. Its fences are on separate lines, which replace an empty line.
fn fence(code: &str, style: &Style, out: &mut String) {
    let before = out.trim_end_matches('\n').len();
    if before > 0 && out.len() > before {
        out.truncate(before);
        out.push('\n');
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    let language = match style {
        Style::Pre(Some(language)) => language.as_str(),
        _ => "",
    };
    // Fences inside would end the block.
    let code = code.replace("```", &format!("`{APART}`{APART}`"));
    let _ = write!(out, "```{language}\n{}\n```", code.trim_end_matches('\n'));
}

fn write_lines(rich: &Rich, range: Range<usize>, out: &mut String) {
    let mut start = range.start;
    let text = rich.part(range.clone());
    // After a fence, one line break is enough.
    let after_fence = out.ends_with("```") && text.starts_with('\n');
    let breaks = text.len() - text.trim_start_matches('\n').len();
    if after_fence {
        out.push('\n');
        start += breaks;
    }
    for (n, line) in rich.part(start..range.end).split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        write_line(rich, start..start + line.len(), out);
        start += line.len() + 1;
    }
}

fn write_line(rich: &Rich, line: Range<usize>, out: &mut String) {
    let touches = |span: &&Span| span.range.start <= line.start && span.range.end > line.start;
    if rich.spans.iter().filter(touches).any(|span| span.style == Style::Quote) {
        out.push_str("> ");
    }
    let spans = inline(rich, &line);
    let mut edges: Vec<usize> = spans.iter().flat_map(|span| [span.range.start, span.range.end]).collect();
    edges.extend([line.start, line.end]);
    edges.sort_unstable();
    edges.dedup();
    let mut pen = Pen { out, open: Vec::new(), closed: false, has_started: false };
    for (from, to) in edges.iter().zip(edges.iter().skip(1)) {
        let active = spans.iter().filter(|span| span.range.start <= *from && span.range.end >= *to);
        pen.change(allowed(active.collect()));
        pen.write(rich.part(*from..*to));
    }
    pen.change(Vec::new());
}

/// Returns the styles of a line, without white space at their ends, because Discord recognises no delimiters there.
fn inline(rich: &Rich, line: &Range<usize>) -> Vec<Span> {
    let cut = |span: &Span| {
        let (start, end) = (span.range.start.max(line.start), span.range.end.min(line.end));
        let text = rich.part(start..end.max(start));
        let (lead, trail) = (text.len() - text.trim_start().len(), text.trim_end().len());
        let range = if span.style == Style::Code { start..end } else { start + lead..start + trail };
        let blank = text.trim().is_empty() || matches!(span.style, Style::Quote | Style::Rows);
        (!blank).then(|| Span { range, style: span.style.clone() })
    };
    rich.spans.iter().filter_map(cut).collect()
}

/// Returns the styles that can be combined, in nesting order, outermost first.
fn allowed(mut spans: Vec<&Span>) -> Vec<Style> {
    spans.sort_by_key(|span| (span.range.start, Reverse(span.range.end), rank(&span.style)));
    let mut marks: Vec<&Style> = Vec::new();
    for span in spans {
        if !marks.iter().any(|style| rank(style) == rank(&span.style)) {
            marks.push(&span.style);
        }
    }
    let in_link = marks.iter().any(|style| matches!(style, Style::Link(_)));
    // Discord ignores code in a link. Code contains no other style.
    marks.retain(|style| !(in_link && rank(style) == CODE));
    marks.sort_by_key(|style| rank(style) == CODE);
    marks.into_iter().cloned().collect()
}

const CODE: u8 = 4;

fn rank(style: &Style) -> u8 {
    match style {
        Style::Bold => 0,
        Style::Italic => 1,
        Style::Strike => 2,
        Style::Link(_) => 3,
        Style::Code => CODE,
        Style::Quote | Style::Rows | Style::Pre(_) | Style::Table { .. } => 5,
    }
}

/// Writes one line.
struct Pen<'a> {
    out: &'a mut String,
    open: Vec<Style>,
    /// Whether the output ends with a closing delimiter. Another delimiter must not follow directly.
    closed: bool,
    /// Whether text of this line was written.
    has_started: bool,
}

impl Pen<'_> {
    /// Closes delimiters that no longer apply, and opens new ones.
    fn change(&mut self, wanted: Vec<Style>) {
        let common = self.open.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        while self.open.len() > common {
            if let Some(style) = self.open.pop() {
                self.close(&style);
            }
        }
        for style in wanted.iter().skip(common) {
            if self.closed && !matches!(style, Style::Code | Style::Link(_)) {
                self.out.push(APART);
            }
            self.begin(style);
        }
        self.open = wanted;
    }

    fn begin(&mut self, style: &Style) {
        self.has_started = true;
        self.closed = false;
        match style {
            Style::Link(url) if is_web(url) => self.out.push('['),
            Style::Bold => self.out.push_str("**"),
            Style::Italic => self.out.push('*'),
            Style::Strike => self.out.push_str("~~"),
            _ => {}
        }
    }

    fn close(&mut self, style: &Style) {
        self.closed = matches!(style, Style::Bold | Style::Italic | Style::Strike);
        match style {
            Style::Link(url) if is_web(url) => {
                let _ = write!(self.out, "](<{}>)", escape_url(url));
            }
            Style::Link(url) => {
                self.out.push_str(" (");
                plain(url, false, self.out);
                self.out.push(')');
            }
            Style::Bold => self.out.push_str("**"),
            Style::Italic => self.out.push('*'),
            Style::Strike => self.out.push_str("~~"),
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let link = self.open.iter().find_map(|style| match style {
            Style::Link(url) if is_web(url) => Some(url),
            _ => None,
        });
        match (self.open.last(), link) {
            (Some(Style::Code), _) => code(text, self.out),
            // Discord does not allow a link text that is itself a URL; the text alone is enough.
            (_, Some(_)) => escape(text, true, self.out),
            _ => plain(text, !self.has_started, self.out),
        }
        self.has_started |= !text.trim().is_empty();
        self.closed = false;
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// Escapes the characters that would end a URL here.
fn escape_url(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '\\' => out.push_str("%5C"),
            other => out.push(other),
        }
    }
    out
}

/// Writes inline code, delimited by as many backticks as needed.
fn code(text: &str, out: &mut String) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    match longest {
        0 => {
            let _ = write!(out, "`{text}`");
        }
        1 => {
            let _ = write!(out, "`` {text} ``");
        }
        // Discord supports at most two, so other backticks are replaced by a similar character.
        _ => {
            let _ = write!(out, "`{}`", text.replace('`', "ˋ"));
        }
    }
}

/// Writes text, with URLs between angle brackets and everything else escaped.
fn plain(text: &str, at_start: bool, out: &mut String) {
    let mut rest = text;
    let mut start = at_start;
    while let Some(at) = address(rest) {
        let (words, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        escape_from(words, start, false, out);
        let end = from.find(|c: char| c.is_whitespace() || matches!(c, '<' | '>')).unwrap_or(from.len());
        let (url, after) = from.split_at_checked(end).unwrap_or((from, ""));
        // Punctuation after a URL belongs to the sentence.
        let bare = url.trim_end_matches(['.', ',', ':', ';', '!', '?', '"', '\'', ')', ']', '*', '_']);
        let _ = write!(out, "<{bare}>");
        start = false;
        escape_from(url.strip_prefix(bare).unwrap_or_default(), false, false, out);
        rest = after;
    }
    escape_from(rest, start, false, out);
}

/// Returns the position of the next URL that has text after its scheme.
fn address(text: &str) -> Option<usize> {
    let begins = |scheme: &str| {
        text.match_indices(scheme).map(|(at, _)| at).find(|at| {
            let next = text.get(at + scheme.len()..).and_then(|rest| rest.chars().next());
            next.is_some_and(char::is_alphanumeric)
        })
    };
    [begins("http://"), begins("https://")].into_iter().flatten().min()
}

fn escape(text: &str, in_link: bool, out: &mut String) {
    escape_from(text, false, in_link, out);
}

/// Writes a text so that it is shown literally.
fn escape_from(text: &str, at_start: bool, in_link: bool, out: &mut String) {
    let mut start = at_start;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let next = after.chars().next();
        let marks = match c {
            '\\' | '*' | '_' | '~' | '`' | '|' | '[' | '<' => true,
            ']' => in_link,
            // Mentions.
            '@' => next.is_some_and(|next| next.is_alphanumeric() || matches!(next, '!' | '&')),
            // Only at the start of a line: quotations, headings, small text, lists.
            '>' | '#' => start,
            '-' | '+' => start && matches!(next, Some(' ' | '#')),
            // A URL in a link text, or one left by a split, must not become a link.
            ':' => after.starts_with("//"),
            _ => false,
        };
        if marks {
            out.push('\\');
        }
        out.push(c);
        start &= c.is_whitespace() || c == '#';
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    fn check(cases: &[(&str, &str)]) {
        for (given, expected) in cases {
            assert_eq!(markdown(&parse(given)), *expected, "for {given:?}");
        }
    }

    #[test]
    fn styles_become_discord_markdown() {
        check(&[
            ("plain", "plain"),
            ("**bold** *italic* ~~gone~~", "**bold** *italic* ~~gone~~"),
            ("**bold *both* bold**", "**bold *both* bold**"),
            ("# Title\ntext", "**Title**\n\ntext"),
            ("a `b*c` d", "a `b*c` d"),
            ("**bold `code` bold**", "**bold `code` bold**"),
            ("- a\n- b", "• a\n• b"),
            ("> quote\n> more\n\nend", "> quote\n> more\n\nend"),
            ("> one\n>\n> two", "> one\n> \n> two"),
            ("**two\nlines**", "**two**\n**lines**"),
            ("**a***b*", "**a**\u{200b}*b*"),
            ("**this [page](https://x.y) here**", "**this [page](<https://x.y>) here**"),
            ("***all* of it**", "***all* of it**"),
        ]);
    }

    #[test]
    fn text_that_looks_like_markup_is_escaped() {
        check(&[
            ("2 \\* 3 and snake_case_name", "2 \\* 3 and snake\\_case\\_name"),
            (
                "a \\`tick\\` and \\~\\~x\\~\\~ and ||spoiler||",
                "a \\`tick\\` and \\~\\~x\\~\\~ and \\|\\|spoiler\\|\\|",
            ),
            ("\\# no heading", "\\# no heading"),
            ("\\- no list", "\\- no list"),
            ("\\-\\# small", "\\-# small"),
            ("a - b # c > d", "a - b # c > d"),
            ("\\[a](b)", "\\[a](b)"),
            ("C:\\\\dir", "C:\\\\dir"),
        ]);
    }

    #[test]
    fn names_ping_no_user() {
        check(&[
            ("hi @everyone and @here", "hi \\@everyone and \\@here"),
            ("\\<@123> \\<@&5> \\<#7>", "\\<\\@123> \\<\\@&5> \\<#7>"),
            ("me@x.org", "me\\@x.org"),
            ("`@everyone <@1>`", "`@everyone <@1>`"),
        ]);
    }

    #[test]
    fn urls_are_complete_and_have_no_preview() {
        check(&[
            ("see https://x.org/a_b_c?d=e.", "see <https://x.org/a_b_c?d=e>."),
            ("(https://x.org/a)", "(<https://x.org/a>)"),
            ("[the *page*](https://x.org/(a))", "[the *page*](<https://x.org/%28a%29>)"),
            ("[a\\]b](https://x.org)", "[a\\]b](<https://x.org>)"),
            ("[mail](mailto:me@x.org)", "mail (mailto:me\\@x.org)"),
            ("https:// alone", "https\\:// alone"),
        ]);
    }

    #[test]
    fn code_stays_code() {
        check(&[
            ("```rust\nlet a = \"*\";\n```", "```rust\nlet a = \"*\";\n```"),
            ("text\n\n```\ncode\n```\n\nend", "text\n```\ncode\n```\nend"),
            ("````\n```\ninner\n```\n````", "```\n`\u{200b}`\u{200b}`\ninner\n`\u{200b}`\u{200b}`\n```"),
            ("a ``x`y`` b", "a `` x`y `` b"),
            ("a ```` x```y ```` b", "a `xˋˋˋy` b"),
            ("|a|b|\n|-|-|\n|1|2|", "```\na │ b\n──┼──\n1 │ 2\n```"),
        ]);
    }

    #[test]
    fn no_text_is_lost() {
        let signs = "*_~`|[]()<>#-+@:\\/ ab\n";
        for seed in 0..400 {
            fastrand::seed(seed);
            let text: String =
                (0..40).filter_map(|_| signs.chars().nth(fastrand::usize(..signs.len()))).collect();
            let written = markdown(&Rich::plain(text.clone()));
            // Removing escapes and the brackets around URLs restores the text.
            let back: String = written.replace("\\\\", "\0").replace('\\', "").replace('\0', "\\");
            if !text.contains("http") {
                assert_eq!(back, text, "{text:?} became {written:?}");
            }
        }
    }
}
