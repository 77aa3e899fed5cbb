//! Collects findings and prints them while other checks are still running.

use pudu_channels::{Check, CheckResult};
use pudu_net::scrub;
use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write},
};

/// The findings so far, by group.
pub(super) struct Findings {
    pub(super) groups: Vec<(String, Vec<Check>)>,
    /// Whether findings are printed as they are added.
    aloud: bool,
    /// Whether the last line names the pending check.
    waiting: bool,
}

impl Findings {
    pub(super) fn new(aloud: bool) -> Self {
        Self { groups: Vec::new(), aloud, waiting: false }
    }

    /// Adds findings to a group. Starts a new group if the name differs from the previous one.
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

    /// Shows the pending check at a terminal until its result is available.
    pub(super) fn wait_for(&mut self, group: &str) {
        if io::stdout().is_terminal() {
            self.waiting = true;
            self.write(&format!("  …     waiting for {group}"));
        }
    }

    fn write(&self, words: &str) {
        if self.aloud {
            let mut out = io::stdout();
            // A closed pipe is not a failure: the exit code still reports the result.
            out.write_all(words.as_bytes()).and_then(|()| out.flush()).ok();
        }
    }
}

/// Formats one line per check, and a second line with the fix of a failed check.
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
