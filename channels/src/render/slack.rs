//! Writes styled text for Slack: as mrkdwn, Slack's own markup, and as Markdown, which its streams require.
//!
//! Neither can ping a user: `<`, `>` and `&` are escaped. Code in Markdown supports no escapes, so an invisible
//! character is inserted into anything that would be a reference. mrkdwn cannot escape its own delimiters, so an
//! invisible character is added after a character that would be a delimiter.

use super::{APART, Rich, Span, Style, hides_mark};

/// Zero-width character that does not break words.
const JOINER: char = '\u{2060}';

/// Returns the text as mrkdwn.
#[must_use]
pub fn mrkdwn(rich: &Rich) -> String {
    write(rich, &Mrkdwn)
}

/// Returns the text as standard Markdown.
#[must_use]
pub fn markdown(rich: &Rich) -> String {
    write(rich, &Markdown { open_end: false })
}

/// Returns the text as the beginning of a longer Markdown text. A code block at its end is left open.
#[must_use]
pub fn markdown_so_far(rich: &Rich) -> String {
    write(rich, &Markdown { open_end: true })
}

/// One of the two markups.
trait Markup {
    /// Writes a code block with the text `code`.
    fn block(&self, code: &str, language: Option<&str>, last: bool, out: &mut String);
    /// Writes the text of a line with its styles.
    fn write_line(&self, line: &SlackLine<'_>, out: &mut String);
    /// Prefix of a line of a quotation.
    const QUOTE: &'static str;
}

/// A piece of a line with uniform styles.
struct StyledPiece<'a> {
    text: &'a str,
    bold: bool,
    italic: bool,
    strike: bool,
    code: bool,
    link: Option<&'a str>,
}

struct SlackLine<'a> {
    pieces: Vec<StyledPiece<'a>>,
}

impl SlackLine<'_> {
    /// Returns the character after piece `n`, whose trailing white space is `tail`.
    fn next(&self, n: usize, tail: &str) -> Option<char> {
        let next = || self.pieces.get(n + 1).and_then(|piece| piece.text.chars().next());
        tail.chars().next().or_else(next)
    }
}

fn write<M: Markup>(rich: &Rich, markup: &M) -> String {
    let mut out = String::with_capacity(rich.text.len() * 2);
    let mut blocks: Vec<&Span> = rich.spans.iter().filter(|span| span.style.is_block_code()).collect();
    blocks.sort_by_key(|span| span.range.start);
    let mut at = 0;
    for span in blocks {
        if span.range.start < at {
            continue;
        }
        lines(rich, at..span.range.start, markup, &mut out);
        let language = if let Style::Pre(language) = &span.style { language.as_deref() } else { None };
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        let last = span.range.end == rich.text.len();
        markup.block(rich.part(span.range.clone()), language, last, &mut out);
        at = span.range.end;
    }
    lines(rich, at..rich.text.len(), markup, &mut out);
    out
}

/// Writes the text between code blocks.
fn lines<M: Markup>(rich: &Rich, range: std::ops::Range<usize>, markup: &M, out: &mut String) {
    let text = rich.part(range.clone());
    let mut start = range.start;
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let end = start + line.len();
        if !line.is_empty() {
            let quoted = covers(rich, start, |style| matches!(style, Style::Quote)).is_some();
            if quoted {
                out.push_str(M::QUOTE);
            }
            markup.write_line(&SlackLine { pieces: pieces(rich, start, end) }, out);
        }
        start = end + 1;
    }
}

fn covers(rich: &Rich, at: usize, wanted: impl Fn(&Style) -> bool) -> Option<&Style> {
    let over = |span: &&Span| span.range.contains(&at) && wanted(&span.style);
    rich.spans.iter().find(over).map(|span| &span.style)
}

/// Splits a line where styles begin or end.
fn pieces(rich: &Rich, start: usize, end: usize) -> Vec<StyledPiece<'_>> {
    let inner = |at: &usize| *at > start && *at < end;
    let mut edges: Vec<usize> =
        rich.spans.iter().flat_map(|span| [span.range.start, span.range.end]).filter(inner).collect();
    edges.extend([start, end]);
    edges.sort_unstable();
    edges.dedup();
    let mut pieces: Vec<StyledPiece<'_>> = Vec::new();
    let mut part_start = start;
    for (from, to) in edges.iter().zip(edges.iter().skip(1)) {
        let piece = styled(rich, *from, *to);
        match pieces.last_mut().filter(|last| last.looks_like(&piece)) {
            // A style nested in itself: two pieces would close and reopen the same delimiter in one position.
            Some(last) => last.text = rich.part(part_start..*to),
            None => {
                part_start = *from;
                pieces.push(piece);
            }
        }
    }
    pieces
}

/// Returns a piece of text with uniform styles.
fn styled(rich: &Rich, from: usize, to: usize) -> StyledPiece<'_> {
    let has = |wanted: fn(&Style) -> bool| covers(rich, from, wanted).is_some();
    StyledPiece {
        text: rich.part(from..to),
        bold: has(|style| matches!(style, Style::Bold)),
        italic: has(|style| matches!(style, Style::Italic)),
        strike: has(|style| matches!(style, Style::Strike)),
        code: has(|style| matches!(style, Style::Code)),
        link: covers(rich, from, |style| matches!(style, Style::Link(_))).and_then(target),
    }
}

impl StyledPiece<'_> {
    /// Returns whether another piece has the same styles. Pieces of code are never merged.
    fn looks_like(&self, other: &Self) -> bool {
        let marks = |piece: &Self| (piece.bold, piece.italic, piece.strike);
        marks(self) == marks(other) && self.link == other.link && !self.code && !other.code
    }
}

fn target(style: &Style) -> Option<&str> {
    if let Style::Link(url) = style { Some(url) } else { None }
}

/// Splits off the white space around a text, because delimiters must not be next to white space.
fn split_whitespace_around(text: &str) -> (&str, &str, &str) {
    let words = text.trim();
    let before = text.len() - text.trim_start().len();
    let (head, rest) = text.split_at_checked(before).unwrap_or(("", text));
    let (_, tail) = rest.split_at_checked(words.len()).unwrap_or((rest, ""));
    (head, words, tail)
}

struct Mrkdwn;

impl Markup for Mrkdwn {
    const QUOTE: &'static str = "> ";

    fn block(&self, code: &str, _language: Option<&str>, _last: bool, out: &mut String) {
        out.push_str("```\n");
        escape(&code.replace("```", "`\u{200b}`\u{200b}`"), out);
        out.push_str("\n```");
    }

    fn write_line(&self, line: &SlackLine<'_>, out: &mut String) {
        for (n, piece) in line.pieces.iter().enumerate() {
            let (head, words, tail) = split_whitespace_around(piece.text);
            escape(head, out);
            if words.is_empty() {
                continue;
            }
            let marks = mrkdwn_marks(piece, words);
            if !marks.is_empty() && out.ends_with(hides_mrkdwn) {
                out.push(APART);
            }
            out.push_str(&marks);
            mrkdwn_words(piece, words, n == 0 && head.is_empty(), out);
            out.extend(marks.chars().rev());
            if !marks.is_empty() && line.next(n, tail).is_some_and(hides_mrkdwn) {
                out.push(APART);
            }
            escape(tail, out);
        }
    }
}

/// Returns whether Slack recognises no delimiter next to this character: a letter, or a symbol of another script.
fn hides_mrkdwn(c: char) -> bool {
    c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace() || c == APART)
}

/// Returns the opening delimiters of a piece. Reversed, they close it.
fn mrkdwn_marks(piece: &StyledPiece<'_>, words: &str) -> String {
    let code = piece.code && piece.link.is_none() && !words.contains('`');
    let marks = [(piece.bold, '*'), (piece.italic, '_'), (piece.strike, '~'), (code, '`')];
    marks.into_iter().filter(|(on, _)| *on).map(|(_, mark)| mark).collect()
}

fn mrkdwn_words(piece: &StyledPiece<'_>, words: &str, begins_line: bool, out: &mut String) {
    if let Some(url) = piece.link {
        out.push('<');
        escape(&url.replace('|', "%7C").replace('<', "%3C").replace('>', "%3E"), out);
        if words != url {
            out.push('|');
            escape(&words.replace('|', "¦"), out);
        }
        out.push('>');
    } else if piece.code && !words.contains('`') {
        escape(words, out);
    } else {
        if begins_line && words.starts_with('>') {
            out.push(APART);
        }
        literal(words, out, |mark, out| out.extend([mark, APART]));
    }
}

/// Appends plain text. Characters that could begin markup are passed to `tame`; the others are escaped.
fn literal(words: &str, out: &mut String, tame: impl Fn(char, &mut String)) {
    let mut chars = words.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let before = words.get(..at).and_then(|text| text.chars().next_back());
        let after = chars.peek().map(|(_, c)| *c);
        let opens = before.is_none_or(|c| !c.is_alphanumeric()) && after.is_some_and(|c| !c.is_whitespace());
        if matches!(c, '*' | '_' | '~' | '`') && opens {
            tame(c, out);
        } else {
            escape(words.get(at..at + c.len_utf8()).unwrap_or_default(), out);
        }
    }
}

/// Appends text. Escapes the three characters with a special meaning in Slack.
pub(crate) fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            other => out.push(other),
        }
    }
}

struct Markdown {
    open_end: bool,
}

impl Markup for Markdown {
    const QUOTE: &'static str = "> ";

    fn block(&self, code: &str, language: Option<&str>, last: bool, out: &mut String) {
        out.push_str("```");
        out.push_str(language.unwrap_or_default());
        out.push('\n');
        raw(&code.replace("```", "`\u{2060}`\u{2060}`"), out);
        if !(last && self.open_end) {
            out.push_str("\n```");
        }
    }

    fn write_line(&self, line: &SlackLine<'_>, out: &mut String) {
        for (n, piece) in line.pieces.iter().enumerate() {
            let (head, words, tail) = split_whitespace_around(piece.text);
            out.push_str(head);
            if words.is_empty() {
                continue;
            }
            let code = piece.code && !words.contains('`');
            let marks = [(piece.bold, "**"), (piece.italic, "*"), (piece.strike, "~~"), (code, "`")];
            let marks: String = marks.into_iter().filter(|(on, _)| *on).map(|(_, mark)| mark).collect();
            let emphasized = piece.bold || piece.italic || piece.strike;
            let outer = out.chars().next_back().filter(|_| emphasized && piece.link.is_none());
            let next = line.next(n, tail).filter(|_| emphasized && piece.link.is_none());
            if piece.link.is_some() {
                out.push('[');
            }
            out.push_str(&marks);
            if hides_mark(outer, words.chars().next()) {
                out.push(APART);
            }
            markdown_words(words, code, n == 0 && head.is_empty(), out);
            if hides_mark(next, words.chars().next_back()) {
                out.push(APART);
            }
            out.extend(marks.chars().rev());
            if let Some(url) = piece.link {
                out.push_str("](");
                out.push_str(&url.replace(' ', "%20").replace('(', "%28").replace(')', "%29"));
                out.push(')');
            }
            out.push_str(tail);
        }
    }
}

fn markdown_words(words: &str, code: bool, begins_line: bool, out: &mut String) {
    if code {
        raw(words, out);
        return;
    }
    // At the beginning of a line, these would start a heading, a list or a quotation.
    if begins_line && words.starts_with(['#', '-', '+', '>']) {
        out.push('\\');
    }
    let mut tamed = String::new();
    literal(words, &mut tamed, |mark, out| out.extend(['\\', mark]));
    // Where Slack links names, these names ping all members without being references.
    for name in ["@here", "@channel", "@everyone"] {
        if tamed.contains(name) {
            tamed = tamed.replace(name, &name.replacen('@', "@\u{2060}", 1));
        }
    }
    out.push_str(&tamed);
}

/// Appends code. Nothing is escaped; references are broken up.
fn raw(code: &str, out: &mut String) {
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '<' && chars.peek().is_some_and(|next| matches!(next, '@' | '!' | '#')) {
            out.push(JOINER);
        }
    }
}

/// Returns the part of a growing text that is unlikely to change any more. Leaves out parts that may still become a
/// styled range, a heading or a table.
#[must_use]
pub fn settled(rich: &Rich) -> Rich {
    let end = rich.text.len();
    let mut cut = end;
    let is_last = |span: &&Span| span.style.is_block() && span.range.end == end;
    match rich.spans.iter().rfind(is_last) {
        Some(Span { range, style: Style::Table { .. } | Style::Rows }) => cut = range.start,
        Some(span) => cut = settled_code(rich, span),
        None => {
            let block = rich.text.rfind("\n\n").map_or(0, |at| at + 2);
            cut = cut.min(block + first_doubt(rich, block));
        }
    }
    for span in rich.spans.iter().filter(|span| !span.style.is_block()) {
        // A style that reaches the end may still grow.
        if span.range.end >= cut && span.range.start < cut {
            cut = span.range.start;
        }
    }
    let mut end = rich.part(0..cut).trim_end().len();
    // Another row may widen a table.
    let table = |span: &&Span| {
        matches!(span.style, Style::Table { .. } | Style::Rows) && span.range.contains(&end.saturating_sub(1))
    };
    if let Some(table) = rich.spans.iter().find(table) {
        end = rich.part(0..table.range.start).trim_end().len();
        cut = end;
    }
    let solid = rich.spans.iter().any(|span| span.style.is_block_code() && span.range.end == cut);
    rich.slice(0..if solid { cut } else { end }, "")
}

/// Returns the end of the settled part of a code block. Its last line may be the beginning of the closing fence.
fn settled_code(rich: &Rich, span: &Span) -> usize {
    let code = rich.part(span.range.clone());
    let line = code.rfind('\n').map_or(0, |at| at + 1);
    let last = code.get(line..).unwrap_or_default();
    let maybe_fence = last.trim_start().starts_with(['`', '~']);
    if maybe_fence { span.range.start + line.saturating_sub(1) } else { span.range.end }
}

/// Returns the first position in the last paragraph that later text may turn into markup.
fn first_doubt(rich: &Rich, block: usize) -> usize {
    let text = rich.part(block..rich.text.len());
    let settled_mark =
        |at: usize| covers(rich, block + at, |style| !matches!(style, Style::Quote | Style::Rows)).is_some();
    let mark =
        text.char_indices().find(|(at, _)| doubtful(text, *at) && !settled_mark(*at)).map(|(at, _)| at);
    let line = text.rfind('\n').map_or(0, |at| at + 1);
    let last = text.get(line..).unwrap_or_default();
    let marker = !last.is_empty()
        && last.chars().all(|c| c.is_ascii_digit() || c.is_whitespace() || "#>-+=.)".contains(c));
    let line = marker.then_some(line);
    [mark, line].into_iter().flatten().min().unwrap_or(text.len())
}

/// Returns whether following text may turn the character at `at` into markup.
fn doubtful(text: &str, at: usize) -> bool {
    let (before, from) = text.split_at_checked(at).unwrap_or((text, ""));
    let mut rest = from.chars();
    let sign = rest.next();
    let after = rest.as_str();
    let next = rest.next();
    let loose = next.is_some_and(char::is_whitespace);
    let within = before.ends_with(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric);
    match sign {
        Some('*' | '~' | '`') => !loose,
        Some('_') => !loose && !within,
        Some('[' | '|') => true,
        Some('(') => is_open(after),
        Some('$') => next.is_none_or(|c| c == '$'),
        Some('<') => next.is_none_or(|c| c.is_alphabetic() || matches!(c, '/' | '!' | '?' | '@' | '#')),
        Some('&') => next.is_none_or(|c| c.is_alphanumeric() || c == '#'),
        Some('!') => next.is_none_or(|c| c == '['),
        Some('\\') => next.is_none(),
        Some('@') => !after.contains(char::is_whitespace) && after.len() < "everyone".len(),
        _ => false,
    }
}

/// Returns whether the text after a bracket does not close it, so that it may become a formula.
fn is_open(after: &str) -> bool {
    let mut depth = 1_usize;
    after.chars().all(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn styles_become_mrkdwn() {
        let cases = [
            ("plain", "plain"),
            ("**bold** *italic* ~~gone~~ `a < b`", "*bold* _italic_ ~gone~ `a &lt; b`"),
            ("**bold *both***", "*bold* *_both_*"),
            ("**no**where", "*no*\u{200b}where"),
            ("# Title\n\ntext", "*Title*\n\ntext"),
            ("[see](https://a.b/?x=1&y=2)", "<https://a.b/?x=1&amp;y=2|see>"),
            ("> one\n> two", "> one\n> two"),
            ("- a\n- b", "• a\n• b"),
            ("```rust\nlet a = \"<b>\";\n```", "```\nlet a = \"&lt;b&gt;\";\n```"),
            ("one\n```\nx\n```\ntwo", "one\n\n```\nx\n```\n\ntwo"),
            ("\\*no mark\\*", "*\u{200b}no mark*"),
            ("**a\nb**", "*a*\n*b*"),
        ];
        for (given, expected) in cases {
            assert_eq!(mrkdwn(&parse(given)), expected, "for {given:?}");
        }
    }

    #[test]
    fn model_output_pings_no_user() {
        for given in
            ["<!channel> hi", "<@U1>", "`<!here>`", "```\n<!everyone> <@U2>\n```", "[x](<https://a|b>)"]
        {
            let rich = parse(given);
            for written in [mrkdwn(&rich), markdown(&rich)] {
                assert!(!written.contains("<!") && !written.contains("<@"), "{given:?}: {written:?}");
            }
        }
        assert_eq!(markdown(&parse("@channel look")), "@\u{2060}channel look");
    }

    #[test]
    fn streams_get_markdown() {
        let cases = [
            ("**bold** *it* `c`", "**bold** *it* `c`"),
            ("# Title\n\n- a", "**Title**\n\n• a"),
            ("[see](https://a.b)", "[see](https://a.b)"),
            ("2 < 3", "2 &lt; 3"),
            ("```rust\na < b\n```", "```rust\na < b\n```"),
            ("1\\. x", "1. x"),
        ];
        for (given, expected) in cases {
            assert_eq!(markdown(&parse(given)), expected, "for {given:?}");
        }
    }

    #[test]
    fn settled_text_stays_a_prefix_while_the_text_grows() {
        let full = "# A title\n\nSome **bold words** and `code` with a [link](https://a.b) in it, 2 < 3.\n\n\
            - one\n- two *x*\n\n```rust\nfn a() {\n    b\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n\
            A (note) and \\(x_1 * y_1\\) for $5, [^1] too.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | a cell that is wider than sixty characters, \
            which makes rows of the table |\n\nThe end & more.\n\n[^1]: note";
        let mut sent = String::new();
        let mut steps = 0;
        for (at, _) in full.char_indices().skip(1) {
            let now = markdown_so_far(&settled(&parse(full.get(..at).unwrap())));
            assert!(
                now.starts_with(&sent) || sent.starts_with(&now),
                "{sent:?} is not the beginning of {now:?}"
            );
            if now.len() > sent.len() {
                sent = now;
                steps += 1;
            }
        }
        let end = markdown(&parse(full));
        assert!(end.starts_with(&sent), "{sent:?}\n{end:?}");
        assert!(steps > 40, "only {steps} steps");
    }
}
