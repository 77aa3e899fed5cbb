//! Where agents are stored.

/// Where an agent is stored, which determines its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPlace {
    /// In the folder of the local user, shared with all users.
    Shared,
    /// In the folder of another user, its owner.
    Own,
    /// In DeerFlow's folder from before users had agents: shared with all users, and read-only.
    Legacy,
}
