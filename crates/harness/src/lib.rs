//! The agent's loop: one [`run`] takes a thread from a question to an answer.
//!
//! Deliberately absent: any platform, HTTP, SQL or provider. The loop knows the ports of `pudu-base` alone,
//! so every test of it runs in milliseconds.

mod agent;
mod deferred;
#[cfg(test)]
mod fixture;
mod memory;
pub mod middleware;
mod replay;
mod results;
mod retry;
mod run;
mod skills;
mod steering;
pub mod subagent;
mod turn;

pub use agent::{Agent, Bounds, Nobody, Toolbox, lead_prompt};
pub use deferred::{Catalog, SEARCH, searching};
pub use memory::Memory;
pub use middleware::{
    CallFrequency, Dangerous, Gate, LoopRules, Middleware, Policy, SkillPolicy, lead_chain, subagent_chain,
};
pub use replay::{Activity, Asked, Gap, Item, Progress, Reader, Replay, Working};
pub use results::{ResultRules, Results};
pub use retry::{RestRules, Retry};
pub use run::run;
pub use skills::skills_prompt;
pub use steering::{Slot, Steering};
pub use turn::Turn;
