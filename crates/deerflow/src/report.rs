//! The report: what was taken, what was there already, and what was left and why.

use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write};

/// Kind of thing that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The configuration.
    Config,
    /// The file of MCP servers and switches.
    Extensions,
    /// A person who signs in.
    Account,
    /// A person of a platform who is a user.
    Identity,
    /// A user's memory.
    Memory,
    /// A thread with its messages.
    Thread,
    /// The files of a thread.
    Files,
    /// A place's conversation.
    Conversation,
    /// A custom agent, or the soul of the default one.
    Agent,
    /// A skill.
    Skill,
    /// A judgement on an answer.
    Feedback,
    /// Everything else.
    Other,
}

/// Outcome of a thing's move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// It is in pudu now.
    Taken,
    /// It was there already.
    Unchanged,
    /// It was not taken.
    Left,
}

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ReportItem {
    /// Its kind.
    pub kind: ItemKind,
    /// What became of it.
    pub outcome: ItemOutcome,
    /// Its id, or its place in the home.
    pub item: String,
    /// The user whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The reason, or what is worth knowing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What became of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Each thing.
    pub items: Vec<ReportItem>,
}

impl ImportReport {
    /// Adds a thing.
    pub fn add(
        &mut self,
        kind: ItemKind,
        outcome: ItemOutcome,
        item: impl Into<String>,
        user: Option<&str>,
        note: Option<String>,
    ) {
        let user = user.map(str::to_owned);
        self.items.push(ReportItem { kind, outcome, item: item.into(), user, note });
    }

    /// Adds a thing that is left, with the reason.
    pub fn left(&mut self, kind: ItemKind, item: impl Into<String>, why: impl Into<String>) {
        self.add(kind, ItemOutcome::Left, item, None, Some(why.into()));
    }

    /// Counts the things of an outcome.
    #[must_use]
    pub fn count(&self, outcome: ItemOutcome) -> usize {
        self.items.iter().filter(|item| item.outcome == outcome).count()
    }

    /// Writes it for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let head = if self.dry_run { "Nothing was written. It would be:\n" } else { "" };
        text.push_str(head);
        text.push_str(&self.table());
        let lines: Vec<String> = self.items.iter().filter(|item| item.note.is_some()).map(line).collect();
        for line in &lines {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n{line}");
        }
        text
    }

    fn table(&self) -> String {
        let mut counts: BTreeMap<ItemKind, [usize; 3]> = BTreeMap::new();
        for item in &self.items {
            let row = counts.entry(item.kind).or_default();
            if let Some(count) = row.get_mut(item.outcome as usize) {
                *count += 1;
            }
        }
        let mut table = format!("{:<14}{:>8}{:>12}{:>8}\n", "", "TAKEN", "UNCHANGED", "LEFT");
        for (kind, [taken, unchanged, left]) in counts {
            let name = serde_json::to_value(kind).ok();
            let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
            let _ = writeln!(table, "{name:<14}{taken:>8}{unchanged:>12}{left:>8}");
        }
        table
    }
}

/// Writes one thing in a line; nothing in it moves the cursor.
fn line(item: &ReportItem) -> String {
    let word = match item.outcome {
        ItemOutcome::Taken => "took",
        ItemOutcome::Unchanged => "same",
        ItemOutcome::Left => "left",
    };
    let user = item.user.as_ref().map(|user| format!(" of {user}")).unwrap_or_default();
    let note = item.note.as_deref().unwrap_or_default();
    let text = format!("{word}  {}{user}: {note}", item.item);
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
