//! Breaks between words of one reply that something else separates, such as a search that ran at the provider.

/// Break between two paragraphs.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Puts a break before words that come behind a part without words.
#[derive(Debug, Default)]
pub(crate) struct Paragraphs {
    has_words: bool,
    is_interrupted: bool,
}

impl Paragraphs {
    /// Notes a part that is neither words nor thoughts.
    pub(crate) fn interrupt(&mut self) {
        self.is_interrupted = self.has_words;
    }

    /// Returns the next words, with a break where one is due.
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
