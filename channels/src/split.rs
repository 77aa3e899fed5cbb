//! Splits a long reply into messages.
//!
//! Each cut depends only on the text before it and the few characters after it, so that the parts of a growing text
//! stay the same: a full message is never edited again. A cut is made at the end of a paragraph, or else of a line, or
//! else of a word: the last one in the second half of the part that fits. Otherwise it is made between two graphemes.
//! Tables move to the next message as a whole; one that does not fit there is cut between rows, and its header is
//! repeated. Styles that span a cut end before it and begin again after it.

use crate::render::{Rich, Span, Style};
use unicode_segmentation::GraphemeCursor;

/// Unit in which a platform counts length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values.
    Chars,
    /// UTF-16 code units.
    Utf16,
}

impl Unit {
    /// Returns the length of a text in this unit.
    #[must_use]
    pub fn len(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Chars => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
        }
    }

    /// Returns the length in bytes of the longest prefix of a text that has at most `max` units.
    fn fit(self, text: &str, max: usize) -> usize {
        let mut remaining = max;
        for (at, c) in text.char_indices() {
            let cost = match self {
                Self::Bytes => c.len_utf8(),
                Self::Chars => 1,
                Self::Utf16 => c.len_utf16(),
            };
            let Some(rest) = remaining.checked_sub(cost) else { return at };
            remaining = rest;
        }
        text.len()
    }
}

/// Maximum length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The unit.
    pub unit: Unit,
    /// Maximum number of units; at least 8, so that any character fits.
    pub max: usize,
    /// Width of a line on small screens, in fixed-width characters.
    pub columns: usize,
}

/// Splits a text into parts of at most `limit`. No part is blank.
#[must_use]
pub fn split(rich: &Rich, limit: Limit) -> Vec<Rich> {
    let solid = rich.spans.iter().filter(|span| span.style.is_block_code()).collect();
    let cutter = Cutter { rich, limit, solid };
    let mut parts = Vec::new();
    let mut start = cutter.skip(0);
    while start < rich.text.len() {
        let end = cutter.end(start);
        let part = rich.slice(start..cutter.trim(start, end), cutter.header(start));
        if !part.text.trim().is_empty() {
            parts.push(part);
        }
        start = cutter.skip(end);
    }
    parts
}

struct Cutter<'a> {
    rich: &'a Rich,
    limit: Limit,
    /// Blocks with significant white space, in order.
    solid: Vec<&'a Span>,
}

impl Cutter<'_> {
    /// Returns the end of the part that begins at `start`.
    fn end(&self, start: usize) -> usize {
        let rest = self.rich.part(start..self.rich.text.len());
        let fits = self.limit.unit.fit(rest, self.room(start));
        if fits == rest.len() {
            return start + fits;
        }
        let limit = start + fits;
        match self.block(limit) {
            Some(Span { range, style: Style::Table { .. } }) if range.start > start => range.start,
            _ => self.cut(start, limit),
        }
    }

    /// Returns the header to repeat in the part that begins at `start`; none if it would take half of the limit.
    fn header(&self, start: usize) -> &str {
        let header = self.rich.header_at(start).unwrap_or_default();
        if self.limit.unit.len(header) > self.limit.max / 2 { "" } else { header }
    }

    fn room(&self, start: usize) -> usize {
        self.limit.max - self.limit.unit.len(self.header(start))
    }

    /// Returns the best cut at or before `most`.
    fn cut(&self, start: usize, most: usize) -> usize {
        // A cut before the middle would leave a message that looks truncated for no reason.
        let middle = start + (most - start) / 2;
        let last = |wanted: fn(&Self, usize) -> bool| {
            let window = self.rich.part(start..self.after(most));
            let places = window.char_indices().map(|(at, _)| start + at);
            places.rev().take_while(|at| *at > middle).find(|at| wanted(self, *at))
        };
        last(Self::ends_paragraph)
            .or_else(|| last(Self::ends_line))
            .or_else(|| last(Self::ends_word))
            .unwrap_or_else(|| self.grapheme(start, most))
    }

    /// Returns the position after the character at `at`, so that a break right after a full part is found.
    fn after(&self, at: usize) -> usize {
        at + self.rich.part(at..self.rich.text.len()).chars().next().map_or(0, char::len_utf8)
    }

    fn ends_paragraph(&self, at: usize) -> bool {
        self.block(at).is_none() && self.rich.part(at..self.rich.text.len()).starts_with("\n\n")
    }

    fn ends_line(&self, at: usize) -> bool {
        self.rich.part(at..self.rich.text.len()).starts_with('\n')
    }

    fn ends_word(&self, at: usize) -> bool {
        self.rich.part(at..self.rich.text.len()).starts_with(char::is_whitespace)
    }

    /// Returns the last grapheme boundary at or before `most`, or `most` within a huge grapheme.
    fn grapheme(&self, start: usize, most: usize) -> usize {
        let text = &self.rich.text;
        let mut cursor = GraphemeCursor::new(most, text.len(), true);
        if cursor.is_boundary(text, 0) == Ok(true) {
            return most;
        }
        let before = cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(start);
        if before > start { before } else { most }
    }

    /// Returns the block with significant white space around `at`. `at` is after the block's first character.
    fn block(&self, at: usize) -> Option<&Span> {
        let next = self.solid.partition_point(|span| span.range.end <= at);
        self.solid.get(next).copied().filter(|span| span.range.start < at)
    }

    /// Returns where the next part begins. White space at a cut is dropped, except the indent of code.
    fn skip(&self, from: usize) -> usize {
        if self.block(from).is_some() {
            return from + usize::from(self.ends_line(from));
        }
        let mut at = from;
        while self.ends_word(at) && !self.solid.iter().any(|span| span.range.start == at) {
            at = self.after(at);
        }
        at
    }

    /// Returns `end` moved before trailing white space that is not part of code.
    fn trim(&self, start: usize, end: usize) -> usize {
        let words = start + self.rich.part(start..end).trim_end().len();
        let code = self.solid.iter().rev().find(|span| span.range.start < end && span.range.end > words);
        code.map_or(words, |span| span.range.end.min(end))
    }
}

#[cfg(test)]
mod tests;
