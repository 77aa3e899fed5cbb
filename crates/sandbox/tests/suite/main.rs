//! Sandboxes as a daemon uses them, made of a program of their own.
#![allow(clippy::unwrap_used, reason = "tests")]

mod attempts;
mod commands;
mod escape;
mod files;
mod floods;
mod house;
mod limits;
mod rights;
