//! Places of agents.

/// Where an agent is kept, and so whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPlace {
    /// In the folder of the local user: it is everybody's.
    Shared,
    /// In the folder of another user: it is that user's.
    Own,
    /// Where DeerFlow kept agents before people had their own: it is everybody's, and is not changed there.
    Legacy,
}
