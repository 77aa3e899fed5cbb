//! The pudu daemon.

#[allow(dead_code, unused_imports, reason = "the daemon that uses them is being built")]
mod config;
mod cli {
    #[allow(dead_code, reason = "the command line that calls them is being built")]
    pub(crate) mod config;
}

fn main() {}
