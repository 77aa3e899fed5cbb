//! Breaks between the texts of one reply that are separated by another part, such as a search that ran at the provider.

/// Break between two paragraphs.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Inserts a break before text that follows a part of another kind.
#[derive(Debug, Default)]
pub(crate) struct Paragraphs {
    has_words: bool,
    is_interrupted: bool,
}

impl Paragraphs {
    /// Records a part that is neither text nor thoughts.
    pub(crate) fn interrupt(&mut self) {
        self.is_interrupted = self.has_words;
    }

    /// Returns the next text, with a break if needed.
    pub(crate) fn separate(&mut self, words: String) -> String {
        if words.is_empty() {
            return words;
        }
        self.has_words = true;
        match std::mem::take(&mut self.is_interrupted) {
            true => format!("{PARAGRAPH}{words}"),
            false => words,
        }
    }
}
