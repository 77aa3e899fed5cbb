//! Imports a DeerFlow home, which is not changed.
//!
//! Each item is written in one transaction with a note of its import, or is a file that exists or not: an interrupted
//! import resumes and repeats nothing. An item that cannot be imported is an entry of the [`ImportReport`] and stops
//! nothing else.
//!
//! Deliberately absent: the configuration, which the daemon reads itself, and the verification of passwords.

mod channels;
mod checkpoint;
mod database;
mod error;
mod files;
mod home;
mod import;
mod messages;
mod report;
mod time;
mod value;

pub use database::SourceDatabase;
pub use error::ImportError;
pub use files::read_plain;
pub use home::DeerFlowHome;
pub use import::{ImportTarget, Place, import};
pub use messages::{read_failure, read_report};
pub use report::{ImportReport, ItemKind, ItemOutcome, ReportItem};
