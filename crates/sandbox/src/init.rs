//! The two processes between the daemon and a command: this very program, started again under another name.
//!
//! [`enter`] is what `main` calls first. Started as usual it returns at once. Started as `outer`, it leaves the
//! daemon's namespaces and starts `inner`, which is process 1 of the new ones: it builds the file system that
//! the command will see, gives up every right, starts the command, collects its remaining processes, and takes
//! everything with it when it ends. The end of the control socket ends it too, so that nothing outlives a
//! daemon that was killed.
//!
//! Deliberately absent: `unsafe`, threads, and anything that the command could have written. The plan
//! comes over the socket in one piece, before the command exists.

mod error;
mod inner;
mod loopback;
mod mountinfo;
mod outer;
mod privileges;
mod quota;
mod reap;
mod root;
mod seccomp;
mod usage;
pub(crate) mod wire;
mod withdraw;

pub(crate) use error::InitError;
pub(crate) use withdraw::NOBODY_ELSE;
pub use withdraw::withdraw;

use std::{env, process};
pub(crate) use wire::NAME;

/// Becomes a process of a sandbox if this program was started as one; otherwise returns at once. Has to be the
/// first thing that `main` does: one thread, nothing opened.
pub fn enter() {
    let mut args = env::args_os();
    if args.next().is_none_or(|name| name != NAME) {
        return;
    }
    let args: Vec<String> = args.filter_map(|arg| arg.into_string().ok()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    process::exit(match args.as_slice() {
        ["outer", wish @ ..] => outer::main(wish),
        ["inner"] => inner::main(),
        _ => 2,
    })
}
