//! Reasons why the reader's proposals are not stored.

/// Reason why a proposed fact or summary is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// It is of this conversation or project, passing, or a request.
    Labels,
    /// It is not certain enough.
    Confidence,
    /// Its quote is not in the person's words.
    Quote,
    /// Its quote does not show it: they speak of something else, or of somebody else.
    Support,
    /// It says the opposite of its quote, or the other side of a comparison.
    Opposite,
    /// It says that something holds which is over, or the other way round.
    Outdated,
    /// It is certain where the person is not.
    Uncertain,
    /// It takes a wish, a plan or a condition for a fact.
    Unreal,
    /// It attributes words about another person to the person.
    Another,
    /// It has a password, a key, a PIN or the number of a card or a document.
    Secret,
    /// It is in a language in which it cannot be compared with its quote.
    Language,
    /// It is remembered already, or repeats what was injected.
    Known,
    /// It is about an uploaded file.
    Upload,
    /// It is too long, or one too many.
    TooMuch,
    /// It is malformed.
    Malformed,
    /// A merge that says more than its sources, or names others than were offered.
    Merge,
}

impl RefusedReason {
    /// Returns the reason's name in logs and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Confidence => "confidence",
            Self::Quote => "quote",
            Self::Support => "support",
            Self::Opposite => "opposite",
            Self::Outdated => "outdated",
            Self::Uncertain => "uncertain",
            Self::Unreal => "unreal",
            Self::Another => "another",
            Self::Secret => "secret",
            Self::Language => "language",
            Self::Known => "known",
            Self::Upload => "upload",
            Self::TooMuch => "too_much",
            Self::Malformed => "malformed",
            Self::Merge => "merge",
        }
    }
}
