//! SQL: inbox, outbox, conversations, messages, runs, approvals, the audit, the thread log and the index of recall, on
//! SQLite or PostgreSQL.
//!
//! One [`Db`], one SQL text, one set of migrations. All writes go through one writer that commits many
//! at once; a write is answered once it is durable. Reads use a small pool and see committed data.
//!
//! Deliberately absent: a clock (callers pass the time, in milliseconds since 1970; only the rows of a thread's log
//! get theirs here), policy (the messages to answer, the time of a retry), and knowledge of the JSON of others:
//! payloads, placements, handles and views are stored unchanged.

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
