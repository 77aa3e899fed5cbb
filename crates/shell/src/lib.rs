//! A parser of shell scripts, and two policies that use its result: one finds dangerous commands, the other checks for
//! the programs that a passport allows.
//!
//! The parser accepts most texts, even invalid scripts, because a policy has to examine those too. It also notes the
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

/// Maximum length of a script, in bytes. Longer ones are refused or left to a user's decision.
pub const MAX_SCRIPT_BYTES: usize = 10_000;
/// Maximum depth of command substitutions. Deeper ones are refused or left to a user's decision.
const MAX_SUBSTITUTION_DEPTH: usize = 32;
/// Shells, which can run a script given as an argument.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "dash", "ash", "ksh", "fish"];
