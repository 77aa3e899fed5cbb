//! The SQL store: inbox, outbox, conversations, messages, runs, approvals, the audit log, the thread log and the recall
//! index, on SQLite or PostgreSQL.
//!
//! Both engines share one [`Db`], the SQL text and the migrations. All writes go through one writer, which commits many
//! at once and acknowledges a write when it is durable. Reads use a small pool and see committed data.
//!
//! Deliberately absent: a clock (callers pass the time, in milliseconds since 1970; only the rows of a thread's log get
//! their time here), policy (which messages to answer, when to retry), and the meaning of other crates' JSON: payloads,
//! reply targets, handles and views are stored unchanged.

mod availability;
mod clock;
pub mod crash;
mod db;
mod engines;
mod error;
mod ids;
mod imports;
mod inbox;
mod json;
mod location;
mod memory;
mod outbox;
mod people;
mod runs;
mod schedules;
mod spending;
mod sweep;
mod threads;
mod writer;

pub use clock::now;
pub use db::Db;
pub use engines::Claim;
pub(crate) use error::Result;
pub use error::StoreError;
pub use ids::{InboxItemId, TurnId};
pub use imports::{Feedback, ImportNote, ImportRecord, ImportedThread, MovedAccount, UserAccount};
pub use inbox::{
    InboxRow, InsertedEvent, NewInboxItem,
    buffer::{BufferLimits, BufferPlace, BufferTake, BufferedMessage},
};
pub use location::{DbLocation, PostgresUrl};
pub use memory::{
    learning::{Learning, LearningReader},
    merge::MemoryMerge,
    recall::{
        MAX_RECALL_CHARS, RecallEntry, RecallHit, RecallHits, RecallKind, RecallLimits, RecallScope,
        recall_words, telling_words,
    },
};
pub use outbox::{
    Delivered, NewTurn, ShownReply, TurnRow,
    choices::{ChoiceOutcome, Offered},
    conversations::{ChatConversations, ConversationRow},
};
pub use people::{
    accounts::{AddedAccount, ChangedPassword, PasswordChange, RemovedAccount},
    api_tokens::{ApiToken, MAX_USER_TOKENS},
    identities::{Identity, JoinCode, PartedPerson, unpaired_user},
    pairing::{MAX_UNUSED_CODES, Paired},
    person::{AccountPerson, FORGOTTEN_NOTE, PersonKeys, PersonTable, RoomMessage, SharedThread},
    provider_accounts::{ProviderAccount, ProviderLogin},
};
pub use runs::{
    RunEnding, RunTitles,
    approvals::{Approval, ApprovalDecision},
    audit::{ABANDONED, AuditEntry, AuditEntryId, AuditLimits, AuditSize, STOPPED},
    records::{CancelAction, NewClientRun, RunOrigin, RunRow, RunTokens},
};
pub use schedules::{
    ScheduleKind, ScheduledChat, ScheduledTask, ScheduledTaskStatus,
    claim::{ScheduledClaim, ScheduledStart, ScheduledWork},
    history::{ScheduledCause, ScheduledRun, ScheduledRunStatus},
};
pub use spending::{
    BudgetLimit, BudgetStanding, BudgetUnit, CallOffer, CallSpending, Cost, ModelCall, OfferCost,
    Reservation, ReserveOutcome, Settlement, Spender, SpendingFilter, SpendingShare, SpendingSum,
};
pub use sweep::{KEEP_DONE, KEEP_MESSAGES, KEEP_PARKED, KEEP_TURNS, Swept};
pub use threads::{
    Deletion, FileSize, ThreadRow,
    adoption::Adoption,
    client::{ClientThread, NewThread, ThreadChange},
    history::LogEntry,
    search::{
        FoundThreads, ThreadCondition, ThreadCursor, ThreadFacts, ThreadOrder, ThreadQuery, ThreadRunStatus,
    },
    tasks::{TaskFilter, TaskRow},
};
