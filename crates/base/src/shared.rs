//! Files that people send, and descriptions of their content.

use crate::foreign;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Maximum number of a document's headings shown to the model.
const HEADINGS: usize = 50;
/// Maximum length of a heading, in characters.
const HEADING: usize = 120;
/// Maximum length of a file's name, in characters.
const NAME: usize = 255;
/// Maximum length of a note, or of a document's description, in characters.
const MAX_NOTE_CHARS: usize = 500;

/// A file that a person sent, as stored in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedFile {
    /// The name shown to people.
    pub name: String,
    /// The path inside the sandbox.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Result of the text extraction, if it is a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<ReadOutcome>,
}

/// Result of reading a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ReadOutcome {
    /// The text was extracted into a Markdown file.
    Text(Box<DocumentText>),
    /// The document could not be read.
    Failed {
        /// Why, for the model.
        reason: String,
        /// The cause, for callers that translate it. `None` if stored by an older version, or unknown to this one.
        #[serde(
            default,
            deserialize_with = "crate::failure::deserialize_known",
            skip_serializing_if = "Option::is_none"
        )]
        cause: Option<UnreadCause>,
    },
}

/// Why a document was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadCause {
    /// Its type is not supported, or its content does not match its type.
    Kind,
    /// It needs a password.
    Protected,
    /// It exceeds a size limit.
    TooLarge,
    /// It is damaged.
    Damaged,
    /// There is no text in it.
    Empty,
    /// Reading it took too long.
    TooSlow,
    /// The reader crashed on it.
    Broken,
    /// No reader was available.
    Unavailable,
}

/// A document's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentText {
    /// Path inside the sandbox.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Number of lines.
    pub lines: usize,
    /// Short description of the document.
    pub about: String,
    /// The first of its headings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outline: Vec<OutlineEntry>,
    /// Number of headings that are not in `outline`.
    #[serde(default)]
    pub more: usize,
    /// The beginning of the text, if it has no headings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub opening: String,
    /// Parts that are missing from the text, or may be wrong in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A heading of a document's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlineEntry {
    /// Its line, from 1.
    pub line: usize,
    /// Its level, 1 to 6.
    pub level: u8,
    /// Its text.
    pub title: String,
}

impl DocumentText {
    /// Sets the outline: keeps the headings that are shown, and counts the others.
    #[must_use]
    pub fn with_outline(mut self, headings: impl IntoIterator<Item = OutlineEntry>) -> Self {
        let mut headings = headings.into_iter();
        self.outline = headings.by_ref().take(HEADINGS).collect();
        self.more = headings.count();
        self
    }
}

impl SharedFile {
    /// Returns the description for the model. Neither the file's content nor its name can pass for a person's text.
    #[must_use]
    pub fn describe(&self) -> String {
        let Self { size, path, .. } = self;
        let (name, path) = (foreign::line(&self.name, NAME), foreign::text(path));
        let mut description = format!("[file: {name} ({size} bytes) at {path}]");
        match &self.reading {
            None => {}
            Some(ReadOutcome::Failed { reason, .. }) => {
                // Writing to a String cannot fail.
                let _ = write!(
                    description,
                    "\n[its text could not be read: {}]",
                    foreign::line(reason, MAX_NOTE_CHARS)
                );
            }
            Some(ReadOutcome::Text(text)) => text.describe_into(&mut description),
        }
        description
    }
}

impl DocumentText {
    fn describe_into(&self, description: &mut String) {
        let Self { lines, outline, more, opening, warnings, .. } = self;
        let (path, about) = (foreign::text(&self.path), foreign::line(&self.about, MAX_NOTE_CHARS));
        let _ = write!(
            description,
            "\n[it is a {about}; its text is at {path}, {lines} lines of Markdown: read_file reads it by lines]"
        );
        for warning in warnings {
            let _ = write!(description, "\n[note: {}]", foreign::line(warning, MAX_NOTE_CHARS));
        }
        if !outline.is_empty() {
            description.push_str("\n[its headings, by line:]");
        }
        for OutlineEntry { line, level, title } in outline {
            let title = foreign::line(title, HEADING);
            let marks = "#".repeat((*level).into());
            let _ = write!(description, "\n{line}: {marks} {title}");
        }
        if *more > 0 {
            let _ = write!(description, "\n[… {more} more headings …]");
        }
        if !opening.is_empty() {
            description.push_str("\n[it begins:]");
            for line in foreign::text(opening).lines() {
                let _ = write!(description, "\n> {line}");
            }
            description.push_str("\n[…]");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(reading: Option<ReadOutcome>) -> SharedFile {
        SharedFile { name: "a.pdf".into(), path: "/mnt/user-data/uploads/a.pdf".into(), size: 7, reading }
    }

    fn text() -> DocumentText {
        DocumentText {
            path: "/mnt/user-data/uploads/a.md".into(),
            size: 90,
            lines: 12,
            about: "PDF of 3 pages".into(),
            ..DocumentText::default()
        }
    }

    #[test]
    fn the_model_gets_a_description_of_a_file() {
        let check = |reading, expect: &str| assert_eq!(file(reading).describe(), expect);
        let plain = "[file: a.pdf (7 bytes) at /mnt/user-data/uploads/a.pdf]";
        check(None, plain);
        let failed = ReadOutcome::Failed { reason: "it is\nprotected".into(), cause: None };
        check(Some(failed), &format!("{plain}\n[its text could not be read: it is protected]"));
        let location = "[it is a PDF of 3 pages; its text is at /mnt/user-data/uploads/a.md, 12 lines of Markdown: \
                     read_file reads it by lines]";
        let entry = |line| OutlineEntry { line, level: 2, title: format!("Part {line}") };
        let long = DocumentText { warnings: vec!["a page is empty".into()], ..text() }
            .with_outline((1..=60).map(entry));
        let headings: String = (1..=50).map(|line| format!("\n{line}: ## Part {line}")).collect();
        let expect = format!(
            "{plain}\n{location}\n[note: a page is empty]\n[its headings, by line:]{headings}\n[… 10 more headings …]"
        );
        check(Some(ReadOutcome::Text(Box::new(long))), &expect);
        let opening = DocumentText { opening: "Dear all,\n[Bob] <system>x".into(), ..text() };
        let expect = format!("{plain}\n{location}\n[it begins:]\n> Dear all,\n> [Bob] &lt;system>x\n[…]");
        check(Some(ReadOutcome::Text(Box::new(opening))), &expect);
    }

    #[test]
    fn the_stored_format_is_stable() {
        let entry = OutlineEntry { line: 3, level: 1, title: "One".into() };
        let read = file(Some(ReadOutcome::Text(Box::new(text().with_outline([entry])))));
        let stored = json!({
            "name": "a.pdf", "path": "/mnt/user-data/uploads/a.pdf", "size": 7,
            "reading": {
                "outcome": "text", "path": "/mnt/user-data/uploads/a.md", "size": 90, "lines": 12,
                "about": "PDF of 3 pages", "outline": [{"line": 3, "level": 1, "title": "One"}], "more": 0,
            },
        });
        assert_eq!(serde_json::to_value(&read).unwrap(), stored);
        assert_eq!(serde_json::from_value::<SharedFile>(stored).unwrap(), read);
        let old = json!({"name": "a.pdf", "path": "/mnt/user-data/uploads/a.pdf", "size": 7});
        assert_eq!(serde_json::from_value::<SharedFile>(old).unwrap(), file(None));
        let failed = file(Some(ReadOutcome::Failed { reason: "no".into(), cause: None }));
        assert_eq!(
            serde_json::to_value(&failed).unwrap()["reading"],
            json!({"outcome": "failed", "reason": "no"})
        );
    }
}
