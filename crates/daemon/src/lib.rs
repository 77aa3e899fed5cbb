//! The daemon. It starts in three phases: `open.rs` finds, locks and reads everything outside of the process,
//! `build.rs` creates and connects the parts, and `start.rs` runs them. [`Daemon::drain`] shuts them down in order.
//!
//! Without a daemon, a command answers its requests itself: see [`offline`].

pub mod agent;
mod build;
pub mod crash_point;
mod daemon;
pub mod discover;
mod housekeeping;
pub mod logging;
pub mod logins;
pub mod machine;
pub mod missing_agents;
pub mod offline;
mod open;
pub mod run;
mod scope;
pub mod servers;
mod services;
pub mod skills;
mod start;
pub mod store;

pub use daemon::Daemon;
pub use scope::Scope;
pub use start::Greeting;
