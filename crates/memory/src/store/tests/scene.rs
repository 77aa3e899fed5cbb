//! The scene of the tests of files: a home with one user.

use crate::{
    Committed, Fact, FactCategory, FactId, FactSource, FactTime, MemoryDocument, MemoryOptions, MemoryScope,
    MemoryStore, NewFact,
};
use pudu_base::UserId;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// 2026-07-01, in milliseconds.
pub(crate) const NOW: i64 = 1_782_864_000_000;

pub(crate) struct Scene {
    pub(crate) home: tempfile::TempDir,
    pub(crate) store: MemoryStore,
    pub(crate) scope: MemoryScope,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(MemoryOptions::default())
    }

    pub(crate) fn with(options: MemoryOptions) -> Self {
        // In a memory file system if there is one, because a kill at every step causes thousands of syncs.
        let home = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let store = MemoryStore::new(home.path().to_owned(), options);
        Self { home, store, scope: MemoryScope::for_user(UserId::from_raw("alice").unwrap()) }
    }

    pub(crate) fn user(&self) -> PathBuf {
        self.home.path().join("users/alice")
    }

    pub(crate) fn read(&self) -> MemoryDocument {
        self.store.read(&self.scope, NOW).unwrap()
    }

    pub(crate) fn add(&self, content: &str) -> FactId {
        self.store.add(&self.scope, new(content), NOW).unwrap().0
    }

    pub(crate) fn forget(&self, id: &FactId) -> Committed {
        self.store.forget(&self.scope, std::slice::from_ref(id), NOW).unwrap()
    }

    /// Writes a file below the user's folder.
    pub(crate) fn put(&self, file: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.user().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Returns the place of a fact of the agent without a name.
    pub(crate) fn file(&self, id: &str) -> String {
        let id = FactId::new(id).unwrap();
        format!("agents/__default__/facts/{}/{id}.md", id.shard())
    }

    pub(crate) fn contents(&self) -> Vec<String> {
        self.read().facts.iter().map(|fact| fact.content.clone()).collect()
    }

    /// Returns every file below the home except for the lock, with its text.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().unwrap() != ".memory.lock" {
                    let name = path.strip_prefix(self.home.path()).unwrap().to_owned();
                    found.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        found
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.files().iter().any(|(path, file)| file.contains(text) || path.to_string_lossy().contains(text))
    }
}

pub(crate) fn new(content: &str) -> NewFact {
    NewFact {
        content: content.to_owned(),
        category: FactCategory::Context,
        confidence: 0.8,
        source: FactSource::manual(),
        origin: None,
    }
}

pub(crate) fn fact(id: &str, content: &str) -> Fact {
    Fact::new(FactId::new(id).unwrap(), content, FactCategory::Context, 0.8, FactTime::from_millis(NOW))
}

/// A file in DeerFlow's format.
pub(crate) fn deerflow(id: &str, agent: &str, content: &str) -> String {
    format!(
        "---\nid: {id}\ncategory: preference\nconfidence: 0.9\ncreatedAt: '2026-06-01T08:00:00.123456Z'\nsource:\n  type: conversation\n  threadId: t1\nschemaVersion: 2\nstatus: active\ntopics: []\nconsolidatedFrom: []\nupdatedAt: '2026-06-01T08:00:00.123456Z'\nrevision: 1\nuser_id: alice\nagent_name: {agent}\n---\n\n# {content}\n\n{content}\n"
    )
}

pub(crate) fn exists(path: impl AsRef<Path>) -> bool {
    fs::symlink_metadata(path).is_ok()
}
