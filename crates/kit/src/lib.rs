//! Utilities that several crates share: the clock, and the lock on the home folder.

pub mod clock;
pub mod home;
