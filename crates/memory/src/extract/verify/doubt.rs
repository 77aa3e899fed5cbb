//! Reasons why a fact does not say the same as the statement that it was taken from.

/// Reason why a fact does not say the same as the statement that it was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::extract) enum Doubt {
    /// It says the opposite, or the other side of a comparison.
    Opposite,
    /// It says that something holds which is over, or the other way round.
    Outdated,
    /// It is certain where the person is not.
    Uncertain,
    /// It takes a wish or a plan for a fact, or a condition for a case.
    Unreal,
    /// It attributes words about another person to the person.
    Another,
    /// It has a password, a key, a PIN or the number of a card or a document.
    Secret,
    /// It is in a language in which it cannot be compared.
    Language,
}
