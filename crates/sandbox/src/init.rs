//! The two processes between the daemon and a command. Both are this program, started again under another name.
//!
//! [`enter`] is called first in `main` and returns immediately in a normal start. The process `outer` leaves the
//! daemon's namespaces and starts `inner`, which is process 1 of the new ones: it builds the command's file system,
//! drops all privileges, starts the command, and reaps processes. When it ends, the kernel kills everything else in the
//! sandbox. It also ends when the control socket is closed, so nothing outlives a killed daemon.
//!
//! Deliberately absent: `unsafe`, threads, and any input from the command. The plan arrives over the socket as one
//! message before the command exists.

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
pub(crate) use withdraw::COMMAND_USER;
pub use withdraw::withdraw;

use std::{env, process};
pub(crate) use wire::NAME;

/// Becomes a sandbox process if this program was started as one; otherwise returns immediately. Must be called first in
/// `main`, while there is a single thread and no open file.
pub fn enter() {
    let mut args = env::args_os();
    if args.next().is_none_or(|name| name != NAME) {
        return;
    }
    let args: Vec<String> = args.filter_map(|arg| arg.into_string().ok()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    process::exit(match args.as_slice() {
        ["outer", outer_args @ ..] => outer::main(outer_args),
        ["inner"] => inner::main(),
        _ => 2,
    })
}
