//! Memory of users in runs: what is told of it with a question, and what is learnt from an answer.
//!
//! What is said alone with the agent belongs to the person, and what is said in a room to the room: nothing is told of one
//! where the other talks. Nobody waits for what is learnt.

mod files;
pub(crate) mod learn;
pub(crate) mod recall;
mod rules;
pub(crate) mod tools;

pub(crate) use files::IndexedMemories;
pub use files::Memories;
pub(crate) use rules::MemorySetup;
pub use rules::{MemoryMode, MemoryOf, MemoryRules, MemoryTrouble};
