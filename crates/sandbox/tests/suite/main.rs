//! Sandboxes as used by a daemon, started from a separate program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod attempts;
mod commands;
mod escape;
mod files;
mod floods;
mod house;
mod limits;
mod rights;
