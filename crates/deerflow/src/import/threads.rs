//! Imports threads with their messages and files.

use super::{Import, places::SourcePlaces, rows::UNREADABLE, user_of};
use crate::{
    channels::{self, ReadThread, missing_updates},
    checkpoint::{self, FoundState},
    error::ImportError,
    files::Selection,
    report::{ItemKind, ItemOutcome},
    time,
};
use futures_util::future::join_all;
use pudu_base::{Message, MessageId, ThreadFolder, ThreadId, ThreadLog, Update, UserId, digest};
use pudu_memory::DEFAULT_AGENT;
use pudu_store::{ImportNote, ImportedThread, RecallEntry, RecallKind, RecallScope, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;

/// Kind of the import notes, which the store writes.
const KIND: &str = "thread";
/// Note for a thread that was deleted after its import.
const DELETED: &str = "deleted in pudu after the import";
/// Number of threads that are read and then written together.
const BATCH_THREADS: usize = 64;

/// Size of the threads, in bytes, at which a batch is written.
const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// A thread's row in DeerFlow's table.
#[derive(Clone, Debug, Default)]
struct ThreadMeta {
    user: Option<String>,
    title: Option<String>,
    account: Option<String>,
    created: Option<i64>,
    updated: Option<i64>,
}

/// A thread ready to be written.
struct PreparedThread {
    thread: ImportedThread,
    note: Option<String>,
    /// Size of the thread, in bytes.
    bytes: usize,
}

impl Import<'_> {
    pub(super) async fn threads(&mut self, places: &SourcePlaces) -> Result<(), ImportError> {
        let metas = self.metas().await?;
        let ids: Vec<String> = metas.keys().cloned().collect();
        let folders = self.thread_folders()?;
        let (mut prepared, mut bytes) = (Vec::new(), 0);
        for id in &ids {
            let meta = metas.get(id).cloned().unwrap_or_default();
            let owner = owner(id, &meta, places, &folders);
            if self.is_forgotten(&owner) || self.is_forgotten(&user_of(meta.user.as_deref())) {
                continue;
            }
            if !is_id(id) {
                self.report.left(ItemKind::Thread, id, "not a valid thread ID");
            } else if let Some(thread) = self.prepare(id, meta, owner, places).await? {
                bytes += thread.bytes;
                prepared.push(thread);
            }
            if prepared.len() >= BATCH_THREADS || bytes >= BATCH_BYTES {
                self.write(std::mem::take(&mut prepared), places).await?;
                bytes = 0;
            }
        }
        self.write(prepared, places).await?;
        for (id, owners) in &folders {
            let meta = metas.get(id).cloned().unwrap_or_default();
            let owner = owner(id, &meta, places, &folders);
            if !self.is_forgotten(&owner) && !self.is_forgotten(&user_of(meta.user.as_deref())) {
                self.thread_files(id, &owner, owners).await?;
            }
        }
        Ok(())
    }

    /// Lists all threads in the database with their rows.
    async fn metas(&mut self) -> Result<BTreeMap<String, ThreadMeta>, ImportError> {
        let mut metas = BTreeMap::new();
        for table in ["checkpoints", "threads_meta"] {
            if self.reader.as_ref().is_some_and(|reader| !reader.has(table)) {
                let why =
                    "DeerFlow's database does not have this table; check the database and `postgres_schema`";
                self.report.left(ItemKind::Thread, table, why);
            }
        }
        let sql = "SELECT DISTINCT CAST(thread_id AS TEXT) AS id FROM checkpoints WHERE checkpoint_ns = ''";
        for row in &self.rows("checkpoints", sql).await? {
            metas.extend(row.text("id").map(|id| (id, ThreadMeta::default())));
        }
        let sql = "SELECT CAST(thread_id AS TEXT) AS id, CAST(user_id AS TEXT) AS user_id, CAST(display_name AS TEXT) AS title,
            CAST(metadata_json AS TEXT) AS metadata, CAST(created_at AS TEXT) AS created_at,
            CAST(updated_at AS TEXT) AS updated_at FROM threads_meta";
        for row in &self.rows("threads_meta", sql).await? {
            let Some(id) = row.text("id") else {
                self.report.left(ItemKind::Thread, "a row of threads_meta", UNREADABLE);
                continue;
            };
            let metadata: Value =
                row.text("metadata").and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let provider = metadata.get("channel_source").and_then(|source| source.get("provider")?.as_str());
            let at = |column| row.text(column).as_deref().and_then(time::millis);
            metas.insert(
                id,
                ThreadMeta {
                    user: row.text("user_id"),
                    title: row.text("title"),
                    account: provider.map(str::to_owned),
                    created: at("created_at"),
                    updated: at("updated_at"),
                },
            );
        }
        Ok(metas)
    }

    /// Reads a thread. If there is nothing to write, returns `None` and reports the outcome.
    async fn prepare(
        &mut self,
        id: &str,
        meta: ThreadMeta,
        owner: UserId,
        places: &SourcePlaces,
    ) -> Result<Option<PreparedThread>, ImportError> {
        let state = match &mut self.reader {
            Some(reader) => checkpoint::read(reader, id).await?,
            None => FoundState::Nothing,
        };
        let (channels, at) = match state {
            FoundState::Channels(channels, at) => (channels, at),
            FoundState::Nothing => (serde_json::Map::new(), None),
            FoundState::Broken(why) => {
                self.report.add(ItemKind::Thread, ItemOutcome::Left, id, Some(owner.as_str()), Some(why));
                return Ok(None);
            }
        };
        let at = at.as_deref().and_then(time::millis);
        let created = meta.created.or(at).unwrap_or(self.now);
        let read = channels::read(&channels, created);
        let title = meta.title.or(read.title.clone()).unwrap_or_default().replace('\0', "\u{fffd}");
        let account = meta.account.or_else(|| places.account(id).map(str::to_owned)).unwrap_or_default();
        let note = note(&read);
        let updates = read.updates;
        let mark = serde_json::to_string(&(&updates, &title, &owner, &account)).unwrap_or_default();
        let folder = ThreadFolder { owner, thread: ThreadId::from(id) };
        let updated = meta.updated.or(at).unwrap_or(created).max(created);
        let bytes = mark.len();
        let (digest, learnt) = (digest(mark), last_message(&updates));
        let thread =
            ImportedThread { folder, account, title, created, updated, at: 0, updates, learnt, digest };
        let known = self.note_of(KIND, id).cloned();
        if known.is_some() && self.target.db.owner(&thread.folder.thread).await?.is_none() {
            self.changed(&thread.folder, DELETED);
            return Ok(None);
        }
        match known {
            Some(known) if known.digest == thread.digest => {
                let owner = thread.folder.owner.as_str();
                self.report.add(ItemKind::Thread, ItemOutcome::Unchanged, id, Some(owner), None);
                Ok(None)
            }
            Some(known) => {
                let again = self.prepare_again(thread, &known).await?;
                Ok(again.map(|thread| PreparedThread { thread, note, bytes }))
            }
            None => Ok(Some(PreparedThread { thread, note, bytes })),
        }
    }

    /// Finds updates that DeerFlow added to a thread after its import.
    async fn prepare_again(
        &mut self,
        mut thread: ImportedThread,
        known: &ImportNote,
    ) -> Result<Option<ImportedThread>, ImportError> {
        let failed = |error: pudu_base::LogError| StoreError::Corrupt(error.to_string());
        let (seq, state) = self.target.db.load(&thread.folder.thread).await.map_err(failed)?;
        if seq != known.seq {
            self.changed(&thread.folder, "changed both in pudu and in DeerFlow since the import");
            return Ok(None);
        }
        thread.updates = missing_updates(&state, &thread.updates);
        thread.at = seq;
        Ok(Some(thread))
    }

    fn changed(&mut self, folder: &ThreadFolder, why: &str) {
        let (id, owner) = (folder.thread.as_str(), folder.owner.as_str());
        self.report.add(ItemKind::Thread, ItemOutcome::Left, id, Some(owner), Some(why.to_owned()));
    }

    /// Indexes users' private messages for recall. Runs before the thread is marked as imported: after a crash in
    /// between, indexing again changes nothing.
    async fn index_turns(
        &self,
        prepared: &[PreparedThread],
        places: &SourcePlaces,
    ) -> Result<(), ImportError> {
        let mut entries = Vec::new();
        for PreparedThread { thread, .. } in prepared {
            let id = &thread.folder.thread;
            let known = self.note_of(KIND, id.as_str()).is_some();
            if places.is_private(id.as_str(), &thread.account)
                && (known || self.target.db.owner(id).await?.is_none())
            {
                entries.extend(turns(thread));
            }
        }
        Ok(self.target.db.index(&entries).await?)
    }

    /// Writes threads in one transaction.
    async fn write(
        &mut self,
        prepared: Vec<PreparedThread>,
        places: &SourcePlaces,
    ) -> Result<(), ImportError> {
        self.index_turns(&prepared, places).await?;
        let (db, now) = (self.target.db.clone(), self.now);
        let folders: Vec<_> =
            prepared.iter().map(|one| (one.thread.folder.clone(), one.note.clone())).collect();
        let written = join_all(prepared.into_iter().map(|one| db.import_thread(one.thread, now))).await;
        for ((folder, note), written) in folders.into_iter().zip(written) {
            match written {
                Ok(_) => {
                    let (id, owner) = (folder.thread.as_str(), folder.owner.as_str());
                    self.report.add(ItemKind::Thread, ItemOutcome::Taken, id, Some(owner), note);
                }
                Err(StoreError::Conflict(_)) => self.changed(&folder, "a thread with this ID already exists"),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Lists the threads that have a folder, each with the users whose folder contains it; `None` is the top level of
    /// the home folder.
    fn thread_folders(&mut self) -> Result<BTreeMap<String, Vec<Option<String>>>, ImportError> {
        let mut found: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
        let users = self.users()?;
        for user in users.into_iter().map(Some).chain([None]) {
            for thread in self.folders(&self.threads_of(user.as_deref()))? {
                found.entry(thread).or_default().push(user.clone());
            }
        }
        Ok(found)
    }

    fn threads_of(&self, user: Option<&str>) -> std::path::PathBuf {
        let home = &self.source.folder;
        user.map_or_else(|| home.clone(), |user| home.join("users").join(user)).join("threads")
    }

    /// Copies the files of a thread to the folder of its owner.
    async fn thread_files(
        &mut self,
        id: &str,
        owner: &UserId,
        folders: &[Option<String>],
    ) -> Result<(), ImportError> {
        if !is_id(id) {
            self.report.left(ItemKind::Files, id, "not a valid thread ID");
            return Ok(());
        }
        let here = self.target.db.owner(&id.into()).await?;
        // Files of a folder without a thread are copied unchanged.
        if here.as_ref() != Some(owner) && (here.is_some() || self.note_of(KIND, id).is_some()) {
            let why = if here.is_some() { "its thread belongs to another user" } else { DELETED };
            self.report.add(
                ItemKind::Files,
                ItemOutcome::Left,
                id,
                Some(owner.as_str()),
                Some(why.to_owned()),
            );
            return Ok(());
        }
        let to = self.target.home.join("users").join(owner.as_str()).join("threads").join(id);
        for user in folders {
            for name in ["user-data", "acp-workspace"] {
                let from = self.threads_of(user.as_deref()).join(id).join(name);
                let copied = self.copier.copy(&from, &to.join(name), Selection::ALL);
                let copied = copied.map_err(|why| ImportError::io(&from, why))?;
                if copied.new + copied.same + copied.left.len() > 0 {
                    self.files(ItemKind::Files, id.to_owned(), Some(owner.as_str()), &copied);
                }
            }
        }
        Ok(())
    }
}

/// Returns the owner of a thread. In this order: its room, the user in its row, the user of its chat or topic, the only
/// user whose folder has its files (if its row has no user), and the local user.
fn owner(
    id: &str,
    meta: &ThreadMeta,
    places: &SourcePlaces,
    folders: &BTreeMap<String, Vec<Option<String>>>,
) -> UserId {
    let local = UserId::local();
    let by_metadata = meta.user.as_deref().map(|user| user_of(Some(user))).filter(|user| *user != local);
    let by_folder = || {
        let users = folders.get(id).map(Vec::as_slice).unwrap_or_default();
        match users {
            [Some(user)] if meta.user.is_none() => Some(user_of(Some(user))),
            _ => None,
        }
    };
    // A room's thread never belongs to a single user, even if DeerFlow recorded one.
    places.room(id).or(by_metadata).or_else(|| places.owner(id)).or_else(by_folder).unwrap_or(local)
}

/// Returns the user messages of a thread as index entries.
fn turns(thread: &ImportedThread) -> impl Iterator<Item = RecallEntry> {
    let scope = RecallScope { user: thread.folder.owner.clone(), agent: DEFAULT_AGENT.to_owned() };
    let said = thread.updates.iter().filter_map(|update| match update {
        Update::Message(message) => match &**message {
            Message::Human(human) if !human.text.trim().is_empty() => Some(human),
            _ => None,
        },
        _ => None,
    });
    said.map(move |human| RecallEntry {
        scope: scope.clone(),
        kind: RecallKind::Turn,
        doc: human.id.to_string(),
        thread: thread.folder.thread.to_string(),
        author: String::new(),
        at: thread.updated,
        confidence: 1.0,
        text: human.text.clone(),
    })
}

/// Returns the id of the last message in the updates. pudu's memory continues after it, because DeerFlow's memory has
/// already processed every message.
fn last_message(updates: &[Update]) -> Option<MessageId> {
    updates.iter().rev().find_map(|update| match update {
        Update::Message(message) => Some(message.id().clone()),
        _ => None,
    })
}

/// Returns whether DeerFlow accepts a name as a thread ID, which is also the name of a folder.
fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Describes the skipped parts of a thread.
fn note(read: &ReadThread) -> Option<String> {
    let skipped = read.skipped;
    let counts = [(skipped.images, "images inside messages"), (skipped.unknown, "messages of unknown kinds")];
    let mut words: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what} ({count})"))
        .collect();
    if !read.left.is_empty() {
        words.push(format!("channels unknown to pudu: {}", read.left.join(", ")));
    }
    (!words.is_empty()).then(|| format!("without {}", words.join(", ")))
}
