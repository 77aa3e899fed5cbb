//! The daemon as people and platforms see it: the real binary against simulated platforms.
#![allow(unreachable_pub, clippy::str_to_string, clippy::needless_pass_by_value, reason = "tests")]

mod api;
mod busy;
mod chat;
mod commands;
mod crash;
mod files;
mod house;
mod lifecycle;
mod postgres;
mod talk;
mod tidy;
mod trouble;
