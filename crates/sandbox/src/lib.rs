//! Where the agent's commands run and its files live.
//!
//! [`Local`] is the simplest that is safe: each thread has a folder of its own, reached only through a
//! directory handle that the kernel confines (`openat2` with `RESOLVE_BENEATH` where it exists), so that
//! no path and no symlink leads out. There is no shell unless the operator allows the host's.
//! What is deliberately absent: filtering commands by their text, which protects nobody.

mod capture;
mod files;
mod local;
mod shell;

pub use local::{Local, ROOT};
