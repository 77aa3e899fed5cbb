//! Small utilities that several crates share: the clock, blocking work, atomic writes, locks by key, the lock on the
//! home folder, the path of this program, and the simulation of a thread.

pub mod blocking;
pub mod clock;
pub mod file;
pub mod home;
pub mod locks;
pub mod program;
pub mod simulation;

pub use blocking::blocking;
