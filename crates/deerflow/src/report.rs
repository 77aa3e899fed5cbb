//! Report of imported, unchanged and skipped items, with reasons.

use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write};

/// Kind of an imported item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The configuration.
    Config,
    /// The file of MCP servers and skill switches.
    Extensions,
    /// A login account.
    Account,
    /// A platform identity of a user.
    Identity,
    /// A user's memory.
    Memory,
    /// A thread with its messages.
    Thread,
    /// The files of a thread.
    Files,
    /// A conversation.
    Conversation,
    /// A custom agent, or the default agent's SOUL.md.
    Agent,
    /// A skill.
    Skill,
    /// Feedback on an answer.
    Feedback,
    /// A scheduled task.
    Schedule,
    /// Everything else.
    Other,
}

/// Outcome of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// The item was imported.
    Taken,
    /// The item existed already.
    Unchanged,
    /// The item was skipped.
    Left,
}

/// One item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ReportItem {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Result of its import.
    pub outcome: ItemOutcome,
    /// ID of the item, or its path in the home.
    pub item: String,
    /// User that owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A reason or a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Outcomes of all items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// All items.
    pub items: Vec<ReportItem>,
}

impl ImportReport {
    /// Adds an item.
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

    /// Adds a skipped item with the reason.
    pub fn left(&mut self, kind: ItemKind, item: impl Into<String>, why: impl Into<String>) {
        self.add(kind, ItemOutcome::Left, item, None, Some(why.into()));
    }

    /// Counts the items with an outcome.
    #[must_use]
    pub fn count(&self, outcome: ItemOutcome) -> usize {
        self.items.iter().filter(|item| item.outcome == outcome).count()
    }

    /// Formats the report as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let head = if self.dry_run { "Dry run; nothing was written. An import would give:\n" } else { "" };
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
        let mut table = format!("{:<14}{:>10}{:>12}{:>10}\n", "", "IMPORTED", "UNCHANGED", "SKIPPED");
        for (kind, [taken, unchanged, left]) in counts {
            let name = serde_json::to_value(kind).ok();
            let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
            let _ = writeln!(table, "{name:<14}{taken:>10}{unchanged:>12}{left:>10}");
        }
        table
    }
}

/// Formats one item as a line without control characters.
fn line(item: &ReportItem) -> String {
    let word = match item.outcome {
        ItemOutcome::Taken => "imported",
        ItemOutcome::Unchanged => "unchanged",
        ItemOutcome::Left => "skipped",
    };
    let user = item.user.as_ref().map(|user| format!(" of {user}")).unwrap_or_default();
    let note = item.note.as_deref().unwrap_or_default();
    let text = format!("{word}  {}{user}: {note}", item.item);
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
