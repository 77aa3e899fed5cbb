//! Reasons why proposed facts and summaries are not stored.

/// Reason why a proposed fact or summary is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedReason {
    /// It is a request, temporary, or limited to this conversation or project.
    Labels,
    /// Its confidence is too low.
    Confidence,
    /// Its quote is not in the person's words.
    Quote,
    /// Its quote does not support it: the two have different topics or subjects.
    Support,
    /// It is the opposite of its quote, or reverses a comparison.
    Opposite,
    /// It presents something past as current, or the other way round.
    Outdated,
    /// It is stated as certain although the person is not certain.
    Uncertain,
    /// It presents a wish, a plan or a condition as a fact.
    Hypothetical,
    /// It attributes words about another person to the person.
    OtherPerson,
    /// It contains a password, a key, a PIN, or the number of a card or a document.
    Secret,
    /// The statement is in an unsupported language: only English and Chinese can be checked.
    Language,
    /// It is already in memory, or repeats injected text.
    Known,
    /// It is about an uploaded file.
    Upload,
    /// It is too long, or exceeds the maximum number.
    TooMuch,
    /// It is malformed.
    Malformed,
    /// It is a merge that says more than its sources, or names sources that were not offered.
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
            Self::Hypothetical => "unreal",
            Self::OtherPerson => "another",
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
