//! Imports one kind of item at a time, beginning with users, because everything else belongs to them.

mod agents;
mod memory;
mod people;
mod places;
mod rows;
mod schedules;
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

/// A conversation in pudu's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The conversation's key.
    pub key: String,
    /// ID of the first message in the chain, on platforms with reply chains.
    pub message: Option<String>,
    /// Room that owns the thread; `None` if one user owns it.
    pub room: Option<UserId>,
}

/// Target of an import.
#[derive(Clone)]
pub struct ImportTarget {
    /// The store.
    pub db: Db,
    /// The home.
    pub home: PathBuf,
    /// Options of the memory.
    pub memory: MemoryOptions,
    /// Returns the conversation of an account's chat, or of a topic in it.
    pub place: fn(account: &str, chat: &str, topic: Option<&str>) -> Place,
    /// Whether this is a dry run, which writes nothing. `db` is then a copy of the real store.
    pub dry_run: bool,
}

/// An import in progress.
struct Import<'a> {
    source: &'a DeerFlowHome,
    target: &'a ImportTarget,
    reader: Option<SourceReader>,
    copier: Copier,
    notes: HashMap<(String, String), ImportNote>,
    report: ImportReport,
    /// Users already reported as deleted.
    reported_forgotten: HashSet<UserId>,
    now: i64,
}

/// Imports everything. `now` is in milliseconds since 1970.
///
/// # Errors
/// When DeerFlow's database or pudu's store fails, or DeerFlow is running.
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
        reported_forgotten: HashSet::new(),
        now,
    };
    import.accounts().await?;
    let places = import.places().await?;
    import.identities(&places).await?;
    import.memories().await?;
    import.threads(&places).await?;
    import.conversations(places).await?;
    import.feedback().await?;
    import.schedules().await?;
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

    /// Returns whether a user was deleted in pudu. Reports each such user once.
    fn is_forgotten(&mut self, user: &UserId) -> bool {
        let mark = digest(user.as_str());
        let forgotten = self.note_of(FORGOTTEN_NOTE, &mark).is_some();
        if forgotten && self.reported_forgotten.insert(user.clone()) {
            self.report.left(
                ItemKind::Other,
                user.as_str(),
                "forgotten with `pudu forget`; not imported again",
            );
        }
        forgotten
    }

    async fn note(&self, kind: &str, item: &str, digest: &str, done: bool) -> Result<(), ImportError> {
        let (kind, item, digest) = (kind.to_owned(), item.to_owned(), digest.to_owned());
        let note = ImportNote { kind, item, digest, seq: 0, done };
        Ok(self.target.db.note_import(note, self.now).await?)
    }

    /// Reports items without an equivalent in pudu.
    async fn others(&mut self) -> Result<(), ImportError> {
        let tables = [
            ("runs", "SELECT COUNT(*) FROM runs", "their messages are imported with the threads"),
            ("run_events", "SELECT COUNT(*) FROM run_events", "their messages are imported with the threads"),
            (
                "scheduled_task_runs",
                "SELECT COUNT(*) FROM scheduled_task_runs",
                "their messages are imported with the threads",
            ),
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
            (
                "USER.md",
                "it applies to all users; copy it to SOUL.md, or let each user repeat it to the agent",
            ),
            ("integrations", "specific to DeerFlow"),
        ];
        for (name, why) in files {
            if self.source.folder.join(name).exists() {
                self.report.left(ItemKind::Other, name, why);
            }
        }
        Ok(())
    }
}

/// Returns the user for a DeerFlow ID, or the local user if there is none.
fn user_of(raw: Option<&str>) -> UserId {
    raw.and_then(|raw| UserId::from_raw(raw).ok()).unwrap_or_default()
}
