//! Language models behind the one port of `pudu-base`: the OpenAI-compatible chat wire, which most
//! providers and local servers speak, and a built-in model for a machine that has none.
//!
//! Deliberately absent: retrying (the harness decides that) and anything about threads.

mod offline;
mod openai;

pub use offline::Offline;
pub use openai::{OpenAi, OpenAiSettings};
