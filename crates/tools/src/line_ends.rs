//! Preserves line endings: models write LF, but files from Windows have CRLF. Texts are compared as if they had only
//! LF, and new lines get the line endings of the surrounding text.

use std::borrow::Cow;

/// Returns a text with only LF line ends.
pub(crate) fn unify(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() }
}

/// Returns a text with the line ends of the file that it is appended to.
pub(crate) fn like<'a>(text: &'a str, file: &str) -> Cow<'a, str> {
    with(unify(text), LineEnds::new(file).at(file.len()))
}

fn with<'a>(text: Cow<'a, str>, line_end: &str) -> Cow<'a, str> {
    if line_end == "\n" || !text.contains('\n') { text } else { text.replace('\n', line_end).into() }
}

/// Looks up the line ends of a text, in order of position.
struct LineEnds<'a> {
    text: &'a str,
    /// Position of the first line feed at or after the last lookup.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'a> LineEnds<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, next: text.find('\n'), last: text.rfind('\n') }
    }

    /// Returns the first line end at or after a position, or else the last one before it.
    fn at(&mut self, place: usize) -> &'static str {
        if self.next.is_some_and(|next| next < place) {
            let rest = self.text.get(place..).unwrap_or_default();
            self.next = rest.find('\n').map(|at| place + at);
        }
        let line = self.next.or(self.last).and_then(|at| self.text.get(..at)).unwrap_or_default();
        if line.ends_with('\r') { "\r\n" } else { "\n" }
    }
}

/// The occurrences of one text in another, regardless of line ends.
pub(crate) struct Occurrences<'a> {
    text: &'a str,
    /// Start and end of each occurrence, in bytes.
    places: Vec<(usize, usize)>,
}

impl<'a> Occurrences<'a> {
    /// Finds all occurrences that do not overlap.
    pub(crate) fn all(text: &'a str, wanted: &str) -> Self {
        let (unified, wanted) = (unify(text), unify(wanted));
        let mut line_ends = text.match_indices("\r\n").map(|(at, _)| at).peekable();
        let mut passed = 0;
        // Each CRLF before a position makes its original position one larger.
        let mut original = |place: usize| {
            while line_ends.next_if(|at| at - passed < place).is_some() {
                passed += 1;
            }
            place + passed
        };
        let places = unified.match_indices(wanted.as_ref());
        let places = places.map(|(at, found)| (original(at), original(at + found.len()))).collect();
        Self { text, places }
    }

    /// Returns the number of occurrences.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// Returns an upper bound for the size after a replacement, in bytes.
    pub(crate) fn size_with(&self, new: &str) -> u64 {
        let found: usize = self.places.iter().map(|(start, end)| end - start).sum();
        let crlf = if self.text.contains("\r\n") { new.matches('\n').count() } else { 0 };
        let added = (self.count() as u64).saturating_mul((new.len() + crlf) as u64);
        ((self.text.len() - found) as u64).saturating_add(added)
    }

    /// Replaces all occurrences. New lines get the line ends around each occurrence.
    pub(crate) fn replace(&self, new: &str) -> String {
        let new = unify(new);
        let (mut text, mut at) = (String::new(), 0);
        let mut line_ends = LineEnds::new(self.text);
        for (start, end) in &self.places {
            text.push_str(self.text.get(at..*start).unwrap_or_default());
            text.push_str(&with(new.as_ref().into(), line_ends.at(*start)));
            at = *end;
        }
        text.push_str(self.text.get(at..).unwrap_or_default());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_and_replaced_regardless_of_line_ends() {
        for (text, old, new, count, expect) in [
            ("a\r\nb\r\nc", "a\nb", "A\nB", 1, "A\r\nB\r\nc"),
            ("a\r\nb\r\nc", "a\r\nb", "A\r\nB", 1, "A\r\nB\r\nc"),
            ("a\nb\nc", "a\r\nb", "A\r\nB\r\nX", 1, "A\nB\nX\nc"),
            ("a\r\nb\r\n", "b", "b\nc", 1, "a\r\nb\r\nc\r\n"),
            ("a\r\nb", "b", "b\nc", 1, "a\r\nb\r\nc"),
            ("one", "one", "1\n2", 1, "1\n2"),
            ("a\r\nb\nc\r\nd\n", "b", "b\nB", 1, "a\r\nb\nB\nc\r\nd\n"),
            ("a\r\nb\nc\r\nd\n", "c", "c\nC", 1, "a\r\nb\nc\r\nC\r\nd\n"),
            ("a\r\nb\nc\r\nd\n", "a\nb\nc", "x\ny", 1, "x\r\ny\r\nd\n"),
            ("x\r\nx\nx\r\n", "x\n", "y\n", 3, "y\r\ny\ny\r\n"),
            ("a\r\n\r\nb", "\n\n", "\n", 1, "a\r\nb"),
            ("a\r\nb", "\nb", "", 1, "a"),
            ("a\rb\r\nc", "b", "B\n", 1, "a\rB\r\n\r\nc"),
            ("ä\r\nö\r\n", "ä\nö", "ö", 1, "ö\r\n"),
            ("a\r\nb", "c", "d", 0, "a\r\nb"),
        ] {
            let found = Occurrences::all(text, old);
            let (after, size) = (found.replace(new), found.size_with(new));
            assert_eq!((found.count(), after.as_str()), (count, expect), "{text:?} {old:?}");
            assert!(size >= after.len() as u64, "{text:?} {old:?}");
        }
    }

    #[test]
    fn appended_text_gets_the_line_ends_of_its_file() {
        assert_eq!(like("b\nc\n", "a\r\n"), "b\r\nc\r\n");
        assert_eq!(like("b\r\nc\r\n", "a\n"), "b\nc\n");
        assert_eq!(like("b\n", ""), "b\n");
        assert_eq!(like("c\n", "a\r\nb\n"), "c\n");
    }
}
