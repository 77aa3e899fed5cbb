//! Markdown for chats: parsed once into text with marked ranges, written in a platform's own markup.
//!
//! [`parse`] resolves elements that chats have no markup for: bullets, numbering, indents, tables and rules become
//! plain characters. The result is the visible text and the ranges that are bold, code, links and so on. Chat platforms
//! use the same model: their limits count the text, any range can be cut out without breaking markup (see
//! [`crate::split`]), and a writer for one more platform is one function over it.
//!
//! Deliberately absent: HTML. Tags in Markdown are shown as they were typed, except line breaks.

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

/// Returns a text as a block of code, in Markdown, that nothing in it ends.
#[must_use]
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Text as people see it, with marked ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rich {
    /// The visible text.
    pub text: String,
    /// The marked ranges: never empty, nested or apart, ordered by their end.
    pub spans: Vec<Span>,
}

/// A marked range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The range, in bytes of the text.
    pub range: Range<usize>,
    /// How it looks.
    pub style: Style,
}

/// How a range looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// Bold; headings too.
    Bold,
    /// Italic.
    Italic,
    /// Struck through.
    Strike,
    /// Code inside a line.
    Code,
    /// A block of code, and its language if the fence names one.
    Pre(Option<String>),
    /// A table drawn in fixed-width characters. Its first `header` bytes head every part of the table.
    Table {
        /// Length of the header lines in bytes, with their last line break.
        header: usize,
    },
    /// A table written row by row. Its rows may still become a drawn table while the text grows.
    Rows,
    /// A quotation.
    Quote,
    /// A link, and where it leads: `http`, `https` or `mailto`.
    Link(String),
}

impl Style {
    /// Returns whether it covers whole lines and is no quotation.
    pub(crate) fn is_block(&self) -> bool {
        self.is_block_code() || *self == Self::Rows
    }

    /// Returns whether white space in it has a meaning.
    pub(crate) fn is_block_code(&self) -> bool {
        matches!(self, Self::Pre(_) | Self::Table { .. })
    }
}

impl Rich {
    /// Makes text without any marks.
    #[must_use]
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), spans: Vec::new() }
    }

    /// Returns a range of the text; empty where the range is not one.
    pub(crate) fn part(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// Marks the text from `start` to its end, if there is any.
    pub(crate) fn mark(&mut self, start: usize, style: Style) {
        if start < self.text.len() {
            self.spans.push(Span { range: start..self.text.len(), style });
        }
    }

    /// Appends a text with its marks.
    pub(crate) fn append(&mut self, other: &Self) {
        let at = self.text.len();
        self.text.push_str(&other.text);
        for Span { range, style } in &other.spans {
            self.spans.push(Span { range: range.start + at..range.end + at, style: style.clone() });
        }
    }

    /// Cuts out a range with its marks. `header` is put before it, into the table that it begins in.
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

    /// Returns the header that a part which begins at `at`, between the rows of a table, has to repeat.
    pub(crate) fn header_at(&self, at: usize) -> Option<&str> {
        self.spans.iter().find_map(|span| match span.style {
            Style::Table { header } if span.range.start + header <= at && at < span.range.end => {
                Some(self.part(span.range.start..span.range.start + header))
            }
            _ => None,
        })
    }
}

/// Has no width, and is neither white space nor a sign of punctuation.
pub(crate) const APART: char = '\u{200b}';

/// Returns whether a reader that keeps to CommonMark takes no mark of emphasis between these two characters, the inner
/// one being the character that the mark encloses. [`APART`] on its inner side makes it a mark.
pub(crate) fn hides_mark(outer: Option<char>, inner: Option<char>) -> bool {
    let is_sign = |c: char| !c.is_alphanumeric() && !c.is_whitespace() && c != APART;
    inner.is_some_and(is_sign) && outer.is_some_and(|c| !c.is_whitespace() && !is_sign(c))
}

#[cfg(test)]
mod tests;
