//! Stores the file changes of each run next to its thread's files, inaccessible to commands. A run first has a record
//! of the original files, and later one of their changes.

use super::{WorkspaceChanges, compare::compare, scan};
use crate::{
    failure::failed,
    files::Files,
    folders::{CHANGES, Folders, blocking, safe},
    results::sweep,
};
use cap_std::{ambient_authority, fs::Dir};
use pudu_base::{RunId, SandboxError, ThreadFolder};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Suffix of records of the original files.
const BEFORE_SUFFIX: &str = ".before.json";
/// Maximum total size of the stored original texts, in bytes.
const MAX_EARLIER_TEXT_BYTES: usize = 4 << 20;
/// Maximum total size of the texts that are compared with the original ones, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Maximum number of records kept per thread, and their maximum total size in bytes. The oldest are removed first.
const MAX_RECORDS: (usize, u64) = (100, 32 << 20);

/// Records of the changes to one thread's files.
#[derive(Clone)]
pub struct ChangeRecords {
    files: Arc<Files>,
    folder: PathBuf,
}

impl Folders {
    /// Returns the records of the changes to a thread's files.
    #[must_use]
    pub fn changes(&self, folder: &ThreadFolder) -> ChangeRecords {
        ChangeRecords { files: self.thread_files(folder).0, folder: self.thread(folder).join(CHANGES) }
    }
}

impl ChangeRecords {
    /// Records the original files before a run changes any, unless they were recorded before a restart. `skipped` is
    /// the daemon's own folder below the outputs.
    ///
    /// # Errors
    /// When the files cannot be read or the record cannot be stored.
    pub async fn begin(&self, run: &RunId, skipped: &str) -> Result<(), SandboxError> {
        let (records, skipped) = (self.clone(), skipped.to_owned());
        self.blocking(run, move |files, run| {
            let earlier = records.earlier(run);
            if earlier.exists() {
                return Ok(());
            }
            let snapshot = scan::scan(files, &skipped, None, MAX_EARLIER_TEXT_BYTES)?;
            let keep =
                || records.write(&earlier, &snapshot).and_then(|()| records.drop_earlier_but(&earlier));
            keep().map_err(|error| failed(run, error))
        })
        .await
    }

    /// Stores and returns the changes since [`ChangeRecords::begin`]; `None` if that was not called for the run. The
    /// run may continue after a restart.
    ///
    /// # Errors
    /// When the files cannot be read, or the changes cannot be stored.
    pub async fn finish(&self, run: &RunId, skipped: &str) -> Result<Option<WorkspaceChanges>, SandboxError> {
        let (records, skipped) = (self.clone(), skipped.to_owned());
        self.blocking(run, move |files, run| {
            let earlier = records.earlier(run);
            let before: Option<scan::FileSnapshot> = read(&earlier).map_err(|error| failed(run, error))?;
            let Some(before) = before else { return Ok(None) };
            let changes = compare(&before, &scan::scan(files, &skipped, Some(&before), MAX_TEXT_BYTES)?);
            records.write(&records.changes(run), &changes).map_err(|error| failed(run, error))?;
            Ok(Some(changes))
        })
        .await
    }

    /// Returns the changes of a finished run, if they are stored.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub async fn read_changes(&self, run: &RunId) -> Result<Option<WorkspaceChanges>, SandboxError> {
        let records = self.clone();
        self.blocking(run, move |_, run| read(&records.changes(run)).map_err(|error| failed(run, error)))
            .await
    }

    /// Deletes the changes of a run.
    ///
    /// # Errors
    /// When the records cannot be removed.
    pub async fn remove(&self, run: &RunId) -> Result<(), SandboxError> {
        let records = self.clone();
        self.blocking(run, move |_, run| {
            [records.earlier(run), records.changes(run)]
                .iter()
                .try_for_each(|path| remove(path))
                .map_err(|error| failed(run, error))
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        run: &RunId,
        work: impl FnOnce(&Files, &str) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        blocking(&self.files, run.as_str(), work).await
    }

    fn earlier(&self, run: &str) -> PathBuf {
        self.folder.join(format!("{}{BEFORE_SUFFIX}", safe(run)))
    }

    /// Deletes the records of the original files of other runs, which have ended.
    fn drop_earlier_but(&self, own: &Path) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path != own && path.to_string_lossy().ends_with(BEFORE_SUFFIX) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn changes(&self, run: &str) -> PathBuf {
        self.folder.join(format!("{}.json", safe(run)))
    }

    /// Writes a temporary file and renames it, so that a record is complete even after a crash.
    fn write(&self, path: &Path, what: &impl Serialize) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let (part, name) = (path.with_extension("part"), path.file_name().unwrap_or_default());
        let mut file = File::create(&part)?;
        serde_json::to_writer(io::BufWriter::new(&file), what)?;
        file.flush().and_then(|()| file.sync_data())?;
        fs::rename(&part, path)?;
        // Leftover records are harmless; the next call may remove them.
        let dir = Dir::open_ambient_dir(&self.folder, ambient_authority())?;
        sweep(&dir, &name.to_string_lossy(), MAX_RECORDS).ok();
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a record; `None` if there is none.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => Ok(Some(serde_json::from_slice(&bytes?)?)),
    }
}
