//! Markdown under construction, which is limited in length and cleaned for readers.

use crate::{Document, DocumentKind, Error, outline};

/// Maximum length of a title, in characters.
const TITLE: usize = 200;
/// Maximum number of warnings that are kept.
const WARNINGS: usize = 20;

/// A document under construction.
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

    /// Returns the number of bytes that still fit.
    pub(crate) fn room(&self) -> usize {
        if self.full { 0 } else { self.limit.saturating_sub(self.text.len()) }
    }

    /// Appends text. Once text does not fit, no more is accepted.
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

    /// Converts the draft to a document.
    pub(crate) fn finish(mut self, kind: DocumentKind) -> Result<Document, Error> {
        let mut markdown = clean_text(&self.text);
        if self.full {
            // The last line is incomplete.
            markdown.truncate(markdown.trim_end().rfind('\n').unwrap_or(0));
            markdown.push_str("\n\n[… cut here: the document continues …]\n");
            let said = format!("only the first {} bytes of its text are included: it is longer", self.limit);
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

/// Returns whether there is any text other than markers.
fn has_text(markdown: &str) -> bool {
    let mark = |line: &str| line.starts_with("<!--") || line.trim_matches(['-', '#', ' ', '|']).is_empty();
    markdown.lines().any(|line| !mark(line.trim()))
}

/// Removes control characters, and reduces consecutive empty lines to one.
fn clean_text(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut empty = 1;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            cleaned.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
            cleaned.push('\n');
        }
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned.push('\n');
    cleaned
}
