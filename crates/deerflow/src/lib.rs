//! Imports a DeerFlow home without changing it.
//!
//! An item is either written in one transaction together with a note of its import, or it is a file that exists or does
//! not, so an interrupted import resumes without repeating anything. An item that cannot be imported is listed in the
//! [`ImportReport`] and does not stop the import.
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
mod row;
mod time;
mod value;

pub use database::SourceDatabase;
pub use error::ImportError;
pub use files::read_plain;
pub use home::DeerFlowHome;
pub use import::{ImportTarget, Place, import};
pub use messages::{read_failure, read_report};
pub use report::{ImportReport, ItemKind, ItemOutcome, ReportItem};
