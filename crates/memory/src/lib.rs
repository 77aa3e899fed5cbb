//! What an agent remembers of people: facts in DeerFlow's files, and recall by search.
//!
//! Deliberately absent: models (a caller asks one and hands its answer in), chats, and a clock (callers pass the time).

mod error;
mod fact;
mod markdown;
mod scope;
mod summary;
mod text;
mod time;

pub use error::{MemoryError, MemoryRefusal};
pub use fact::{Fact, FactCategory, FactId, FactOrigin, FactSource};
pub use scope::MemoryScope;
pub use summary::{Summaries, Summary, SummaryKey};
pub use text::normalized;
pub use time::FactTime;
