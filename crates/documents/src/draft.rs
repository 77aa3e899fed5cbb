//! Markdown on its way: so long and no longer, without what would trouble a reader.

use crate::{Document, DocumentKind, Error, outline};

/// A title has so many characters at most.
const TITLE: usize = 200;
/// So many warnings are kept.
const WARNINGS: usize = 20;

/// A document on its way.
pub(crate) struct DocumentDraft {
    text: String,
    limit: usize,
    full: bool,
    title: Option<String>,
    parts: Option<usize>,
    warnings: Vec<String>,
}

impl DocumentDraft {
    pub(crate) fn new(limit: usize) -> Self {
        Self { text: String::new(), limit, full: false, title: None, parts: None, warnings: Vec::new() }
    }

    /// How many bytes more there may be.
    pub(crate) fn room(&self) -> usize {
        if self.full { 0 } else { self.limit.saturating_sub(self.text.len()) }
    }

    /// Adds text. Once some did not fit, none is taken any more.
    pub(crate) fn push(&mut self, text: &str) {
        let room = self.room();
        if text.len() <= room {
            self.text.push_str(text);
            return;
        }
        let (fits, _) = text.split_at(text.floor_char_boundary(room));
        self.text.push_str(fits);
        self.full = true;
    }

    pub(crate) fn set_title(&mut self, title: Option<&str>) {
        let title = title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        self.title = title.filter(|title| !title.is_empty()).map(|title| title.chars().take(TITLE).collect());
    }

    pub(crate) fn set_parts(&mut self, count: usize) {
        self.parts = Some(count);
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        }
    }

    /// Makes a document of it.
    pub(crate) fn finish(mut self, kind: DocumentKind) -> Result<Document, Error> {
        let mut markdown = clean(&self.text);
        if self.full {
            // The last line is half a line.
            markdown.truncate(markdown.trim_end().rfind('\n').unwrap_or(0));
            markdown.push_str("\n\n[… cut here: the document goes on …]\n");
            let said = format!("only the first {} bytes of its text are here: it is longer", self.limit);
            self.warnings.insert(0, said);
        }
        if !has_text(&markdown) {
            return Err(Error::Empty);
        }
        let outline = outline(&markdown);
        let Self { title, parts, warnings, .. } = self;
        Ok(Document { kind, title, markdown, outline, parts, warnings })
    }
}

/// Whether anything is there besides marks.
fn has_text(markdown: &str) -> bool {
    let mark = |line: &str| line.starts_with("<!--") || line.trim_matches(['-', '#', ' ', '|']).is_empty();
    markdown.lines().any(|line| !mark(line.trim()))
}

/// Takes out control characters, and all but one of empty lines that follow each other.
fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut empty = 1;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            kept.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
            kept.push('\n');
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('\n');
    kept
}
