//! The two processes between the daemon and a command: this program, started again under another name.
//!
//! [`enter`] is called first in `main`. In a normal start it returns immediately. Started as `outer`, it leaves the
//! daemon's namespaces and starts `inner`, which is process 1 of the new ones: it builds the file system of the
//! command, drops all privileges, starts the command, reaps its remaining processes, and kills everything when it ends.
//! It also ends when the control socket is closed, so that nothing outlives a killed daemon.
//!
//! Deliberately absent: `unsafe`, threads, and any input from the command. The plan is received over the socket as one
//! message, before the command exists.

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

/// Becomes a sandbox process if this program was started as one; otherwise returns immediately. Must be called first in
/// `main`, with a single thread and no open files.
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
