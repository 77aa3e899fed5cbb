//! Evidence for what a model wants to remember, change or delete with a tool: the people's own words in the conversation.

use super::{
    signals::signals,
    support::proof,
    transcript::{OwnLine, TranscriptTurn, own_lines},
};
use crate::{about::Subject, fact::FactOrigin};

/// Share of a fact's telling words that a request to delete it has at least.
const MIN_ASKED_SHARE: f64 = 0.5;

/// What people said in a conversation in their own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWords(Vec<OwnLine>);

impl OwnWords {
    /// Finds them in the turns of a conversation.
    #[must_use]
    pub fn of(turns: &[TranscriptTurn]) -> Self {
        Self(own_lines(turns))
    }

    /// Finds the statement in which somebody says what a fact says.
    #[must_use]
    pub fn proof(&self, fact: &str) -> Option<FactOrigin> {
        let (line, quote) = proof(&self.0, fact)?;
        Some(FactOrigin { quote: Some(quote.to_owned()), ..line.origin.clone() })
    }

    /// Whether somebody speaks of what a fact says: states it, asks for it, or wants it gone.
    #[must_use]
    pub fn speak_of(&self, fact: &str) -> bool {
        let subject = Subject::of(fact);
        self.0.iter().any(|line| subject.share_in(&line.spoken) >= MIN_ASKED_SHARE)
    }
}

/// Whether a message shows by its words that somebody tells something about themselves.
#[must_use]
pub fn has_signal(text: &str) -> bool {
    signals(text).next().is_some()
}
