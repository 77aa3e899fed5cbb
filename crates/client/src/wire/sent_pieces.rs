//! A message that is sent in pieces. What may be the beginning of a secret waits for what follows.

use crate::net::scrub::GrowingTalk;

/// What came of a message, and what was sent of it.
#[derive(Default)]
pub(super) struct SentPieces {
    heard: String,
    /// What was sent of its words, without secrets.
    pub(super) text: String,
    words: GrowingTalk,
    pub(super) thoughts: GrowingTalk,
}

impl SentPieces {
    /// Takes more of its words, and returns what can be sent by now.
    pub(super) fn hear(&mut self, delta: &str) -> String {
        self.heard.push_str(delta);
        let told = self.words.push(delta);
        self.text.push_str(&told);
        told
    }

    /// Takes all of its words, and returns what was not sent of them.
    pub(super) fn end(&mut self, whole: &str) -> String {
        let rest = whole.strip_prefix(self.heard.as_str()).unwrap_or_default();
        let told = self.words.push(rest) + &self.words.finish();
        self.text.push_str(&told);
        told
    }
}
