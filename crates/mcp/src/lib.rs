//! Tools of Model Context Protocol servers: those that run as a child process and those reached over
//! streamable HTTP. Servers are strangers: what they send is bounded, what they are told is only what
//! their entry in the configuration says, and one that fails never holds the others up.
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
mod http;
mod keeper;
mod listing;
mod server;
mod servers;
mod session;
mod stdio;
mod stdout;
mod tool;
mod warden;

pub use config::{McpConfig, McpConfigError, UnknownKey};
pub use failure::{ServerFailure, Skipped};
pub use servers::Servers;
pub use warden::enter;
