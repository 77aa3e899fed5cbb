//! A converted document.

use crate::{DocumentKind, Heading};
use serde::{Deserialize, Serialize};

/// A document as Markdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Kind of the document.
    pub kind: DocumentKind,
    /// Title, if the document has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The content.
    pub markdown: String,
    /// The headings of the Markdown.
    pub outline: Vec<Heading>,
    /// Number of pages, slides, sheets or chapters, if the document has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// Parts that are missing from the Markdown or may be wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
