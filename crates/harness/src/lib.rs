//! The agent's loop, its middlewares, and its runs.
