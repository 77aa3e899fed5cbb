//! One parser of shell scripts, and two policies on its tree: dangerous commands, and the programs that a passport
//! allows.
//!
//! The parser reads any text, broken scripts included, because a policy has to see through them. It also notes the
//! first construct whose effect is uncertain. [`danger`] ignores this note; [`passport`] denies a script that has one.
//!
//! Deliberately absent: expansion and execution.

pub mod danger;
pub mod passport;
mod programs;
mod script;
mod syntax;
mod word;
mod wrapped;

pub use programs::commands;
pub use syntax::UnreadScript;

/// Maximum length of a script, in bytes; a person has to look at a longer one.
pub const MAX_SCRIPT_BYTES: usize = 10_000;
/// Maximum depth of command substitutions; a person has to look at deeper ones.
const MAX_SUBSTITUTION_DEPTH: usize = 32;
/// Shells, which run their text arguments.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];
