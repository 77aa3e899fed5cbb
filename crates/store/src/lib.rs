//! SQL: inbox, outbox, conversations, messages, runs, approvals, the audit, the thread log and the index of recall, on
//! SQLite or PostgreSQL.
//!
//! One [`Db`], one SQL text, one set of migrations. All writes go through one writer that commits many
//! at once; a write is answered once it is durable. Reads use a small pool and see committed data.
//!
//! Deliberately absent: a clock (callers pass the time, in milliseconds since 1970; only the rows of a thread's log
//! get theirs here), policy (the messages to answer, the time of a retry), and knowledge of the JSON of others:
//! payloads, placements, handles and views are stored unchanged.

mod accounts;
mod adoption;
mod api_tokens;
mod approvals;
mod audit;
mod availability;
mod batch;
mod buffer;
mod choices;
mod claim;
mod client_runs;
mod client_threads;
mod clock;
mod connection;
pub mod crash;
mod db;
mod engine;
mod error;
mod feedback;
mod file;
mod history;
mod identities;
mod ids;
mod imports;
mod inbox;
mod job;
mod json;
mod learning;
mod link;
mod location;
mod lock;
mod log;
mod memory_merge;
mod messages;
mod pairing;
mod person;
mod pools;
mod positions;
mod provider_accounts;
mod readers;
mod recall;
mod runs;
mod schema;
mod spending;
mod statement;
mod sweep;
mod talk;
mod tasks;
mod thread_people;
mod thread_search;
mod threads;
mod transaction;
mod turns;
mod writer;

pub use accounts::{AddedAccount, ChangedPassword, PasswordChange, RemovedAccount};
pub use adoption::Adoption;
pub use api_tokens::{ApiToken, MAX_USER_TOKENS};
pub use approvals::{Approval, ApprovalDecision};
pub use audit::{ABANDONED, AuditEntry, AuditEntryId, AuditLimits, AuditSize, STOPPED};
pub use buffer::{BufferLimits, BufferPlace, BufferTake, BufferedMessage};
pub use choices::{ChoiceOutcome, Offered};
pub use claim::Claim;
pub use client_runs::{CancelAction, NewClientRun, RunOrigin, RunRow, RunTokens};
pub use client_threads::{ClientThread, NewThread, ThreadChange};
pub use clock::now;
pub use db::Db;
pub use error::StoreError;
pub use history::LogEntry;
pub use identities::{Identity, JoinCode, PartedPerson, unpaired_user};
pub use ids::{InboxItemId, TurnId};
pub use imports::{Feedback, ImportNote, ImportRecord, ImportedThread, MovedAccount, UserAccount};
pub use inbox::{InboxRow, InsertedEvent, NewInboxItem};
pub use learning::{Learning, LearningReader};
pub use location::{DbLocation, PostgresUrl};
pub use memory_merge::MemoryMerge;
pub use pairing::{MAX_UNUSED_CODES, Paired};
pub use person::{AccountPerson, FORGOTTEN_NOTE, PersonKeys, PersonTable, RoomMessage, SharedThread};
pub use provider_accounts::{ProviderAccount, ProviderLogin};
pub use recall::{
    MAX_RECALL_CHARS, RecallEntry, RecallHit, RecallHits, RecallKind, RecallLimits, RecallScope,
    recall_words, telling_words,
};
pub use runs::{RunEnding, RunTitles};
pub use spending::{
    BudgetLimit, BudgetStanding, BudgetUnit, CallOffer, CallSpending, Cost, ModelCall, OfferCost,
    Reservation, ReserveOutcome, Settlement, Spender, SpendingFilter, SpendingShare, SpendingSum,
};
pub use sweep::{KEEP_DONE, KEEP_MESSAGES, KEEP_PARKED, KEEP_TURNS, Swept};
pub use talk::{ChatConversations, ConversationRow};
pub use tasks::{TaskFilter, TaskRow};
pub use thread_search::{
    FoundThreads, ThreadCondition, ThreadCursor, ThreadFacts, ThreadOrder, ThreadQuery, ThreadRunStatus,
};
pub use threads::{Deletion, FileSize, ThreadRow};
pub use turns::{Delivered, NewTurn, ShownReply, TurnRow};
