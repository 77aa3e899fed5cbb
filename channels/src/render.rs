//! Markdown for chats: parsed once into text with styled ranges, then written in a platform's markup.
//!
//! [`parse`] converts elements without a markup in chats (bullets, numbering, indents, tables and rules) to plain
//! characters. The result is the visible text and the ranges that are bold, code, links and so on. Chat platforms use
//! the same model: their limits apply to the text, any range can be cut out without breaking markup (see
//! [`crate::split`]), and a writer for another platform is a single function.
//! Deliberately absent: HTML. Tags in Markdown are shown literally, except line breaks.

pub mod dingtalk;
pub mod discord;
pub mod feishu;
pub mod markdown;
pub mod slack;
mod table;
pub mod telegram;
mod walk;

use std::ops::Range;
pub use walk::{parse, parse_within};

/// Returns a text as a Markdown code block, with a fence that does not occur in the text.
#[must_use]
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Visible text with styled ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rich {
    /// The visible text.
    pub text: String,
    /// The styled ranges: never empty, either nested or disjoint, ordered by their end.
    pub spans: Vec<Span>,
}

/// A styled range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The range, in bytes of the text.
    pub range: Range<usize>,
    /// The style.
    pub style: Style,
}

/// Style of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bold. Also used for headings.
    Bold,
    /// Italic.
    Italic,
    /// Struck through.
    Strike,
    /// Inline code.
    Code,
    /// A code block, and its language if the fence specifies one.
    Pre(Option<String>),
    /// A table drawn in fixed-width characters. Its first `header` bytes are repeated in every part of a split table.
    Table {
        /// Length of the header lines in bytes, including the last line break.
        header: usize,
    },
    /// A table written row by row. It may still become a drawn table while the text grows.
    Rows,
    /// A quotation.
    Quote,
    /// A link, with its `http`, `https` or `mailto` URL.
    Link(String),
}

impl Style {
    /// Returns whether the style covers whole lines and is not a quotation.
    pub(crate) fn is_block(&self) -> bool {
        self.is_block_code() || *self == Self::Rows
    }

    /// Returns whether white space is significant in this style.
    pub(crate) fn is_block_code(&self) -> bool {
        matches!(self, Self::Pre(_) | Self::Table { .. })
    }
}

impl Rich {
    /// Creates text without styles.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), spans: Vec::new() }
    }

    /// Returns a range of the text; empty if the range is invalid.
    pub(crate) fn part(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// Adds a style from `start` to the end of the text, unless that range is empty.
    pub(crate) fn mark(&mut self, start: usize, style: Style) {
        if start < self.text.len() {
            self.spans.push(Span { range: start..self.text.len(), style });
        }
    }

    /// Appends a text with its styles.
    pub(crate) fn append(&mut self, other: &Self) {
        let at = self.text.len();
        self.text.push_str(&other.text);
        for Span { range, style } in &other.spans {
            self.spans.push(Span { range: range.start + at..range.end + at, style: style.clone() });
        }
    }

    /// Returns a range with its styles. `header` is inserted at its beginning, as part of the table that it begins in.
    pub(crate) fn slice(&self, range: Range<usize>, header: &str) -> Self {
        let mut piece = Self::plain(format!("{header}{}", self.part(range.clone())));
        for span in &self.spans {
            let (start, end) = (span.range.start.max(range.start), span.range.end.min(range.end));
            if start < end {
                let headed = !header.is_empty() && start == range.start && span.style.is_block_code();
                let from = if headed { 0 } else { start - range.start + header.len() };
                let range = from..end - range.start + header.len();
                piece.spans.push(Span { range, style: span.style.clone() });
            }
        }
        piece
    }

    /// Returns the header to repeat if a part begins at `at`, between the rows of a table.
    pub(crate) fn header_at(&self, at: usize) -> Option<&str> {
        self.spans.iter().find_map(|span| match span.style {
            Style::Table { header } if span.range.start + header <= at && at < span.range.end => {
                Some(self.part(span.range.start..span.range.start + header))
            }
            _ => None,
        })
    }
}

/// Character without width that is neither white space nor punctuation.
pub(crate) const APART: char = '\u{200b}';

/// Returns whether CommonMark recognises no emphasis delimiter between these two characters. `inner` is the character
/// inside the emphasis. Inserting [`APART`] on the inner side makes the delimiter valid.
pub(crate) fn hides_mark(outer: Option<char>, inner: Option<char>) -> bool {
    let is_sign = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != APART;
    inner.is_some_and(is_sign) && outer.is_some_and(|c| !c.is_whitespace() && !is_sign(c))
}

#[cfg(test)]
mod tests;
