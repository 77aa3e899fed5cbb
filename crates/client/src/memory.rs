//! Memory of users in runs: facts recalled for a question, and facts learnt from an answer.
//!
//! A private chat with the agent belongs to the user's memory, and a room's chat to the room's memory: facts of one are
//! never given to the other. No run waits for learning.

mod files;
pub(crate) mod learn;
pub(crate) mod recall;
mod rules;
mod settings;
pub(crate) mod tools;

pub(crate) use files::IndexedMemories;
pub use files::Memories;
pub use rules::{MemoryMode, MemoryOf, MemoryRules, MemorySetup, MemoryTrouble};
pub(crate) use settings::settings;
