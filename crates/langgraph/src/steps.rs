//! Steps of a thread: the rows of its log that belong together. Each step ends with a checkpoint.

use pudu_base::{Message, RunId, Seq, Update};
use pudu_store::LogEntry;
use std::collections::HashSet;

/// Kind of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RowKind {
    Human,
    Assistant,
    Tools,
    /// A thread restored by this run.
    Restore(RunId),
}

impl RowKind {
    /// Returns the kind of a row; `None` if it belongs to the previous step.
    fn update(update: &Update) -> Option<Self> {
        let Update::Message(message) = update else { return None };
        match &**message {
            Message::Human(_) => Some(Self::Human),
            Message::Assistant(_) => Some(Self::Assistant),
            Message::Tool(_) => Some(Self::Tools),
            Message::Reminder(_) => None,
        }
    }
}

/// Finds the steps of a thread, row by row. Results that arrived together are one step, and so are messages that were
/// sent together: the step ends after the last one.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// The newest step, and its end so far.
    newest: Option<(RowKind, Seq)>,
    /// The ends of the earlier steps, oldest first.
    ends: Vec<Seq>,
}

impl Steps {
    /// Finds the steps in rows that are given newest first.
    #[must_use]
    pub fn from_rows(newest_first: &[LogEntry]) -> Self {
        let (mut steps, restores) = (Self::default(), restores(newest_first));
        for entry in newest_first.iter().rev() {
            steps.push(
                entry.seq,
                &entry.update,
                restores.contains(&(&entry.run, entry.at)).then_some(&entry.run),
            );
        }
        steps
    }

    /// Adds rows that a run wrote in one commit. `seq` is the position of the last one.
    pub fn commit(&mut self, run: &RunId, seq: Seq, updates: &[Update]) {
        let restored = updates.iter().any(|update| matches!(update, Update::Restore(_))).then_some(run);
        let first = seq + 1 - Seq::try_from(updates.len()).unwrap_or(0);
        (first..).zip(updates).for_each(|(seq, update)| self.push(seq, update, restored));
    }

    fn push(&mut self, seq: Seq, update: &Update, restored: Option<&RunId>) {
        let kind = restored.map(|run| RowKind::Restore(run.clone())).or_else(|| RowKind::update(update));
        // Progress of tool calls does not move the end of a step.
        let is_apart = matches!(
            update,
            Update::Begin(_) | Update::Interrupt(_) | Update::Suspend(_) | Update::Task { .. }
        );
        match (kind, &mut self.newest) {
            (None, Some((_, end))) if !is_apart => *end = seq,
            (Some(kind), Some((newest, end))) if kind == *newest && kind != RowKind::Assistant => *end = seq,
            (Some(kind), newest) => {
                let before = newest.replace((kind, seq));
                self.ends.extend(before.map(|(_, end)| end));
            }
            (None, _) => {}
        }
    }

    /// Returns the end of the newest step, if there is one. Rows about the progress of tool calls do not count.
    #[must_use]
    pub fn newest(&self) -> Option<Seq> {
        self.newest.as_ref().map(|(_, end)| *end)
    }

    /// Returns the end of the step before the newest, if there is one.
    #[must_use]
    pub fn parent(&self) -> Option<Seq> {
        self.ends.last().copied()
    }

    /// Returns the ends of all steps, newest first. The newest row always counts as the end of its step.
    #[must_use]
    pub fn ends(&self, newest: Seq) -> Vec<Seq> {
        let newest = self.newest.iter().map(|_| newest);
        newest.chain(self.ends.iter().rev().copied()).collect()
    }
}

/// Returns the runs that restored a thread, each with its time. All rows of one run at one time form a step.
#[must_use]
pub fn restores(rows: &[LogEntry]) -> HashSet<(&RunId, i64)> {
    let restores = rows.iter().filter(|entry| matches!(entry.update, Update::Restore(_)));
    restores.map(|entry| (&entry.run, entry.at)).collect()
}
