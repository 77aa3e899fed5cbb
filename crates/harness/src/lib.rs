//! The agent's loop: one [`run`] takes a thread from a question to an answer.
//!
//! What is deliberately absent: any platform, HTTP, SQL or provider. The loop knows the ports of
//! `pudu-base` alone, so every test of it runs in milliseconds.

mod agent;
pub mod middleware;
mod replay;
mod retry;
mod run;
mod steering;
mod turn;

pub use agent::{Agent, Bounds, Toolbox, lead_prompt};
pub use middleware::{Gate, Middleware, lead_chain};
pub use replay::{Activity, Gap, Item, Progress, Reader, Replay};
pub use retry::Retry;
pub use run::run;
pub use steering::{Slot, Steering};
pub use turn::Turn;
