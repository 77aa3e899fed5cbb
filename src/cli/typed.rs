//! Reads a password from the terminal or from standard input.

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};
use std::io::{self, BufRead, IsTerminal, Read, Write};

/// Maximum length of a line, in bytes.
const MAX_LINE_BYTES: u64 = 4096;

/// Reads a new password: twice and hidden at a terminal, otherwise from the first line of standard input.
pub(super) fn new_password() -> Result<SecretString> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let first = unseen("New password: ")?;
    if unseen("Repeat the password: ")?.expose_secret() != first.expose_secret() {
        bail!("the passwords do not match");
    }
    Ok(first)
}

/// Returns the password as text, to send to the daemon.
pub(super) fn expose(password: &SecretString) -> &str {
    password.expose_secret()
}

fn unseen(prompt: &str) -> Result<SecretString> {
    eprint!("{prompt}");
    io::stderr().flush()?;
    let before = tcgetattr(io::stdin()).context("cannot read the terminal settings")?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
    let read = line();
    tcsetattr(io::stdin(), OptionalActions::Flush, &before)?;
    eprintln!();
    read
}

fn line() -> Result<SecretString> {
    let mut text = String::new();
    let mut input = io::BufReader::new(io::stdin().lock().take(MAX_LINE_BYTES));
    input.read_line(&mut text).context("cannot read standard input")?;
    Ok(text.trim_end_matches(['\n', '\r']).into())
}
