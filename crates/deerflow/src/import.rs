//! The import, kind by kind: people first, because everything else is theirs.

mod agents;
mod memory;
mod people;
mod places;
mod rows;
mod threads;

use crate::{
    database::{SourceDatabase, SourceReader},
    error::ImportError,
    files::Copier,
    home::DeerFlowHome,
    report::{ImportReport, ItemKind},
};
use pudu_base::{UserId, digest};
use pudu_memory::MemoryOptions;
use pudu_store::{Db, FORGOTTEN_NOTE, ImportNote};
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
};

/// A place's conversation, as pudu names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The conversation's key.
    pub key: String,
    /// The message with which its chain begins, where answers to messages continue it.
    pub message: Option<String>,
    /// The room whose the thread is, unless one person talks there alone or began a chain.
    pub room: Option<UserId>,
}

/// Where things go.
#[derive(Clone)]
pub struct ImportTarget {
    /// The store.
    pub db: Db,
    /// The home.
    pub home: PathBuf,
    /// Numbers that memory works by.
    pub memory: MemoryOptions,
    /// Names the conversation of an account's chat, and of a topic in it.
    pub place: fn(account: &str, chat: &str, topic: Option<&str>) -> Place,
    /// Whether no file is written. The store is then a copy of the real one.
    pub dry_run: bool,
}

/// An import at work.
struct Import<'a> {
    source: &'a DeerFlowHome,
    target: &'a ImportTarget,
    reader: Option<SourceReader>,
    copier: Copier,
    notes: HashMap<(String, String), ImportNote>,
    report: ImportReport,
    /// Users of whom it was told that they were forgotten.
    told: HashSet<UserId>,
    now: i64,
}

/// Moves everything in. `now` is in milliseconds since 1970.
///
/// # Errors
/// When DeerFlow's database or pudu's store fail, or DeerFlow writes meanwhile.
pub async fn import(
    source: &DeerFlowHome,
    database: Option<&SourceDatabase>,
    target: &ImportTarget,
    now: i64,
) -> Result<ImportReport, ImportError> {
    let reader = match database {
        Some(database) => Some(SourceReader::open(database).await?),
        None => None,
    };
    let notes = target.db.import_notes().await?.into_iter();
    let mut import = Import {
        source,
        target,
        reader,
        copier: Copier::new(target.home.join("tmp").join("import"), target.dry_run),
        notes: notes.map(|note| ((note.kind.clone(), note.item.clone()), note)).collect(),
        report: ImportReport { dry_run: target.dry_run, items: Vec::new() },
        told: HashSet::new(),
        now,
    };
    import.accounts().await?;
    let places = import.places().await?;
    import.identities(&places).await?;
    import.memories().await?;
    import.threads(&places).await?;
    import.conversations(places).await?;
    import.feedback().await?;
    import.agents()?;
    import.skills()?;
    import.others().await?;
    if let Some(reader) = import.reader.take() {
        let unchanged = reader.check_unchanged();
        reader.close().await;
        unchanged?;
    }
    Ok(import.report)
}

impl Import<'_> {
    fn note_of(&self, kind: &str, item: &str) -> Option<&ImportNote> {
        self.notes.get(&(kind.to_owned(), item.to_owned()))
    }

    /// Returns whether a user was forgotten here, which is told once.
    fn is_forgotten(&mut self, user: &UserId) -> bool {
        let mark = digest(user.as_str());
        let forgotten = self.note_of(FORGOTTEN_NOTE, &mark).is_some();
        if forgotten && self.told.insert(user.clone()) {
            self.report.left(
                ItemKind::Other,
                user.as_str(),
                "this user was forgotten here, and is not brought back",
            );
        }
        forgotten
    }

    async fn note(&self, kind: &str, item: &str, digest: &str, done: bool) -> Result<(), ImportError> {
        let (kind, item, digest) = (kind.to_owned(), item.to_owned(), digest.to_owned());
        let note = ImportNote { kind, item, digest, seq: 0, done };
        Ok(self.target.db.note_import(note, self.now).await?)
    }

    /// Names what pudu has no place for.
    async fn others(&mut self) -> Result<(), ImportError> {
        let tables = [
            ("runs", "SELECT COUNT(*) FROM runs", "their messages are in the threads"),
            ("run_events", "SELECT COUNT(*) FROM run_events", "their messages are in the threads"),
            ("scheduled_tasks", "SELECT COUNT(*) FROM scheduled_tasks", "pudu has no scheduled tasks"),
            ("agents", "SELECT COUNT(*) FROM agents", "export them to files in DeerFlow first"),
        ];
        for (table, sql, what) in tables {
            let Some(reader) = &mut self.reader else { break };
            let count = reader.count(table, sql).await?;
            if count > 0 {
                self.report.left(ItemKind::Other, table, format!("rows: {count}; {what}"));
            }
        }
        let files = [
            ("USER.md", "it is about all users; let each tell the agent, or put it into SOUL.md"),
            ("integrations", "their secrets and tools are DeerFlow's own"),
        ];
        for (name, why) in files {
            if self.source.folder.join(name).exists() {
                self.report.left(ItemKind::Other, name, why);
            }
        }
        Ok(())
    }
}

/// Returns the user of an id as DeerFlow has it; the local one of none.
fn user_of(raw: Option<&str>) -> UserId {
    raw.and_then(|raw| UserId::of(raw).ok()).unwrap_or_default()
}
