//! The agent, put together: embed this.
