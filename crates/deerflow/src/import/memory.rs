//! Imports users' memory: files are copied unchanged, version 1.0 is converted to 2.0 as everywhere in pudu, and facts
//! are indexed for recall.

use super::Import;
use crate::{
    error::ImportError,
    files::{self, Selection},
    report::{ItemKind, ItemOutcome},
};
use pudu_base::UserId;
use pudu_memory::{MemoryError, MemoryScope, MemoryStore};
use pudu_store::{RecallEntry, RecallKind, RecallScope};
use std::path::{Component, Path, PathBuf};

/// Kind of the import notes.
const KIND: &str = "memory";

/// Memory files in a user's folder.
const MEMORY: Selection = Selection {
    enter: |folder| folder.starts_with("agents") || folder.starts_with(".recovery"),
    take: is_memory,
};
/// Memory files that an older version kept at the top of the home.
const TOP: Selection = Selection { enter: |_| false, take: is_memory };

/// Returns whether a file in a user's folder belongs to memory.
fn is_memory(path: &Path) -> bool {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match parts.as_slice() {
        [name] => matches!(*name, "memory.json" | "memory.json.v1.bak" | ".memory.journal.json"),
        [".recovery", ..] | ["agents", _, "facts" | ".metadata", ..] => true,
        ["agents", _, name] => name.starts_with("memory.json"),
        _ => false,
    }
}

impl Import<'_> {
    pub(super) async fn memories(&mut self) -> Result<(), ImportError> {
        let root = self.source.folder.join("users");
        let names = files::folders(&root).map_err(|why| ImportError::io(&root, why))?;
        let mut homes: Vec<(UserId, PathBuf)> = Vec::new();
        for name in names {
            match UserId::from_raw(&name) {
                Ok(user) if user.as_str() == name => homes.push((user, root.join(name))),
                _ => self.report.left(ItemKind::Memory, format!("users/{name}"), "not a valid user ID"),
            }
        }
        let local = UserId::local();
        let has_own = root.join(local.as_str()).join("memory.json").exists();
        if !has_own && self.source.folder.join("memory.json").exists() {
            homes.push((local, self.source.folder.clone()));
        }
        for (user, folder) in homes {
            if self.is_forgotten(&user) {
                continue;
            }
            self.memory(&user, &folder).await?;
        }
        Ok(())
    }

    async fn memory(&mut self, user: &UserId, from: &Path) -> Result<(), ImportError> {
        let to = self.target.home.join("users").join(user.as_str());
        // Files at the top of the home belong to the local user, and there are no agents' folders next to them.
        let wanted = if from == self.source.folder { TOP } else { MEMORY };
        let io = |why| ImportError::io(from, why);
        let left = |import: &mut Self, why: &str| {
            let why = Some(why.to_owned());
            import.report.add(ItemKind::Memory, ItemOutcome::Left, "memory", Some(user.as_str()), why);
        };
        let Some(digest) = files::digest(from, wanted).map_err(io)? else {
            if let Some(why) = files::skipped(from, wanted).map_err(io)?.note() {
                left(self, &why);
            }
            return Ok(());
        };
        match self.note_of(KIND, user.as_str()) {
            Some(note) if note.done && note.digest == digest => {
                self.report.add(
                    ItemKind::Memory,
                    ItemOutcome::Unchanged,
                    "memory",
                    Some(user.as_str()),
                    None,
                );
                return Ok(());
            }
            Some(note) if note.done => {
                left(self, "already imported, and changed in DeerFlow since");
                return Ok(());
            }
            Some(_) => {}
            None => {
                let own = files::digest(&to, MEMORY).map_err(io)?;
                if own.is_some_and(|own| own != digest) {
                    left(self, "this user already has a memory");
                    return Ok(());
                }
            }
        }
        self.note(KIND, user.as_str(), &digest, false).await?;
        let copied = self.copier.copy(from, &to, wanted).map_err(io)?;
        let note = if self.target.dry_run { None } else { self.index(user).await? };
        self.note(KIND, user.as_str(), &digest, true).await?;
        let notes: Vec<String> = note.into_iter().chain(copied.note()).collect();
        let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
        self.report.add(ItemKind::Memory, ItemOutcome::Taken, "memory", Some(user.as_str()), note);
        Ok(())
    }

    /// Indexes the facts of all agents of a user. Returns a description of problems.
    async fn index(&self, user: &UserId) -> Result<Option<String>, ImportError> {
        let (home, options) = (self.target.home.clone(), self.target.memory.clone());
        let (user, now) = (user.clone(), self.now);
        let read =
            tokio::task::spawn_blocking(move || read(&MemoryStore::new(home, options), &user, now)).await;
        let panicked = |_| ImportError::Source("the task that reads memory panicked".to_owned());
        let (entries, broken) = read.map_err(panicked)??;
        self.target.db.index(&entries).await?;
        Ok(match broken {
            0 => None,
            1 => Some("1 unreadable file, copied unchanged".to_owned()),
            _ => Some(format!("{broken} unreadable files, copied unchanged")),
        })
    }
}

/// Reads a user's facts as index entries, and counts the unreadable files.
fn read(store: &MemoryStore, user: &UserId, now: i64) -> Result<(Vec<RecallEntry>, usize), MemoryError> {
    let (mut entries, mut broken) = (Vec::new(), 0);
    let mut agents = store.agents(user)?;
    let usual = MemoryScope::for_user(user.clone());
    if !agents.iter().any(|agent| agent == usual.agent()) {
        agents.push(usual.agent().to_owned());
    }
    for agent in agents {
        let document = store.read(&MemoryScope::of_agent(user.clone(), &agent)?, now)?;
        broken += document.broken.len();
        entries.extend(document.facts.iter().map(|fact| RecallEntry {
            scope: RecallScope { user: user.clone(), agent: agent.clone() },
            kind: RecallKind::Fact,
            doc: fact.id.to_string(),
            thread: String::new(),
            author: fact.origin.as_ref().and_then(|origin| origin.author_name.clone()).unwrap_or_default(),
            at: fact.created_at.millis(),
            confidence: fact.confidence,
            text: fact.content.clone(),
        }));
    }
    Ok((entries, broken))
}
