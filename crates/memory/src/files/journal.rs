//! Atomic changes of several files, as in DeerFlow: the old files are copied to a recovery folder, the journal records
//! `prepared`, the files change, the journal records `committed`, and the copies and the journal are removed. The next
//! program to open the folder restores the copies if it finds `prepared`. pudu and DeerFlow can recover each other's
//! changes.

use super::folder::UserFolder;
use crate::error::MemoryError;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Component, Path, PathBuf},
};
use uuid::Uuid;

const JOURNAL: &str = ".memory.journal.json";
const RECOVERY: &str = ".recovery";
pub(crate) const MANIFEST: &str = "memory.json";

/// The journal. All keys but `files` are DeerFlow's.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Journal {
    operation_id: String,
    state: String,
    #[serde(default)]
    agent_name: Option<String>,
    #[serde(default)]
    expected_revision: Option<u64>,
    #[serde(default)]
    next_revision: Option<u64>,
    #[serde(default)]
    fact_ids: Vec<String>,
    #[serde(default)]
    old_entries: IndexMap<String, OldEntry>,
    /// All files that change. DeerFlow knows only facts and the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<Vec<JournalFile>>,
}

#[derive(Serialize, Deserialize)]
struct OldEntry {
    path: String,
}

#[derive(Serialize, Deserialize)]
struct JournalFile {
    path: String,
    /// Name of its copy; `None` if the file is new.
    backup: Option<String>,
}

/// Changes of files, applied atomically.
pub(crate) struct FileTransaction {
    /// Agent whose facts change, if there is only one.
    agent: String,
    /// Revision before and after.
    revisions: (u64, u64),
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl FileTransaction {
    pub(crate) fn new(agent: &str, revisions: (u64, u64)) -> Self {
        Self { agent: agent.to_owned(), revisions, files: BTreeMap::new() }
    }

    pub(crate) fn write(&mut self, file: PathBuf, bytes: impl Into<Vec<u8>>) {
        self.files.insert(file, Some(bytes.into()));
    }

    pub(crate) fn remove(&mut self, file: PathBuf) {
        self.files.insert(file, None);
    }

    /// Applies the changes. After a failure the old state is restored, at the latest when the folder is opened again.
    pub(crate) fn commit(self, folder: &UserFolder) -> Result<(), MemoryError> {
        if self.files.is_empty() {
            return Ok(());
        }
        self.run(folder).inspect_err(|_| {
            recover(folder).ok();
        })
    }

    fn run(&self, folder: &UserFolder) -> Result<(), MemoryError> {
        let operation = Uuid::now_v7().simple().to_string();
        let aside = Path::new(RECOVERY).join(&operation);
        let fail = |path: &Path| MemoryError::io(folder.path(path));
        folder.create_folder(&aside).map_err(fail(&aside))?;
        let mut journal = self.copy_aside(folder, &aside)?;
        for (index, (_, bytes)) in self.files.iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            let staged = staged(&aside, index);
            folder.create_file(&staged, bytes).map_err(fail(&staged))?;
        }
        folder.sync(Some(&aside)).map_err(fail(&aside))?;
        journal.operation_id = operation;
        journal.state = "prepared".to_owned();
        write_journal(folder, &journal, &aside)?;
        for (index, (file, bytes)) in self.files.iter().enumerate() {
            let done = match bytes {
                Some(_) => folder.place(&staged(&aside, index), file),
                None => folder.remove(file),
            };
            done.map_err(fail(file))?;
        }
        journal.state = "committed".to_owned();
        write_journal(folder, &journal, &aside)?;
        // The change is now permanent. A failed cleanup is ignored, because the next opening of the folder repeats it.
        clean_up(folder, &aside).ok();
        Ok(())
    }

    /// Copies the files to be replaced, and returns a journal that lists them.
    fn copy_aside(&self, folder: &UserFolder, aside: &Path) -> Result<Journal, MemoryError> {
        let mut journal = Journal {
            agent_name: Some(self.agent.clone()),
            expected_revision: Some(self.revisions.0),
            next_revision: Some(self.revisions.1),
            ..Journal::default()
        };
        let mut files = Vec::new();
        for (index, file) in self.files.keys().enumerate() {
            let path = file.to_string_lossy().into_owned();
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let is_fact = is_fact(file) && !journal.fact_ids.contains(&stem);
            let old = folder.read(file)?;
            let name = match () {
                () if is_fact => format!("{stem}.md"),
                () if file == Path::new(MANIFEST) => MANIFEST.to_owned(),
                () => format!("old-{index}"),
            };
            if is_fact {
                journal.fact_ids.push(stem.clone());
            }
            let Some(bytes) = old else {
                files.push(JournalFile { path, backup: None });
                continue;
            };
            let copy = aside.join(&name);
            folder.create_file(&copy, &bytes).map_err(MemoryError::io(folder.path(&copy)))?;
            if is_fact {
                journal.old_entries.insert(stem, OldEntry { path: path.clone() });
            }
            files.push(JournalFile { path, backup: Some(name) });
        }
        journal.files = Some(files);
        Ok(journal)
    }
}

fn staged(aside: &Path, index: usize) -> PathBuf {
    aside.join(format!("new-{index}"))
}

fn write_journal(folder: &UserFolder, journal: &Journal, aside: &Path) -> Result<(), MemoryError> {
    let staged = aside.join("journal");
    let write = || {
        let text = serde_json::to_vec_pretty(journal).map_err(io::Error::other)?;
        folder.create_file(&staged, &text)?;
        folder.place(&staged, Path::new(JOURNAL))
    };
    write().map_err(MemoryError::io(folder.path(JOURNAL)))
}

/// Removes the journal, then the copies: a journal without copies could not be rolled back.
fn clean_up(folder: &UserFolder, aside: &Path) -> io::Result<()> {
    folder.remove(Path::new(JOURNAL))?;
    folder.remove_folder(aside)?;
    folder.prune(Path::new(RECOVERY));
    Ok(())
}

/// Finishes or rolls back the change of an interrupted writer. The caller holds the lock.
pub(crate) fn recover(folder: &UserFolder) -> Result<(), MemoryError> {
    let path = || folder.path(JOURNAL);
    if let Some(bytes) = folder.read(JOURNAL)? {
        let broken = |why: String| MemoryError::Broken { path: path(), why };
        let journal: Journal = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if !is_plain(Path::new(&journal.operation_id)) {
            return Err(broken("`operationId` is not a plain name".to_owned()));
        }
        let aside = Path::new(RECOVERY).join(&journal.operation_id);
        match journal.state.as_str() {
            "prepared" => roll_back(folder, &journal, &aside)?,
            "committed" => {}
            state => return Err(broken(format!("`state` is `{state}`"))),
        }
        clean_up(folder, &aside).map_err(MemoryError::io(path()))?;
    }
    sweep(folder)
}

/// Removes copies without a journal. Their writer was interrupted before it changed anything.
fn sweep(folder: &UserFolder) -> Result<(), MemoryError> {
    if !folder.exists(RECOVERY) {
        return Ok(());
    }
    for name in folder.list(RECOVERY)? {
        let orphan = Path::new(RECOVERY).join(name);
        folder.remove_folder(&orphan).map_err(MemoryError::io(folder.path(&orphan)))?;
    }
    folder.prune(Path::new(RECOVERY));
    Ok(())
}

fn roll_back(folder: &UserFolder, journal: &Journal, aside: &Path) -> Result<(), MemoryError> {
    for (file, backup) in old_files(folder, journal, aside)? {
        let restore = || match &backup {
            None => folder.remove(&file),
            Some(name) => match folder.read(aside.join(name)) {
                Ok(Some(bytes)) => {
                    let staged = aside.join("restored");
                    folder.create_file(&staged, &bytes)?;
                    folder.place(&staged, &file)
                }
                Ok(None) => Err(io::Error::new(io::ErrorKind::NotFound, "its copy no longer exists")),
                Err(error) => Err(io::Error::other(error)),
            },
        };
        restore().map_err(MemoryError::io(folder.path(&file)))?;
    }
    Ok(())
}

/// Lists the changed files, each with the name of its copy.
fn old_files(
    folder: &UserFolder,
    journal: &Journal,
    aside: &Path,
) -> Result<Vec<(PathBuf, Option<String>)>, MemoryError> {
    let listed = match &journal.files {
        Some(files) => files.iter().map(|file| (PathBuf::from(&file.path), file.backup.clone())).collect(),
        None => deerflow_files(folder, journal, aside),
    };
    let safe = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    if let Some((bad, _)) = listed
        .iter()
        .find(|(path, name)| !safe(path) || !name.as_ref().is_none_or(|name| is_plain(Path::new(name))))
    {
        let why = format!("it names `{}`, which is outside of the user's folder", bad.display());
        return Err(MemoryError::Broken { path: folder.path(JOURNAL), why });
    }
    Ok(listed)
}

/// Interprets DeerFlow's journal: facts without an old entry are new; a missing copy changes nothing.
fn deerflow_files(folder: &UserFolder, journal: &Journal, aside: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut files = Vec::new();
    if folder.exists(aside.join(MANIFEST)) {
        files.push((PathBuf::from(MANIFEST), Some(MANIFEST.to_owned())));
    } else if journal.expected_revision.unwrap_or_default() == 0 {
        files.push((PathBuf::from(MANIFEST), None));
    }
    let agent = journal.agent_name.as_deref().unwrap_or(crate::scope::DEFAULT_AGENT).to_lowercase();
    let new = journal.fact_ids.iter().filter(|id| !journal.old_entries.contains_key(*id));
    let new = new.filter_map(|id| crate::fact::FactId::new(id).ok());
    files.extend(new.map(|id| {
        let file = super::folder::facts_folder(&agent).join(id.shard()).join(format!("{id}.md"));
        (file, None)
    }));
    let old = journal.old_entries.iter().map(|(id, old)| (PathBuf::from(&old.path), format!("{id}.md")));
    let old = old.filter(|(_, copy)| folder.exists(aside.join(copy)));
    files.extend(old.map(|(file, copy)| (file, Some(copy))));
    files
}

/// Whether a file is a fact of an agent by DeerFlow's rules.
fn is_fact(file: &Path) -> bool {
    let mut parts = file.components().map(Component::as_os_str);
    let at = [parts.next(), parts.nth(1)].map(|part| part.and_then(|part| part.to_str()).unwrap_or_default());
    at == ["agents", "facts"] && file.extension().is_some_and(|ending| ending == "md")
}

/// Whether a path is a single plain name.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

#[cfg(test)]
mod tests;
