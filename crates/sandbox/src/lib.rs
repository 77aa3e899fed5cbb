//! Where the agent's commands run and its files live.
