//! Memory of users in runs: recalling facts for a question, and learning facts from a conversation.
//!
//! A private chat with the agent uses the user's memory, and a group chat the group's. Facts of one are never used in
//! the other. No run waits for learning.

mod files;
pub mod learn;
pub mod recall;
mod rules;
mod settings;
pub(crate) mod tools;

pub(crate) use files::IndexedMemories;
pub use files::Memories;
pub use rules::{MemoryMode, MemoryOf, MemoryRules, MemorySetup, MemoryTrouble};
pub use settings::settings;
