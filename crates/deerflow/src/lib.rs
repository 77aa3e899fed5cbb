//! Moving in from DeerFlow: its home is read, and nothing in it is changed.
//!
//! Each thing is written in one step together with the note that it was, or is a file that is there or not: whoever is
//! killed begins again and does nothing twice. A thing that cannot be taken is a line of the [`ImportReport`] and stops
//! nothing else.
//!
//! Deliberately absent: the configuration, which the daemon reads itself, and passwords' meaning.

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
