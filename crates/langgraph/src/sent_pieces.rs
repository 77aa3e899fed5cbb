//! A message that is sent in pieces. Text that may be the beginning of a secret is held back until the next piece.

use pudu_net::scrub::GrowingTalk;

/// The received and the sent parts of a message.
#[derive(Default)]
pub(super) struct SentPieces {
    heard: String,
    /// Sent text, without secrets.
    pub(super) text: String,
    words: GrowingTalk,
    pub(super) thoughts: GrowingTalk,
}

impl SentPieces {
    /// Adds text, and returns the part that can be sent now.
    pub(super) fn push(&mut self, delta: &str) -> String {
        self.heard.push_str(delta);
        let told = self.words.push(delta);
        self.text.push_str(&told);
        told
    }

    /// Ends the message, given its whole text, and returns the unsent part.
    pub(super) fn end(&mut self, full_text: &str) -> String {
        let rest = full_text.strip_prefix(self.heard.as_str()).unwrap_or_default();
        let told = self.words.push(rest) + &self.words.finish();
        self.text.push_str(&told);
        told
    }
}
