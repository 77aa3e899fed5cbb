//! Converts a Markdown tree to text with styled ranges.

use super::{
    Rich, Style,
    markdown::{Formula, formula, tree},
    table::Table,
};
use comrak::{
    Arena, Node,
    arena_tree::NodeEdge,
    nodes::{ListType, NodeMath, NodeValue},
};

/// Default width of a line, in fixed-width characters.
const DEFAULT_COLUMNS: usize = 60;
/// Maximum length of a footnote's name, in bytes.
const MAX_FOOTNOTE_NAME: usize = 64;

/// Nesting depth beyond which lists are not indented further.
const MAX_LIST_DEPTH: usize = 6;
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];

/// Returns the title of a citation, which models write as `[citation:Title](URL)`. Returns the text of any other link
/// unchanged.
#[must_use]
pub(crate) fn citation_title(link: &str) -> &str {
    link.strip_prefix("citation:").map_or(link, str::trim_start)
}

/// Parses Markdown for lines of ordinary width.
#[must_use]
pub fn parse(markdown: &str) -> Rich {
    parse_within(markdown, DEFAULT_COLUMNS)
}

/// Parses Markdown. A table wider than `columns` fixed-width characters is written row by row. Text that would render
/// as nothing is returned unchanged.
#[must_use]
pub fn parse_within(markdown: &str, columns: usize) -> Rich {
    let arena = Arena::new();
    let mut walk = Walk { columns, source: MarkdownSource::new(markdown), ..Walk::default() };
    for edge in tree(&arena, markdown).traverse() {
        match edge {
            NodeEdge::Start(node) => walk.start(node),
            NodeEdge::End(node) => walk.end(node),
        }
    }
    let rich = walk.finish();
    if rich.text.trim().is_empty() { Rich::plain(markdown.trim()) } else { rich }
}

/// Source of a tree.
#[derive(Default)]
struct MarkdownSource<'s> {
    text: &'s str,
    /// Start offsets of the lines.
    lines: Vec<usize>,
}

impl<'s> MarkdownSource<'s> {
    fn new(text: &'s str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, lines }
    }

    /// Returns the first character of a node.
    fn first(&self, node: Node<'_>) -> Option<char> {
        let start = node.data().sourcepos.start;
        let line = self.lines.get(start.line.checked_sub(1)?)?;
        self.text.get(line + start.column.checked_sub(1)?..)?.chars().next()
    }

    /// Returns whether the text defines a footnote.
    fn defines(&self, name: &str) -> bool {
        self.text.contains(&format!("[^{name}]:"))
    }
}

#[derive(Default)]
struct Walk<'s> {
    out: Rich,
    /// Width of a line in fixed-width characters.
    columns: usize,
    source: MarkdownSource<'s>,
    /// Pending line breaks before the next visible character. Written late, so that no text ends with them.
    gap: usize,
    /// Length of the text when the current block began. Until text is added, no line break is pending.
    block_start: usize,
    /// Start offsets of the open inline and block styles.
    open: Vec<usize>,
    /// Open lists: the next number, or `None` for bullets.
    lists: Vec<Option<u64>>,
    quotes: usize,
    links: Vec<LinkTarget>,
    table: Option<OpenTable>,
}

/// A table being read.
struct OpenTable {
    table: Table,
    /// State of the surrounding text while a cell is read.
    around: Option<(Rich, usize, usize)>,
}

/// Target of an open link or image.
struct LinkTarget {
    url: String,
    image: bool,
    start: usize,
}

impl Walk<'_> {
    fn start(&mut self, node: Node<'_>) {
        match &node.data().value {
            NodeValue::Text(text) => self.text(text),
            NodeValue::Code(code) => self.inline_code(&code.literal),
            NodeValue::SoftBreak | NodeValue::LineBreak => self.line_break(),
            NodeValue::HtmlInline(tag) if is_line_break(tag) => self.line_break(),
            NodeValue::HtmlInline(tag) => self.write(&without_details(tag)),
            NodeValue::Math(math) => self.math(node, math),
            NodeValue::FootnoteReference(note) => self.write(&format!("[{}]", note.name)),
            NodeValue::Subscript => self.write("~"),
            NodeValue::Emph | NodeValue::Strong | NodeValue::Strikethrough => self.open(),
            NodeValue::Link(link) => self.start_link(link.url.clone(), false),
            NodeValue::Image(link) => self.start_link(link.url.clone(), true),
            value => self.start_block(node, value),
        }
    }

    fn start_block(&mut self, node: Node<'_>, value: &NodeValue) {
        match value {
            NodeValue::Heading(_) => {
                self.block(2);
                self.open();
            }
            NodeValue::BlockQuote => {
                self.block(2);
                self.quotes += 1;
                self.open();
            }
            NodeValue::Paragraph => self.block(self.gap_of_blocks()),
            NodeValue::HtmlBlock(html) => self.html_block(&html.literal),
            NodeValue::CodeBlock(code) => {
                self.block_code(code.literal.trim_end_matches('\n'), Style::Pre(language(&code.info)));
            }
            NodeValue::ThematicBreak => {
                self.block(2);
                self.write("———");
                self.block(2);
            }
            NodeValue::List(list) => {
                self.block(self.gap_of_blocks());
                let first = u64::try_from(list.start).unwrap_or_default();
                self.lists.push((list.list_type == ListType::Ordered).then_some(first));
            }
            NodeValue::Item(_) => self.item(None),
            NodeValue::TaskItem(task) => self.item(Some(task.symbol.is_some())),
            NodeValue::FootnoteDefinition(note) => self.footnote(node, &note.name),
            NodeValue::Table(table) => {
                self.table = Some(OpenTable { table: Table::new(table.alignments.clone()), around: None });
            }
            NodeValue::TableRow(_) => {
                if let Some(open) = &mut self.table {
                    open.table.start_row();
                }
            }
            NodeValue::TableCell => self.start_cell(),
            _ => {}
        }
    }

    fn end(&mut self, node: Node<'_>) {
        match &node.data().value {
            NodeValue::Heading(_) => {
                self.close(Style::Bold);
                self.block(2);
            }
            NodeValue::BlockQuote => self.end_quote(),
            NodeValue::Paragraph => self.block(self.gap_of_blocks()),
            NodeValue::List(_) => {
                self.lists.pop();
                self.block(self.gap_of_blocks());
            }
            NodeValue::Item(_) | NodeValue::TaskItem(_) => self.block(1),
            NodeValue::FootnoteDefinition(_) => {
                self.lists.pop();
                self.block(1);
            }
            NodeValue::Emph => self.close(Style::Italic),
            NodeValue::Strong => self.close(Style::Bold),
            NodeValue::Strikethrough => self.close(Style::Strike),
            NodeValue::Subscript => self.write("~"),
            NodeValue::Link(_) | NodeValue::Image(_) => self.end_link(),
            NodeValue::TableCell => self.end_cell(),
            NodeValue::Table(_) => self.end_table(),
            _ => {}
        }
    }

    /// Writes text. The markers of citations and footnotes are not shown.
    fn text(&mut self, text: &str) {
        let mut rest = if self.links.is_empty() { text } else { citation_title(text) };
        while let Some((before, from)) = rest.split_once("[^") {
            self.write(before);
            let name = from.split_once(']').map(|(name, _)| name).filter(|name| self.is_footnote(name));
            self.write(if name.is_some() { "[" } else { "[^" });
            rest = from;
        }
        if let (Some(_), Some(name)) = (self.links.last(), rest.strip_prefix('^')) {
            // The parser reads a footnote whose definition is a URL as a link.
            rest = name;
        }
        self.write_labels(rest);
    }

    /// Writes text, including bold labels that CommonMark does not recognise: `**Status:**OK`.
    fn write_labels(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, label, after)) = bold_label(rest) {
            self.write(before);
            self.open();
            self.write(label);
            self.close(Style::Bold);
            rest = after;
        }
        self.write(rest);
    }

    fn is_footnote(&self, name: &str) -> bool {
        let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        digits || (name.len() <= MAX_FOOTNOTE_NAME && self.source.defines(name))
    }

    fn math(&mut self, node: Node<'_>, math: &NodeMath) {
        let in_paragraph = node.parent().is_some_and(|parent| parent.data().value == NodeValue::Paragraph);
        let alone = in_paragraph && node.previous_sibling().is_none() && node.next_sibling().is_none();
        match formula(math, self.source.first(node).unwrap_or('$'), alone) {
            Formula::Inline(formula) => self.inline_code(&formula),
            Formula::Block(formula) => self.block_code(&formula, Style::Pre(Some("latex".to_owned()))),
            Formula::Text(text) => self.write(&text),
        }
    }

    fn html_block(&mut self, html: &str) {
        self.block(self.gap_of_blocks());
        let text = without_details(html);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        self.write(&lines.join("\n"));
        self.block(self.gap_of_blocks());
    }

    /// Begins a footnote, which is laid out like a list item.
    fn footnote(&mut self, node: Node<'_>, name: &str) {
        let follows = node
            .previous_sibling()
            .is_some_and(|before| matches!(before.data().value, NodeValue::FootnoteDefinition(_)));
        self.block(if follows { 1 } else { 2 });
        self.settle(self.lists.len());
        self.out.text.push_str(&format!("[{name}] "));
        self.block_start = self.out.text.len();
        self.lists.push(None);
    }

    /// Requests at least `lines` line breaks before the next text.
    fn block(&mut self, lines: usize) {
        if self.out.text.len() > self.block_start {
            self.gap = self.gap.max(lines);
        }
    }

    /// Returns the number of line breaks between blocks. Blocks in a list have no empty line between them.
    fn gap_of_blocks(&self) -> usize {
        if self.lists.is_empty() { 2 } else { 1 }
    }

    /// Writes the pending line breaks, and the indent of the open list.
    fn settle(&mut self, indent: usize) {
        if self.gap > 0 {
            self.out.text.extend(std::iter::repeat_n('\n', self.gap));
            self.out.text.extend(std::iter::repeat_n("  ", indent.min(MAX_LIST_DEPTH)));
            self.gap = 0;
            self.block_start = self.out.text.len();
        }
    }

    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.settle(self.lists.len());
            let visible = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t'));
            self.out.text.extend(visible);
        }
    }

    fn line_break(&mut self) {
        match &self.table {
            Some(_) => self.write(" "),
            None => self.gap = self.gap.max(1),
        }
    }

    /// Records where a style begins.
    fn open(&mut self) {
        self.settle(self.lists.len());
        self.open.push(self.out.text.len());
    }

    fn close(&mut self, style: Style) {
        if let Some(start) = self.open.pop() {
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
        // Chats do not nest quotations, so only the outermost is written.
        if self.quotes == 0 {
            self.close(Style::Quote);
        } else {
            self.open.pop();
        }
        self.block(2);
    }

    fn item(&mut self, task: Option<bool>) {
        self.block(1);
        let depth = self.lists.len();
        let number = self.lists.last_mut().and_then(Option::as_mut).map(|next| {
            *next += 1;
            format!("{}. ", *next - 1)
        });
        let bullet = BULLETS[depth.clamp(1, BULLETS.len()) - 1];
        self.settle(depth.saturating_sub(1));
        match (number, task) {
            (Some(number), _) => self.out.text.push_str(&number),
            (None, None) => self.out.text.push_str(bullet),
            (None, Some(_)) => {}
        }
        if let Some(done) = task {
            self.out.text.push_str(if done { "☑ " } else { "☐ " });
        }
        self.block_start = self.out.text.len();
    }

    /// Writes a block with significant white space. It starts at the margin even in a list, because an indent would
    /// become part of the block.
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

    /// Begins a cell, which is written as a separate text.
    fn start_cell(&mut self) {
        if let Some(open) = &mut self.table {
            open.around = Some((std::mem::take(&mut self.out), self.gap, self.block_start));
            (self.gap, self.block_start) = (0, 0);
        }
    }

    fn end_cell(&mut self) {
        if let Some(open) = &mut self.table
            && let Some((around, gap, block_start)) = open.around.take()
        {
            open.table.add_cell(std::mem::replace(&mut self.out, around));
            (self.gap, self.block_start) = (gap, block_start);
        }
    }

    fn end_table(&mut self) {
        let Some(OpenTable { table, .. }) = self.table.take() else { return };
        if let Some(grid) = table.grid(self.columns) {
            return self.block_code(&grid.text, Style::Table { header: grid.header });
        }
        self.block(self.gap_of_blocks());
        self.settle(0);
        let start = self.out.text.len();
        self.out.append(&table.stack());
        self.out.mark(start, Style::Rows);
        self.block(self.gap_of_blocks());
    }

    fn start_link(&mut self, url: String, image: bool) {
        self.settle(self.lists.len());
        self.links.push(LinkTarget { url, image, start: self.out.text.len() });
    }

    fn end_link(&mut self) {
        let Some(LinkTarget { url, image, start }) = self.links.pop() else { return };
        let label = self.out.text.get(start..).unwrap_or_default().to_owned();
        if label.is_empty() {
            self.write(if image { "image" } else { &url });
        }
        // Only the outermost link is clickable.
        if !self.links.is_empty() || url.is_empty() {
            return;
        }
        if may_be_followed(&url) {
            self.out.mark(start, Style::Link(url));
        } else if label != url && !(image && is_thread_file(&url)) {
            self.write(&format!(" ({url})"));
        }
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

/// Returns whether a URL is a path in the agent's sandbox. Files for users are sent separately from the text.
fn is_thread_file(url: &str) -> bool {
    url.trim_start_matches("sandbox:").starts_with("/mnt/user-data/")
}

/// Returns whether a URL becomes a link. Other schemes may run code or open a file on the reader's machine, or mention
/// a user, as `tg:` does by a user's id.
fn may_be_followed(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    ["http", "https", "mailto"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && !url.contains(char::is_whitespace)
}

fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_matches(|c: char| matches!(c, '<' | '>' | '/') || c.is_whitespace());
    name.eq_ignore_ascii_case("br")
}

/// Finds a label in double asterisks that ends with punctuation and is followed by a word without a space.
fn bold_label(text: &str) -> Option<(&str, &str, &str)> {
    let (before, from) = text.split_once("**")?;
    let (label, after) = from.split_once("**")?;
    let begins = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '*');
    let is_label =
        label.starts_with(char::is_alphanumeric) && label.ends_with([':', '.', '!', '?', ')', '"', '”']);
    (begins && is_label && after.starts_with(char::is_alphanumeric)).then_some((before, label, after))
}

/// Removes the tags of a collapsible section, which chats do not support.
fn without_details(html: &str) -> String {
    let mut out = html.to_owned();
    for tag in ["<details>", "<details open>", "</details>", "<summary>", "</summary>"] {
        out = out.replace(tag, "");
    }
    out
}

/// Returns the language of a fence, if it looks like one.
fn language(info: &str) -> Option<String> {
    let word = info.split([' ', ',', '{']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.');
    (!word.is_empty() && word.len() <= 32 && word.chars().all(fits)).then(|| word.to_owned())
}
