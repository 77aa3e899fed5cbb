//! Fits requests into a model's window: messages, tools and images together.
//!
//! [`ContextFit::fit`] is the one function that does, in this order: old tool results become pointers (`mask.rs`); a
//! model's summary takes the place of the beginning (`summary.rs`); the beginning is cut (`cut.rs`). Each of it is written
//! down before the model is asked, as a part of the thread's state, and [`view`](view::view) shows the thread by that
//! alone: so between two steps every request begins with the bytes of the one before, a provider's cache of it holds,
//! and a restart asks the same.
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
