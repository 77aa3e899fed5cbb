//! Findings, as a person reads them while the rest is being looked at.

use pudu_channels::{Check, CheckResult};
use pudu_client::net::scrub;
use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};

/// The findings so far, by group.
pub(super) struct Findings {
    pub(super) groups: Vec<(String, Vec<Check>)>,
    /// Whether they are written as they come.
    aloud: bool,
    /// Whether the last line says what is waited for.
    waiting: bool,
}

impl Findings {
    pub(super) fn new(aloud: bool) -> Self {
        Self { groups: Vec::new(), aloud, waiting: false }
    }

    /// Adds what was found to its group, which is begun where it is another one than before.
    pub(super) fn add(&mut self, group: &str, checks: Vec<Check>) {
        let clear = if std::mem::take(&mut self.waiting) { "\r\x1b[K" } else { "" };
        if checks.is_empty() {
            return self.write(clear);
        }
        let words = lines(&checks);
        match self.groups.last_mut().filter(|(name, _)| name == group) {
            Some((_, before)) => {
                before.extend(checks);
                self.write(&format!("{clear}{words}"));
            }
            None => {
                self.groups.push((group.to_owned(), checks));
                self.write(&format!("{clear}{group}\n{words}"));
            }
        }
    }

    /// Shows the pending check at a terminal, until its result is there.
    pub(super) fn wait_for(&mut self, group: &str) {
        if io::stdout().is_terminal() {
            self.waiting = true;
            self.write(&format!("  …     waiting for {group}"));
        }
    }

    fn write(&self, words: &str) {
        if self.aloud {
            let mut out = io::stdout();
            // A reader that has gone wants no more; the exit code tells how it went all the same.
            out.write_all(words.as_bytes()).and_then(|()| out.flush()).ok();
        }
    }
}

/// One line a check, and one more for the mend of what fails.
pub(super) fn lines(checks: &[Check]) -> String {
    let mut out = String::new();
    for Check { what, found } in checks {
        // Writing to a String cannot fail.
        let _ = match found {
            CheckResult::Good(how) => writeln!(out, "  ok    {what}: {how}"),
            CheckResult::Poor { why, help } => writeln!(out, "  poor  {what}: {why}\n        help: {help}"),
            CheckResult::Bad { why, help } => writeln!(out, "  BAD   {what}: {why}\n        help: {help}"),
        };
    }
    scrub::hide(&out).into_owned()
}
