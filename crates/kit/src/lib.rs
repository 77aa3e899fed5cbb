//! Small utilities that several crates share: the clock, work that blocks, the lock on the home folder, the path of this
//! program, and the simulation of a thread.

pub mod blocking;
pub mod clock;
pub mod home;
pub mod program;
pub mod simulation;
