//! Tools of Model Context Protocol servers: those that run as a child process and those reached over
//! streamable HTTP. Servers are strangers: their messages are bounded and read leniently, they get only the values of
//! their entry in the configuration, and a failing one never delays the others. Each call has a time limit.
//!
//! A program that embeds this calls [`enter`] first thing in its `main` and names itself
//! ([`McpConfig::guarded_by`]): then no process of a server outlives it, whatever ends it.
//!
//! Deliberately absent: prompts, resources, sampling and elicitation (tools are all that the agent uses), the
//! old SSE transport and OAuth (an entry that asks for them is reported, not half-served), a session for each
//! thread (all threads share a server's one session), and the protocol itself: `rmcp` speaks it, and no type
//! of it leaves this crate.

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
