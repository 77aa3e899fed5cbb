//! Tools of Model Context Protocol servers: child processes and servers reached over streamable HTTP. Servers are
//! untrusted: the size of their messages is limited and the messages are parsed leniently, servers get only the values
//! in their configuration entry, and a failing server never delays the others. Each call has a timeout.
//!
//! A program that embeds this crate calls [`enter`] at the beginning of its `main`, and passes its own path to
//! [`McpConfig::guarded_by`]. On Linux, no process of a server then outlives the program, even if it is killed.
//!
//! Deliberately absent: the old SSE transport
//! (an entry that requests it is reported instead of being half-supported); a session per thread (all threads share a server's session); and the protocol itself, which `rmcp` implements. None of its
//! types leave this crate.

mod answer;
mod asks;
mod call;
mod catalogue;
mod client;
mod config;
mod config_logins;
mod discovery;
mod expand;
mod failure;
mod form;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handle;
mod http;
mod keeper;
mod lines;
mod listing;
mod login;
mod message;
mod names;
mod oauth;
mod parked;
mod passed;
mod people;
mod pipe;
mod prompt;
mod repair;
mod resource;
mod sampling;
mod schema;
mod server;
mod servers;
mod session;
mod stdio;
mod tool;
mod warden;

/// Child processes that exchange lines with the daemon, for other protocols than this crate's.
pub mod child {
    pub use crate::{
        config::inherited,
        lines::{LineReader, MAX_MESSAGE_BYTES, OutputLine},
        message::id_in_head,
        server::{ServerCommand, ServerLabel},
        stdio::{Pipes, Process, start},
    };
}

pub use config::{McpConfig, McpConfigError, UnknownKey};
pub use failure::{ServerFailure, Skipped};
pub use listing::ToolNote;
pub use login::{LoginVault, PendingLogin};
pub use names::{is_tool_name, tool_name_part};
pub use passed::{PassedServer, PassedServers, PassedTransport};
pub use servers::Servers;
pub use warden::enter;
