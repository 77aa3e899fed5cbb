//! What somebody who connects to servers sees, good ones and bad ones.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

mod asking;
mod changes;
mod config;
#[path = "../context.rs"]
mod context;
mod desk;
mod http;
mod login;
mod oauth;
mod odd;
mod stdio;
