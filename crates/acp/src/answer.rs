//! The end of an agent's work.

use crate::AcpFailure;

/// The end of an agent's work on a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpAnswer {
    /// The agent's text, also of work that did not end.
    pub text: String,
    /// Sentences for the model about omitted parts.
    pub notes: Vec<String>,
    /// Why the work did not end; `None` if it did.
    pub failure: Option<AcpFailure>,
}
