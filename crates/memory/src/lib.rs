//! What an agent remembers of people: facts in DeerFlow's files, and recall by search.
//!
//! Deliberately absent: models (a caller asks one and hands its answer in), chats, and a clock (callers pass the time).

mod recall;

pub use recall::{
    RECALL_LIMITS, RecallBudget, RecallableFact, RecalledId, RecalledMemory, choose_recalled, count_tokens,
};
