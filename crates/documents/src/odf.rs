//! OpenDocument texts and presentations.

use crate::{
    DocumentKind, DocumentLimits, Error,
    archive::{self, Archive},
    draft::DocumentDraft,
    grid::Grid,
    mathml,
    ods::is_sealed,
    text,
    xml::{Element, XmlNode},
};
use std::collections::BTreeSet;

/// Maximum size of the content, in bytes. Its tree takes many times as much memory.
const MAX_CONTENT_BYTES: u64 = 48 * 1024 * 1024;
/// Maximum number of spaces in one element.
const MAX_BLANKS: usize = 100;

pub(crate) fn read(
    bytes: &[u8],
    kind: DocumentKind,
    limits: &DocumentLimits,
) -> Result<DocumentDraft, Error> {
    archive::examine(bytes, limits)?;
    let archive = Archive::open(bytes)?;
    if archive.read("META-INF/manifest.xml", limits.expanded).is_ok_and(|text| is_sealed(&text)) {
        return Err(Error::Protected);
    }
    let content = Element::parse(&text::decode(&archive.read("content.xml", MAX_CONTENT_BYTES)?));
    let mut reader = OdfReader {
        archive: &archive,
        limits,
        draft: DocumentDraft::new(limits.output),
        notes: Vec::new(),
        hidden_styles: hidden_styles(&content),
        pictures: 0,
        objects: 0,
        deletions: 0,
    };
    if let Ok(meta) = archive.read("meta.xml", limits.expanded) {
        let title = Element::parse(&text::decode(&meta)).all("title").first().map(|title| title.content());
        reader.draft.set_title(title.as_deref());
    }
    for body in content.all("body") {
        match kind {
            DocumentKind::Odp => reader.slides(body),
            _ => body.elements().for_each(|story| reader.blocks(story, 0)),
        }
    }
    Ok(reader.finish())
}

/// Returns the names of the styles of hidden slides.
fn hidden_styles(content: &Element) -> BTreeSet<String> {
    let styles = content.all("style").into_iter().filter(|style| {
        let properties = style.child("drawing-page-properties");
        properties.and_then(|properties| properties.attribute("visibility")) == Some("hidden")
    });
    styles.filter_map(|style| style.attribute("name").map(str::to_owned)).collect()
}

struct OdfReader<'a> {
    archive: &'a Archive<'a>,
    limits: &'a DocumentLimits,
    draft: DocumentDraft,
    /// Footnotes and comments, each with its label.
    notes: Vec<(String, String)>,
    hidden_styles: BTreeSet<String>,
    pictures: usize,
    objects: usize,
    deletions: usize,
}

impl OdfReader<'_> {
    fn finish(mut self) -> DocumentDraft {
        for (label, text) in std::mem::take(&mut self.notes) {
            self.draft.push(&format!("\n[^{label}]: {text}\n"));
        }
        for (count, what) in [
            (self.pictures, "pictures in it are not shown"),
            (self.objects, "embedded objects, such as charts, are not shown"),
            (
                self.deletions,
                "deleted parts of tracked changes are left out, as if all changes were accepted",
            ),
        ] {
            if count > 0 {
                self.draft.warn(format!("{count} {what}"));
            }
        }
        self.draft
    }

    fn slides(&mut self, body: &Element) {
        let pages = body.all("page");
        self.draft.set_parts(pages.len());
        for (at, page) in pages.into_iter().enumerate() {
            let name = page.attribute("name").unwrap_or_default().replace("--", "- -");
            let hidden = page.attribute("style-name").is_some_and(|style| self.hidden_styles.contains(style));
            let mark = if hidden { ", hidden" } else { "" };
            self.draft.push(&format!("<!-- slide {}{mark}: {name} -->\n\n", at + 1));
            let notes = page.elements().filter(|child| child.name == "notes");
            for shape in page.elements().filter(|child| child.name != "notes") {
                if shape.attribute("class") == Some("title") {
                    let title = self.inline(shape);
                    self.draft.push(&format!("## {}\n\n", title.trim()));
                } else {
                    self.block(shape, 0);
                }
            }
            let notes: Vec<String> = notes.map(|notes| self.inline(notes).trim().to_owned()).collect();
            for note in notes.iter().filter(|note| !note.is_empty()) {
                self.draft.push(&format!("> **Notes:**\n> {note}\n\n"));
            }
        }
    }

    fn blocks(&mut self, parent: &Element, depth: usize) {
        parent.elements().for_each(|child| self.block(child, depth));
    }

    fn block(&mut self, element: &Element, depth: usize) {
        match element.name.as_str() {
            "h" => {
                let level = element
                    .attribute("outline-level")
                    .and_then(|level| level.parse().ok())
                    .unwrap_or(1_usize);
                let words = self.inline(element);
                if !words.trim().is_empty() {
                    self.draft.push(&format!("{} {}\n\n", "#".repeat(level.clamp(1, 6)), words.trim()));
                }
            }
            "p" => {
                let words = self.inline(element);
                self.draft.push(&format!("{}\n\n", words.trim()));
            }
            "list" => {
                self.list(element, depth);
                if depth == 0 {
                    self.draft.push("\n");
                }
            }
            "table" => self.table(element),
            "tracked-changes" => self.deletions += element.all("deletion").len(),
            "forms" | "sequence-decls" | "soft-page-break" | "variable-decls" => {}
            // A frame has its content in several forms, and the first textual one is used.
            "frame" => self.frame(element, depth),
            _ => self.blocks(element, depth),
        }
    }

    fn frame(&mut self, element: &Element, depth: usize) {
        if let Some(object) = element.child("object") {
            match self.formula(object) {
                Some(formula) => self.draft.push(&format!("${formula}$\n\n")),
                None => self.objects += 1,
            }
        } else if let Some(text) =
            element.elements().find(|child| matches!(child.name.as_str(), "text-box" | "table"))
        {
            self.block(text, depth);
        } else if element.child("image").is_some() {
            self.pictures += 1;
        }
    }

    fn list(&mut self, list: &Element, depth: usize) {
        for item in list.elements() {
            let mut has_mark = false;
            for child in item.elements() {
                if child.name == "list" {
                    self.list(child, depth + 1);
                    continue;
                }
                let words = self.inline(child);
                let (indent, mark) = ("  ".repeat(depth.min(16)), if has_mark { "  " } else { "- " });
                self.draft.push(&format!("{indent}{mark}{}\n", words.trim()));
                has_mark = true;
            }
        }
    }

    fn table(&mut self, table: &Element) {
        let mut grid = Grid::new(self.draft.room(), self.limits);
        for (row_at, row) in rows(table).into_iter().enumerate() {
            let mut column = 0_usize;
            for cell in row.elements().filter(|cell| cell.name.ends_with("table-cell")) {
                let paragraphs: Vec<String> =
                    cell.elements().map(|part| self.inline(part).trim().to_owned()).collect();
                if grid.put(row_at, column, &paragraphs.join("\n")).is_err() {
                    break;
                }
                column = column.saturating_add(repeats(cell, "number-columns-repeated"));
            }
        }
        grid.write(&mut self.draft, "a table");
        self.draft.push("\n");
    }

    /// Returns the text of an element on one line, with marks for its notes.
    fn inline(&mut self, element: &Element) -> String {
        let mut text = String::new();
        self.collect(element, &mut text);
        text
    }

    fn collect(&mut self, element: &Element, text: &mut String) {
        for child in &element.children {
            let child = match child {
                XmlNode::Text(words) => {
                    // Text outside of paragraphs is only layout.
                    if !words.trim().is_empty() || matches!(element.name.as_str(), "p" | "h" | "span" | "a") {
                        text.push_str(&words.replace(['\n', '\r', '\t'], " "));
                    }
                    continue;
                }
                XmlNode::Element(child) => child,
            };
            match child.name.as_str() {
                "s" => text.push_str(&" ".repeat(repeats(child, "c").min(MAX_BLANKS))),
                "tab" | "line-break" => text.push(' '),
                "note" => {
                    let body = child.child("note-body").map(|body| self.inline(body)).unwrap_or_default();
                    self.note("", body.trim().to_owned(), text);
                }
                "annotation" => {
                    let author =
                        child.child("creator").map(Element::content).unwrap_or_else(|| "unknown".to_owned());
                    let date = child
                        .child("date")
                        .map(Element::content)
                        .and_then(|date| date.get(..10).map(str::to_owned));
                    let date = date.map(|date| format!(", {date}")).unwrap_or_default();
                    let paragraphs =
                        child.elements().filter(|part| !matches!(part.name.as_str(), "creator" | "date"));
                    let words: Vec<String> = paragraphs.map(|part| self.inline(part)).collect();
                    let said = format!("Comment by {author}{date}: {}", words.join(" ").trim());
                    self.note("comment", said, text);
                }
                "object" => match self.formula(child) {
                    Some(formula) => text.push_str(&format!("${formula}$")),
                    None => self.objects += 1,
                },
                "frame" if child.child("object").is_none() && child.child("text-box").is_none() => {
                    self.pictures += usize::from(child.child("image").is_some());
                }
                "image" | "tracked-changes" | "ruby-text" => {}
                "p" | "h" | "list-item" | "text-box" => {
                    if !text.is_empty() && !text.ends_with(' ') {
                        text.push(' ');
                    }
                    self.collect(child, text);
                }
                _ => self.collect(child, text),
            }
        }
    }

    fn note(&mut self, kind: &str, body: String, text: &mut String) {
        let number = self
            .notes
            .iter()
            .filter(|(label, _)| label.trim_end_matches(|c: char| c.is_ascii_digit()) == kind)
            .count();
        let label = format!("{kind}{}", number + 1);
        text.push_str(&format!("[^{label}]"));
        self.notes.push((label, body));
    }

    /// Returns an embedded formula.
    fn formula(&self, object: &Element) -> Option<String> {
        if let Some(math) = object.child("math") {
            return mathml::text(math);
        }
        let folder = object.attribute("href")?.trim_start_matches("./").trim_end_matches('/');
        let content = self.archive.read(&format!("{folder}/content.xml"), MAX_CONTENT_BYTES).ok()?;
        let tree = Element::parse(&text::decode(&content));
        mathml::text(tree.child("math")?)
    }
}

/// Returns the rows of a table, including grouped ones.
fn rows(table: &Element) -> Vec<&Element> {
    let mut rows = Vec::new();
    for child in table.elements() {
        match child.name.as_str() {
            "table-row" => rows.push(child),
            "table-header-rows" | "table-rows" | "table-row-group" => rows.extend(self::rows(child)),
            _ => {}
        }
    }
    rows
}

fn repeats(element: &Element, name: &str) -> usize {
    element.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}
