//! Small utilities that several crates share: the clock, blocking work, atomic writes, locks by key, the lock on the home folder, and
//! the path of this program.

mod blocking;
pub mod clock;
pub mod file;
pub mod home;
pub mod locks;
pub mod program;

pub use blocking::blocking;
