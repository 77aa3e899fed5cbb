//! Guardrails: what decides, without people, whether a tool may be called. DeerFlow's protocol: a provider gets a request
//! and gives a decision with reasons.
//!
//! Deliberately absent: for whom a run works, and the record of decisions. Whoever assembles the agent knows the first,
//! so that nothing of it comes from a text, and writes the second.

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

/// Decides on calls.
pub trait GuardrailProvider: Send + Sync {
    /// Names it for people.
    fn name(&self) -> &'static str;

    /// Decides on a call.
    fn evaluate<'a>(
        &'a self,
        request: &'a GuardrailRequest,
    ) -> BoxFuture<'a, Result<GuardrailDecision, GuardrailError>>;

    /// Tries it, and returns in a few words what it does; or else why it lets nothing through.
    fn check(&self) -> BoxFuture<'_, Result<String, String>>;
}
