//! The daemon. Its start has three phases: `open.rs` finds, locks and reads everything outside of the process, `build.rs` makes
//! the parts and connects them, and `start.rs` runs them. [`Daemon::drain`] takes them down in order.

pub mod agent;
mod build;
pub mod crash_point;
mod daemon;
pub mod discover;
mod housekeeping;
pub mod logging;
pub mod machine;
pub mod missing_agents;
mod open;
pub mod run;
mod scope;
pub mod servers;
pub mod skills;
mod start;
pub mod store;

pub use daemon::Daemon;
pub use scope::Scope;
pub use start::Greeting;
