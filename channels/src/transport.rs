//! The transport shared by all platforms: one HTTP exchange, one error type, and types that serialize calls or cache
//! their results.
//!
//! Each platform adds its base URL, its credentials and the meaning of its error codes. Deliberately absent: any
//! platform's protocol.

mod cache;
mod catch_up;
mod error;
mod exchange;
mod failure_table;
mod files;
mod token;

pub(crate) use cache::Cache;
pub(crate) use catch_up::{CatchUp, IntakeError, read_missed};
pub(crate) use error::{CallError, DEFAULT_WAIT, ErrorCase, NoCase, PlatformCase, describe};
pub(crate) use exchange::{AccountTransport, CallEffect, RawResponse, below, below_escaped, exchange, send};
#[cfg(test)]
pub(crate) use failure_table::tests::check_table;
pub(crate) use failure_table::{FailureTable, Meaning};
pub(crate) use files::{OutgoingFile, begin_fetch, check_size, fetch, save, transfer_timeout};
pub(crate) use pudu_kit::locks::{KeyedLock, KeyedLocks};
pub(crate) use token::{IssuedToken, TokenCache};
