//! A simulated Discord.
