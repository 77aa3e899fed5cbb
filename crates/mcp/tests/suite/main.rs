//! What somebody who connects to servers sees, good ones and bad ones.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

mod config;
mod desk;
mod http;
mod odd;
mod stdio;
