//! Fits requests into a model's window: messages, tools and images together.
//!
//! [`ContextFit::fit`] is the only function that does so, in this order: old tool results become pointers (`mask.rs`);
//! a model's summary replaces the beginning (`summary.rs`); the beginning is cut (`cut.rs`). Each decision is recorded
//! in the thread's state before the model is called, and [`view`](view::view) depends on that state alone. So between
//! two decisions every request begins with the bytes of the previous one, the provider's cache stays valid, and a
//! restart sends the same request.
//!
//! Deliberately absent: changes of the messages themselves. The thread keeps them all.

mod block;
mod cut;
mod estimate;
mod fit;
mod mask;
mod record;
mod rules;
mod summary;
mod view;

pub use estimate::{estimated_reply_tokens, estimated_tokens, message_bytes, value_bytes};
pub(crate) use fit::ContextFit;
pub use rules::{ContextRules, ContextSetup, ContextSize};

#[cfg(test)]
mod tests;
