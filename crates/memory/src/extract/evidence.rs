//! Evidence for facts that a model adds, changes or deletes with a tool: people's own words in the conversation.

use super::{
    signals::signals,
    support::proof,
    transcript::{OwnLine, TranscriptTurn, own_lines},
};
use crate::{about::Subject, fact::FactOrigin};

/// Minimum share of a fact's significant words in a request to delete it.
const MIN_ASKED_SHARE: f64 = 0.5;

/// People's own words in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWords(Vec<OwnLine>);

impl OwnWords {
    /// Extracts people's own words from the turns of a conversation.
    #[must_use]
    pub fn from_turns(turns: &[TranscriptTurn]) -> Self {
        Self(own_lines(turns))
    }

    /// Finds the statement in which a person says the same as a fact.
    #[must_use]
    pub fn proof(&self, fact: &str) -> Option<FactOrigin> {
        let (line, quote) = proof(&self.0, fact)?;
        Some(FactOrigin { quote: Some(quote.to_owned()), ..line.origin.clone() })
    }

    /// Whether a person mentions a fact: states it, asks for it, or wants it deleted.
    #[must_use]
    pub fn speak_of(&self, fact: &str) -> bool {
        let subject = Subject::from_fact(fact);
        self.0.iter().any(|line| subject.share_in(&line.spoken) >= MIN_ASKED_SHARE)
    }
}

/// Whether the words of a message suggest that the author says something about themselves.
#[must_use]
pub fn has_signal(text: &str) -> bool {
    signals(text).next().is_some()
}
