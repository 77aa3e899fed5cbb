//! Renders Markdown on a terminal, as lines of styled text that fit the width.
//!
//! Parsing is shared with all chats, in `pudu_channels::render`; this module renders the result. Code is not wrapped,
//! so that it can be copied. A table that is too wide becomes a list of its rows.

use super::{
    paint::{Paint, TextLook, tame},
    wrap::{StyledChar, cells, wrap, write},
};
use comrak::Arena;
use pudu_channels::render::{self, Rich, Span, Style};

/// How text is rendered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Number of columns.
    pub(super) width: usize,
    /// Whether text is styled.
    pub(super) paint: Paint,
}

/// Renders Markdown as lines.
pub(super) fn lines(markdown: &str, layout: Layout) -> Vec<String> {
    let rich = render::parse_within(&tame(markdown), layout.width);
    let mut out = Vec::new();
    let mut at = 0;
    for line in rich.text.split('\n') {
        let block = rich.spans.iter().find(|span| {
            matches!(span.style, Style::Pre(_) | Style::Table { .. })
                && span.range.start <= at
                && at < span.range.end.max(span.range.start + 1)
        });
        match block {
            Some(span @ Span { style: Style::Pre(language), .. }) => {
                code_line(&mut out, line, at, span, language.as_deref().unwrap_or_default(), layout);
            }
            Some(span) if at == span.range.start => {
                table(&mut out, rich.text.get(span.range.clone()).unwrap_or_default(), layout);
            }
            // It has already been written.
            Some(_) => {}
            None => flowing(&mut out, &rich, line, at, layout),
        }
        at += line.len() + 1;
    }
    out
}

/// Writes a line of a code block, with a frame around the block.
fn code_line(out: &mut Vec<String>, line: &str, at: usize, span: &Span, language: &str, layout: Layout) {
    if at == span.range.start {
        out.push(frame(language, layout));
    }
    out.push(line.replace('\t', "    "));
    if at + line.len() >= span.range.end {
        out.push(frame("", layout));
    }
}

/// Writes a drawn table with dimmed rules.
fn table(out: &mut Vec<String>, drawn: &str, layout: Layout) {
    let dim = |text: &str| layout.paint.text(TextLook::DIM, text);
    let is_rule = |line: &str| line.chars().all(|c| matches!(c, '─' | '┼'));
    out.extend(drawn.lines().map(|line| match is_rule(line) {
        true => dim(line),
        false => line.replace('│', &dim("│")),
    }));
}

/// Draws the upper or lower edge of a code block.
fn frame(title: &str, layout: Layout) -> String {
    let title = if title.is_empty() { String::new() } else { format!(" {title} ") };
    let rest = layout.width.min(60).saturating_sub(title.len() + 2);
    layout.paint.text(TextLook::DIM, &format!("──{title}{}", "─".repeat(rest)))
}

/// Writes a line of text, wrapped if necessary.
fn flowing(out: &mut Vec<String>, rich: &Rich, line: &str, at: usize, layout: Layout) {
    let quoted = rich
        .spans
        .iter()
        .any(|span| span.style == Style::Quote && span.range.start <= at && at < span.range.end);
    let mark = if quoted { layout.paint.text(TextLook::DIM, "▎ ") } else { String::new() };
    let room = layout.width.saturating_sub(if quoted { 2 } else { 0 }).max(1);
    let parts = wrap(&styled_chars(rich, line, at), room, hanging(line).min(room / 2));
    out.extend(parts.iter().map(|part| format!("{mark}{}", write(part, layout.paint))));
}

/// Returns the characters of a line with their looks; each link is followed by its target.
fn styled_chars(rich: &Rich, line: &str, at: usize) -> Vec<StyledChar> {
    let (start, end) = (at, at + line.len());
    let inside = |edge: &usize| start < *edge && *edge < end;
    let edges = rich.spans.iter().flat_map(|span| [span.range.start, span.range.end]);
    let mut edges: Vec<usize> = edges.filter(inside).chain([start, end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut out = Vec::new();
    for pair in edges.windows(2) {
        let [from, to] = pair else { continue };
        let text = rich.text.get(*from..*to).unwrap_or_default();
        let over = rich.spans.iter().filter(|span| span.range.start <= *from && *to <= span.range.end);
        let look = over.fold(TextLook::default(), |look, span| look.with(look_of(&span.style)));
        out.extend(cells(text, look));
        for target in
            rich.spans.iter().filter(|span| span.range.end == *to).filter_map(|span| target(rich, span))
        {
            out.extend(cells(&format!(" ({target})"), TextLook::DIM));
        }
    }
    out
}

fn look_of(style: &Style) -> TextLook {
    match style {
        Style::Bold => TextLook::BOLD,
        Style::Italic => TextLook::ITALIC,
        Style::Strike => TextLook::STRIKE,
        Style::Code => TextLook::CODE,
        Style::Quote => TextLook::DIM,
        Style::Link(_) => TextLook::UNDERLINE,
        Style::Pre(_) | Style::Table { .. } | Style::Rows => TextLook::default(),
    }
}

/// Returns the target of a link, unless its text is the target.
fn target<'a>(rich: &Rich, span: &'a Span) -> Option<&'a str> {
    let Style::Link(url) = &span.style else { return None };
    let words = rich.text.get(span.range.clone()).unwrap_or_default();
    let plain = url.strip_prefix("mailto:").unwrap_or(url);
    (words != url && words != plain).then_some(url.as_str())
}

/// Returns the indentation of wrapped lines of a list item.
fn hanging(line: &str) -> usize {
    let spaces = line.chars().take_while(|c| *c == ' ').count();
    let item = line.trim_start();
    let marker = item.split(' ').next().unwrap_or_default();
    let number = marker.strip_suffix('.').is_some_and(|digits| digits.parse::<u64>().is_ok());
    let bullet = matches!(marker, "•" | "◦" | "▪" | "☑" | "☐");
    if number || bullet { spaces + marker.chars().count() + 1 } else { spaces }
}

/// Returns the length of the stable part of a growing text: everything before the last block of its complete lines.
/// Later text can change only that block.
pub(super) fn settled(text: &str) -> usize {
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    let known = text.get(..end).unwrap_or_default();
    let arena = Arena::new();
    let last = render::markdown::tree(&arena, known).last_child();
    let line = last.map_or(0, |block| block.data().sourcepos.start.line.saturating_sub(1));
    known.split_inclusive('\n').take(line).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(markdown: &str, width: usize) -> Vec<String> {
        lines(markdown, Layout { width, paint: Paint::new(Some("1")) })
    }

    #[test]
    fn markdown_reads_well_without_any_style() {
        let check = |markdown: &str, expect: &[&str]| assert_eq!(plain(markdown, 24), expect, "{markdown}");
        check("Hello **you**", &["Hello you"]);
        check("# Title\n\ntext", &["Title", "", "text"]);
        check("one two three four five six", &["one two three four five", "six"]);
        check("- a\n- one two three four five six", &["• a", "• one two three four", "  five six"]);
        check("9. a\n10. one two three four five", &["9. a", "10. one two three four", "    five"]);
        check("- [x] done\n- [ ] open", &["☑ done", "☐ open"]);
        check("> one two three four five", &["▎ one two three four", "▎ five"]);
        check("[here](https://a.b)", &["here (https://a.b)"]);
        check("<https://a.b>", &["https://a.b"]);
        check("a\x1b[2Jb", &["a[2Jb"]);
        check("", &[""]);
    }

    #[test]
    fn code_and_tables_keep_their_shape() {
        let check = |markdown: &str, expect: &[&str]| assert_eq!(plain(markdown, 20), expect, "{markdown}");
        let long = "let much = longer_than_the_terminal();";
        let rule = "────────────────────";
        check(&format!("```rust\n{long}\n\n\tx\n```"), &["── rust ────────────", long, "", "    x", rule]);
        check("a\n\n```\nx\n```\n\nb", &["a", "", rule, "x", rule, "", "b"]);
        check("|n|word|\n|-:|:-|\n|1|one|\n|10|ten|", &[" n │ word", "───┼─────", " 1 │ one", "10 │ ten"]);
        let wide = "|n|what it is|\n|-|-|\n|1|much longer than that|\n|2||\n|3|short|";
        let rows =
            ["• n: 1", "  what it is: much", "  longer than that", "• n: 2", "• n: 3", "  what it is: short"];
        check(wide, &rows);
    }

    #[test]
    fn looks_are_written_as_the_terminal_wants_them() {
        let check = |markdown: &str, expect: &str| {
            let layout = Layout { width: 40, paint: Paint::new(None) };
            assert_eq!(lines(markdown, layout).join("\n"), expect, "{markdown}");
        };
        check("a **b *c*** d", "a \x1b[1mb \x1b[0m\x1b[1;3mc\x1b[0m d");
        check("`x` ~~y~~", "\x1b[36mx\x1b[0m \x1b[9my\x1b[0m");
        check("[a](https://b.c)!", "\x1b[4ma\x1b[0m\x1b[2m (https://b.c)\x1b[0m!");
        check("|a|b|\n|-|-|\n|1|2|", "a \x1b[2m│\x1b[0m b\n\x1b[2m──┼──\x1b[0m\n1 \x1b[2m│\x1b[0m 2");
    }

    #[test]
    fn only_what_nothing_can_change_any_more_is_settled() {
        let check =
            |text: &str, expect: &str| assert_eq!(text.get(..settled(text)), Some(expect), "{text:?}");
        check("", "");
        check("one", "");
        check("one\n\ntw", "");
        check("one\n\ntwo\n", "one\n\n");
        check("one\n\n- a\n- b\n\n2", "one\n\n");
        check("one\n\n```\na\n\nb\n", "one\n\n");
        check("```\na\n```\n\nb\n", "```\na\n```\n\n");
        check("---\n\nb\n", "---\n\n");
        check("a\n\n---\n", "a\n\n");
    }
}
