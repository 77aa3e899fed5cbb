//! The daemon as people and platforms see it: the real binary against simulated platforms.
#![allow(unreachable_pub, clippy::str_to_string, clippy::needless_pass_by_value, reason = "tests")]

mod crash;
mod house;
mod talk;
mod tidy;
