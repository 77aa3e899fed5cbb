//! Writes styled text as the Markdown of Feishu's cards.
//!
//! Characters with a meaning in the markup are written as entities, so that text stays text: if a model writes `<at
//! id=all></at>`, no user is mentioned. Code does not support entities; there, an invisible character breaks up tags
//! that mention a user. As the markup requires, delimiters do not span lines and do not touch white space.

use super::{APART, Rich, Span, Style, hides_mark};

/// Beginnings of tags that mention users, in lower case.
const NAMING: [&str; 2] = ["<at", "<person"];

/// Returns the text as a card's Markdown.
#[must_use]
pub fn card_markdown(rich: &Rich) -> String {
    let mut out = String::with_capacity(rich.text.len() + rich.text.len() / 4);
    let mut edges: Vec<usize> =
        rich.spans.iter().flat_map(|span| [span.range.start, span.range.end]).collect();
    edges.extend([0, rich.text.len()]);
    edges.sort_unstable();
    edges.dedup();
    for pair in edges.windows(2) {
        let &[start, end] = pair else { continue };
        let marks = FeishuTextStyle::at(rich, start);
        let around =
            (rich.part(0..start).chars().next_back(), rich.part(end..rich.text.len()).chars().next());
        marks.write(rich.part(start..end), around, &mut out);
    }
    let end = out.trim_end().len();
    out.truncate(end);
    out
}

/// Styles of a segment of the text.
#[derive(Default)]
struct FeishuTextStyle<'a> {
    block: Option<&'a Span>,
    quote: bool,
    bold: bool,
    italic: bool,
    strike: bool,
    code: bool,
    link: Option<&'a str>,
}

impl<'a> FeishuTextStyle<'a> {
    fn at(rich: &'a Rich, at: usize) -> Self {
        let mut marks = Self::default();
        for span in rich.spans.iter().filter(|span| span.range.contains(&at)) {
            match &span.style {
                Style::Bold => marks.bold = true,
                Style::Italic => marks.italic = true,
                Style::Strike => marks.strike = true,
                Style::Code => marks.code = true,
                Style::Quote => marks.quote = true,
                Style::Link(url) => marks.link = Some(url),
                Style::Pre(_) | Style::Table { .. } => marks.block = Some(span),
                Style::Rows => {}
            }
        }
        marks
    }

    /// Writes a segment of the text. `around` contains the characters before and after it.
    fn write(&self, text: &str, around: (Option<char>, Option<char>), out: &mut String) {
        if let Some(span) = self.block {
            return block(text, &span.style, out);
        }
        for (n, line) in text.split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
            }
            if self.quote && begins_line(out) && !line.is_empty() {
                out.push_str("> ");
            }
            self.line(line, around, out);
        }
    }

    fn line(&self, line: &str, (before_text, after_text): (Option<char>, Option<char>), out: &mut String) {
        let words = line.trim();
        if words.is_empty() {
            return out.push_str(line);
        }
        let (before, after) = line.split_once(words).unwrap_or_default();
        let hides_open = before.is_empty() && hides_mark(before_text, words.chars().next());
        let hides_close = after.is_empty() && hides_mark(after_text, words.chars().next_back());
        out.push_str(before);
        let marks: String = [(self.bold, "**"), (self.italic, "*"), (self.strike, "~~")]
            .into_iter()
            .filter_map(|(on, mark)| on.then_some(mark))
            .collect();
        // Adjacent delimiters of two segments would be read as one.
        if !marks.is_empty() && out.ends_with(['*', '~']) {
            out.push(APART);
        }
        if self.link.is_some() {
            out.push('[');
        }
        out.push_str(&marks);
        if hides_open && !marks.is_empty() {
            out.push(APART);
        }
        if self.code {
            code(words, out)
        } else {
            escape(words, out)
        }
        if hides_close && !marks.is_empty() {
            out.push(APART);
        }
        out.extend(marks.chars().rev());
        if let Some(url) = self.link {
            out.push_str("](");
            target(url, out);
            out.push(')');
        }
        out.push_str(after);
    }
}

fn begins_line(out: &str) -> bool {
    out.is_empty() || out.ends_with('\n')
}

fn block(text: &str, style: &Style, out: &mut String) {
    if !begins_line(out) {
        out.push('\n');
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let language = match style {
        Style::Pre(Some(language)) => language.as_str(),
        _ => "",
    };
    out.push_str(&format!("{fence}{language}\n"));
    unnamed(text, out);
    out.push_str(&format!("\n{fence}\n"));
}

/// Writes inline code, which cannot contain a backtick.
fn code(text: &str, out: &mut String) {
    out.push('`');
    unnamed(&text.replace('`', "'"), out);
    out.push('`');
}

/// Writes text that does not support entities. Breaks up tags that mention a user.
fn unnamed(text: &str, out: &mut String) {
    for (at, c) in text.char_indices() {
        out.push(c);
        let rest = text.get(at..).unwrap_or_default();
        let names = |tag: &&str| rest.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
        if c == '<' && NAMING.iter().any(names) {
            out.push(APART);
        }
    }
}

fn escape(text: &str, out: &mut String) {
    let begins = begins_line(out) || out.ends_with("> ");
    let rule = begins && text.starts_with("---");
    let mut rest = text.chars().peekable();
    let mut first = true;
    while let Some(c) = rest.next() {
        let needs_escape = match c {
            '<' | '>' | '*' | '~' | '`' | '_' | '[' | ']' | '|' | '\\' => true,
            '&' => rest.peek().is_some_and(|next| *next == '#' || next.is_ascii_alphabetic()),
            '#' => begins && first,
            '-' => rule && first,
            _ => false,
        };
        if needs_escape {
            out.push_str(&format!("&#{};", u32::from(c)))
        } else {
            out.push(c)
        }
        first = false;
    }
}

/// Writes the target of a link, with the characters that would end it percent-encoded.
fn target(url: &str, out: &mut String) {
    for c in url.chars() {
        match c {
            '(' | ')' | '<' | '>' | ' ' | '"' | '[' | ']' | '\\' | '`' | '*' => {
                out.push_str(&format!("%{:02X}", u32::from(c)));
            }
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::parse;

    #[test]
    fn styles_become_card_markdown() {
        let cases = [
            ("**bold** and *it* and ~~old~~", "**bold** and *it* and ~~old~~"),
            ("# Title\n\ntext", "**Title**\n\ntext"),
            ("a `b*c` d", "a `b*c` d"),
            ("```rust\nlet a = &b;\n```", "```rust\nlet a = &b;\n```"),
            ("- one\n- two", "• one\n• two"),
            ("> said\n> so", "> said\n> so"),
            ("[here](https://a.example/b(c))", "[here](https://a.example/b%28c%29)"),
            ("**two\nlines**", "**two**\n**lines**"),
            ("**a*b*c**", "**a**\u{200b}***b***\u{200b}**c**"),
            ("x\n```\ncode\n```\ny", "x\n\n```\ncode\n```\n\n\ny"),
        ];
        for (markdown, card) in cases {
            assert_eq!(card_markdown(&parse(markdown)), card, "{markdown}");
        }
    }

    #[test]
    fn plain_text_stays_plain() {
        let cases = [
            ("2 * 3 < 4 & 5", "2 &#42; 3 &#60; 4 & 5"),
            ("AT&T &lt; snake_case", "AT&#38;T &#60; snake&#95;case"),
            ("\\# no title", "&#35; no title"),
            ("a | b", "a &#124; b"),
        ];
        for (markdown, card) in cases {
            assert_eq!(card_markdown(&parse(markdown)), card, "{markdown}");
        }
    }

    #[test]
    fn model_output_mentions_no_user() {
        for markdown in [
            "<at id=all></at>",
            "`<at id=all></at>`",
            "```\n<AT user_id=\"ou_1\">x</AT>\n```",
            "[<at id=all></at>](https://a.example/<at>)",
            "**<at id=all>**",
            "<person id = 'ou_1'></person>",
            "| <at id=all></at> |\n|-|\n| `<at id=all>` |",
        ] {
            let written = card_markdown(&parse(markdown)).to_ascii_lowercase();
            assert!(!written.contains("<at") && !written.contains("<person"), "{written}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_mixture_of_markup_makes_a_tag(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "<at id=all></at>", "<AT ", "<person id=1>", "<", "at", " id=all>", "`", "``", "```", "*", "**", "~~", "[",
            "](https://a.example)", "\n", " ", "|", "|-|", "> ", "# ", "- ", "&lt;", "\\", "鹿",
        ]), 0..24)) {
            let written = card_markdown(&parse(&pieces.concat())).to_ascii_lowercase();
            proptest::prop_assert!(!written.contains("<at") && !written.contains("<person"), "{written}");
        }
    }
}
