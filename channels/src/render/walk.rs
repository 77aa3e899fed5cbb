//! From Markdown's events to text with marked ranges.

use super::{Rich, Style, table::Table};
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

/// Lists nested deeper than this are not indented further.
const MAX_LIST_DEPTH: usize = 6;
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];

/// Returns the title of a link that cites a page, which models write as `[citation:Title](address)`; any other link's
/// text as it is.
#[must_use]
pub fn citation_title(link: &str) -> &str {
    link.strip_prefix("citation:").map_or(link, str::trim_start)
}

/// Parses Markdown. Text that shows nothing when rendered is returned as it was typed.
#[must_use]
pub fn parse(markdown: &str) -> Rich {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut walk = Walk::default();
    Parser::new_ext(markdown, options).for_each(|event| walk.event(event));
    let rich = walk.finish();
    if rich.text.trim().is_empty() { Rich::plain(markdown.trim()) } else { rich }
}

#[derive(Default)]
struct Walk {
    out: Rich,
    /// Line breaks owed before the next visible character; written late, so that nothing ends with them.
    gap: usize,
    /// Offset of the text when a block was begun: until something is written no break is owed.
    begun: usize,
    /// Start offsets of the open inline and block styles.
    open: Vec<usize>,
    /// The lists that are open: the next number, or none for bullets.
    lists: Vec<Option<u64>>,
    quotes: usize,
    links: Vec<LinkTarget>,
    table: Option<Table>,
    code: Option<Code>,
}

/// A block of code while its lines come in.
struct Code {
    language: Option<String>,
    text: String,
}

/// Target of an open link or image.
struct LinkTarget {
    url: String,
    image: bool,
    start: usize,
}

impl Walk {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if !self.links.is_empty() => self.write(citation_title(&text)),
            Event::Text(text) | Event::Html(text) => self.write(&text),
            Event::Code(text) => self.inline_code(&text),
            Event::InlineHtml(tag) if is_line_break(&tag) => self.line_break(),
            Event::InlineHtml(tag) => self.write(&tag),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Rule => {
                self.block(2);
                self.write("———");
                self.block(2);
            }
            Event::TaskListMarker(done) => self.task(done),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.write(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.block(2);
                self.open();
            }
            Tag::BlockQuote(_) => {
                self.block(2);
                self.quotes += 1;
                self.open();
            }
            Tag::CodeBlock(kind) => self.code = Some(Code { language: language(&kind), text: String::new() }),
            Tag::Table(columns) => self.table = Some(Table::new(columns)),
            Tag::HtmlBlock | Tag::Paragraph => self.block(self.gap_of_blocks()),
            Tag::List(first) => {
                self.block(self.gap_of_blocks());
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough => self.open(),
            Tag::Link { link_type, dest_url, .. } => self.start_link(target(link_type, &dest_url), false),
            Tag::Image { link_type, dest_url, .. } => self.start_link(target(link_type, &dest_url), true),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.start_row();
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.close(Style::Bold);
                self.block(2);
            }
            TagEnd::BlockQuote(_) => self.end_quote(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => self.end_html(),
            TagEnd::Paragraph => self.block(self.gap_of_blocks()),
            TagEnd::List(_) => {
                self.lists.pop();
                self.block(self.gap_of_blocks());
            }
            TagEnd::Item => self.block(1),
            TagEnd::Emphasis => self.close(Style::Italic),
            TagEnd::Strong => self.close(Style::Bold),
            TagEnd::Strikethrough => self.close(Style::Strike),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    table.end_cell();
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    /// Owes at least `lines` line breaks before what comes next.
    fn block(&mut self, lines: usize) {
        if self.out.text.len() > self.begun {
            self.gap = self.gap.max(lines);
        }
    }

    /// Blocks inside a list stand close together, as chats show them.
    fn gap_of_blocks(&self) -> usize {
        if self.lists.is_empty() { 2 } else { 1 }
    }

    /// Writes the line breaks that are owed, and the indent of the list that is open.
    fn settle(&mut self, indent: usize) {
        if self.gap > 0 {
            self.out.text.extend(std::iter::repeat_n('\n', self.gap));
            self.out.text.extend(std::iter::repeat_n("  ", indent.min(MAX_LIST_DEPTH)));
            self.gap = 0;
            self.begun = self.out.text.len();
        }
    }

    fn write(&mut self, text: &str) {
        let visible = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
        if let Some(code) = &mut self.code {
            code.text.extend(visible);
        } else if let Some(table) = &mut self.table {
            table.cell.extend(visible);
        } else if !text.is_empty() {
            self.settle(self.lists.len());
            self.out.text.extend(visible);
        }
    }

    fn line_break(&mut self) {
        match &mut self.table {
            Some(table) => table.cell.push(' '),
            None => self.gap = self.gap.max(1),
        }
    }

    /// Remembers where a style begins.
    fn open(&mut self) {
        if self.table.is_none() {
            self.settle(self.lists.len());
        }
        self.open.push(self.out.text.len());
    }

    fn close(&mut self, style: Style) {
        if let Some(start) = self.open.pop()
            && self.table.is_none()
        {
            self.out.mark(start, style);
        }
    }

    fn inline_code(&mut self, text: &str) {
        self.open();
        self.write(text);
        self.close(Style::Code);
    }

    fn end_quote(&mut self) {
        self.quotes -= 1;
        // Chats do not nest quotations: the outermost stands for all.
        if self.quotes == 0 {
            self.close(Style::Quote);
        } else {
            self.open.pop();
        }
        self.block(2);
    }

    fn item(&mut self) {
        self.block(1);
        let depth = self.lists.len();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => BULLETS[depth.clamp(1, BULLETS.len()) - 1].to_owned(),
        };
        self.settle(depth.saturating_sub(1));
        self.out.text.push_str(&marker);
        self.begun = self.out.text.len();
    }

    fn task(&mut self, done: bool) {
        if let Some(bullet) = BULLETS.iter().find(|bullet| self.out.text.ends_with(**bullet)) {
            self.out.text.truncate(self.out.text.len() - bullet.len());
        }
        self.write(if done { "☑ " } else { "☐ " });
    }

    /// Writes a block whose white space counts. It starts at the margin even in a list: an indent would be
    /// part of it.
    fn block_code(&mut self, text: &str, style: Style) {
        self.block(self.gap_of_blocks());
        if !text.is_empty() {
            self.settle(0);
            let start = self.out.text.len();
            self.out.text.push_str(text);
            self.out.mark(start, style);
        }
        self.block(self.gap_of_blocks());
    }

    fn end_code(&mut self) {
        if let Some(code) = self.code.take() {
            self.block_code(code.text.trim_end_matches('\n'), Style::Pre(code.language));
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            let drawn = table.draw();
            self.block_code(&drawn.text, Style::Table { header: drawn.header });
        }
    }

    fn start_link(&mut self, url: String, image: bool) {
        if self.table.is_none() {
            self.settle(self.lists.len());
        }
        let start = self.written().len();
        self.links.push(LinkTarget { url, image, start });
    }

    fn end_link(&mut self) {
        let Some(LinkTarget { url, image, start }) = self.links.pop() else { return };
        let named = self.written().get(start..).unwrap_or_default().to_owned();
        if named.is_empty() {
            self.write(if image { "image" } else { &url });
        }
        // The outermost link is the one that a click follows.
        if !self.links.is_empty() || url.is_empty() {
            return;
        }
        if self.table.is_none() && may_be_followed(&url) {
            self.out.mark(start, Style::Link(url));
        } else if named != url {
            self.write(&format!(" ({url})"));
        }
    }

    /// Returns what the next character is appended to.
    fn written(&self) -> &str {
        self.table.as_ref().map_or(&self.out.text, |table| &table.cell)
    }

    /// An HTML block ends its lines itself.
    fn end_html(&mut self) {
        let end = self.out.text.trim_end_matches('\n').len();
        self.out.text.truncate(end);
        self.block(self.gap_of_blocks());
    }

    fn finish(mut self) -> Rich {
        let end = self.out.text.trim_end().len();
        self.out.text.truncate(end);
        for span in &mut self.out.spans {
            span.range.end = span.range.end.min(end);
        }
        self.out.spans.retain(|span| span.range.start < span.range.end);
        self.out
    }
}

/// Returns a link's target as a URL.
fn target(kind: LinkType, url: &str) -> String {
    if kind == LinkType::Email { format!("mailto:{url}") } else { url.to_owned() }
}

/// Only these schemes become links: others may run code or open a file on the reader's machine, or call
/// somebody, as `tg:` does by a person's id.
fn may_be_followed(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && !url.contains(char::is_whitespace)
}

fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_matches(|c: char| matches!(c, '<' | '>' | '/') || c.is_whitespace());
    name.eq_ignore_ascii_case("br")
}

/// Returns the language that a fence names, if it looks like one.
fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    let CodeBlockKind::Fenced(info) = kind else { return None };
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
    (!word.is_empty() && word.len() <= 32 && word.chars().all(fits)).then(|| word.to_owned())
}
