//! Tools of Model Context Protocol servers: child processes and servers reached over streamable HTTP. Servers are
//! untrusted: their messages are bounded and parsed leniently, they get only the values of their entry in the
//! configuration, and a failing one never delays the others. Each call has a time limit.
//!
//! A program that embeds this crate calls [`enter`] first thing in its `main` and names itself
//! ([`McpConfig::guarded_by`]): then no process of a server outlives it, even if it is killed.
//!
//! Deliberately absent: prompts, resources, sampling and elicitation (the agent only uses tools), the old SSE transport
//! and OAuth (an entry that requests them is reported, not half-served), a session per thread (all threads share one
//! session of a server), and the protocol itself: `rmcp` implements it, and none of its types leave this crate.

mod answer;
mod config;
mod expand;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod http;
mod keeper;
mod lines;
mod listing;
mod message;
mod names;
mod pipe;
mod repair;
mod schema;
mod server;
mod servers;
mod session;
mod stdio;
mod tool;
mod warden;

pub use config::{McpConfig, McpConfigError, UnknownKey};
pub use failure::{ServerFailure, Skipped};
pub use listing::ToolNote;
pub use names::{is_tool_name, tool_name_part};
pub use servers::Servers;
pub use warden::enter;
