//! An agent's memory of users: facts in DeerFlow's files, and recall by search.
//!
//! [`MemoryStore`] reads and changes the files, under DeerFlow's lock and in its formats, so that both programs can use
//! one home in turn. [`extract`] turns a conversation and a model's answer into changes; [`inject`](fn@inject) renders
//! memory as text for a model.
//!
//! Deliberately absent: models (the caller calls one and passes its answer), chats, and a clock (callers pass the
//! time).

mod about;
mod bucket;
mod cache;
mod changes;
mod commit;
mod document;
mod error;
mod evict;
pub mod extract;
mod fact;
mod files;
mod forget;
mod inject;
mod manifest;
mod markdown;
mod merge;
mod migrate;
mod operations;
mod options;
mod recall;
mod scope;
mod secrets;
mod store;
mod summary;
mod text;
mod time;

pub use about::speaks_of;
pub use cache::FactCache;
pub use changes::{Changes, Committed, EvictedFact, SupersedeReason, SupersededFact, Supersession};
pub use document::{BrokenFile, DocumentDetail, MemoryDocument, fact_json};
pub use error::{MemoryError, MemoryRefusal};
pub use fact::{Fact, FactCategory, FactId, FactOrigin, FactSource};
pub use inject::{InjectedMemory, MemoryKind, inject, pinned};
pub use merge::MergedMemory;
pub use operations::{FactEdit, NewFact};
pub use options::{EvictionPolicy, MemoryOptions};
pub use recall::{RECALL_LIMITS, RecallBudget, RecallableFact, RecalledId, RecalledMemory, choose_recalled};
pub use scope::{DEFAULT_AGENT, MemoryScope};
pub use secrets::{has_secret, without_secrets};
pub use store::MemoryStore;
pub use summary::{Summaries, Summary, SummaryKey};
pub use text::{count_tokens, normalized};
pub use time::FactTime;
