//! Guardrails: automatic decisions on whether a tool may be called. As in DeerFlow's protocol, a provider receives a
//! request and returns a decision with reasons.
//!
//! Deliberately absent: the identity of a run's user, which the caller provides so that it never comes from text; and
//! the record of decisions, which the caller keeps.

mod allowlist;
mod decision;
mod guards;
mod http;
mod passport;

pub use allowlist::Allowlist;
pub use decision::{GuardrailDecision, GuardrailError, GuardrailReason, GuardrailRequest};
pub use guards::{Guards, Judgement};
pub use http::{HttpGuardrail, HttpGuardrailSettings};
pub use passport::{Passport, PassportSource};

use pudu_base::BoxFuture;

/// Decides whether calls are allowed.
pub trait GuardrailProvider: Send + Sync {
    /// Returns the provider's name for users.
    fn name(&self) -> &'static str;

    /// Decides on a call.
    fn evaluate<'a>(
        &'a self,
        request: &'a GuardrailRequest,
    ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>>;

    /// Checks the provider. Returns a short description, or the reason why calls would be denied.
    fn check(&self) -> BoxFuture<'_, Result<String, String>>;
}
