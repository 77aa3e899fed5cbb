//! Small utilities that several crates share: the clock, the lock on the home folder, and the path of this program.

pub mod clock;
pub mod home;
pub mod program;
