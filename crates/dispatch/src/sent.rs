//! Copies of files that will be sent. A file may be sent long after the run that made it, and the agent's commands
//! could change it in between. The copies are kept here, where commands cannot reach them.

use pudu_base::{MessageId, SandboxError, digest};
use pudu_sandbox::ThreadFiles;
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Name of the folder, in the home folder.
const FOLDER: &str = "sent";
/// File name of an approval's whole text.
pub const ASKED: &str = "request.txt";
/// Maximum age of a kept file.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Maximum size of all kept files together, in bytes. A larger file is not sent.
const MAX_TOTAL_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Maximum number of files kept.
const MAX_SENT_FILES: usize = 4096;

/// Keeps a copy of a thread's file and returns its path. No command can change the copy.
pub async fn keep(home: &Path, files: &ThreadFiles, path: &str) -> Result<PathBuf, SandboxError> {
    let folder = home.join(FOLDER);
    let created = tokio::fs::create_dir_all(&folder).await;
    created.map_err(|source| SandboxError::Io { path: path.to_owned(), source })?;
    let copy = files.keep(path, &folder, MessageId::fresh().as_str(), MAX_TOTAL_BYTES).await?;
    make_more_room(folder).await;
    Ok(copy)
}

/// Returns the path of a kept file by its name. Other paths cannot be reached.
pub fn kept(home: &Path, name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    plain.then(|| home.join(FOLDER).join(name))
}

/// Keeps a text to be sent as a file, and returns its path.
pub async fn keep_text(home: &Path, text: &str) -> io::Result<PathBuf> {
    let folder = home.join(FOLDER);
    tokio::fs::create_dir_all(&folder).await?;
    let path = folder.join(MessageId::fresh().as_str());
    tokio::fs::write(&path, text).await?;
    make_more_room(folder).await;
    Ok(path)
}

/// Keeps a text to be sent as a file under its owner's mark, so that the owner can have it deleted.
pub async fn keep_of(home: &Path, owner: &str, text: &str) -> io::Result<PathBuf> {
    let copy = keep_text(home, text).await?;
    let mut name = copy.file_name().unwrap_or_default().to_owned();
    name.push(mark(owner));
    let marked = copy.with_file_name(name);
    tokio::fs::rename(&copy, &marked).await?;
    Ok(marked)
}

/// Deletes the kept files of an owner. Those that were not sent yet will not be sent.
pub async fn forget_of(home: &Path, owner: &str) {
    let (folder, mark) = (home.join(FOLDER), mark(owner));
    let removed = pudu_kit::blocking::run(move || remove_marked(&folder, &mark)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "failed to remove sent files of an owner");
    }
}

/// Returns the suffix of an owner's file names.
fn mark(owner: &str) -> String {
    format!("-{}", digest(owner).chars().take(16).collect::<String>())
}

fn remove_marked(folder: &Path, mark: &str) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(mark) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

async fn make_more_room(folder: PathBuf) {
    let outcome = pudu_kit::blocking::run(move || make_room(&folder, MAX_TOTAL_BYTES, MAX_SENT_FILES)).await;
    if let Ok(Err(error)) = outcome {
        tracing::warn!(%error, "failed to create folder for sent files");
    }
}

/// Deletes the oldest files until the remaining ones are within the limits. The newest always stays. File names begin
/// with the time, so they sort by age.
fn make_room(folder: &Path, room: u64, max_files: usize) -> io::Result<()> {
    let mut names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    let mut total_bytes = 0_u64;
    for (place, name) in names.iter().enumerate() {
        let path = folder.join(name);
        // Another task may have deleted it already.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        total_bytes = total_bytes.saturating_add(metadata.len());
        if place > 0 && (place >= max_files || total_bytes > room) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Deletes files older than `MAX_AGE`.
pub async fn sweep(home: &Path) {
    let folder = home.join(FOLDER);
    let swept = pudu_kit::blocking::run(move || sweep_before(&folder, SystemTime::now() - MAX_AGE)).await;
    if let Ok(Err(error)) = swept {
        tracing::warn!(%error, "failed to remove sent files");
    }
}

fn sweep_before(folder: &Path, when: SystemTime) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let when = when.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for entry in entries {
        let entry = entry?;
        // A file's change time is when it got this name; its modification time may be arbitrary.
        let Ok(metadata) = entry.metadata() else { continue };
        if u64::try_from(metadata.ctime()).is_ok_and(|time| time < when) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_files_are_deleted_when_there_is_no_room() {
        let check = |room: u64, most: usize, expect: &[&str]| {
            let home = tempfile::tempdir().unwrap();
            for (name, length) in [("1", 10), ("2", 10), ("3", 30), ("4", 5)] {
                fs::write(home.path().join(name), vec![0; length]).unwrap();
            }
            make_room(home.path(), room, most).unwrap();
            let mut remaining: Vec<_> =
                fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            remaining.sort();
            assert_eq!(remaining, expect, "{room} {most}");
        };
        check(55, 9, &["1", "2", "3", "4"]);
        check(54, 9, &["2", "3", "4"]);
        check(34, 9, &["4"]);
        check(1, 9, &["4"]);
        check(99, 2, &["3", "4"]);
    }

    #[tokio::test]
    async fn a_new_text_replaces_the_oldest_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        for n in 0..MAX_SENT_FILES {
            fs::write(folder.join(format!("0{n:04}")), "").unwrap();
        }
        let path = keep_text(home.path(), "new").await.unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "new");
        assert!(!folder.join("00000").exists());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_SENT_FILES);
    }

    #[tokio::test]
    async fn kept_files_of_an_owner_can_be_deleted() {
        let home = tempfile::tempdir().unwrap();
        let (ada, bob) = (
            keep_of(home.path(), "ada", "a").await.unwrap(),
            keep_of(home.path(), "bob", "b").await.unwrap(),
        );
        assert_eq!(kept(home.path(), ada.file_name().unwrap().to_str().unwrap()), Some(ada.clone()));
        forget_of(home.path(), "ada").await;
        assert_eq!((ada.exists(), bob.exists()), (false, true));
    }

    #[test]
    fn old_files_are_deleted_whatever_their_modification_time() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a");
        fs::File::create(&file).unwrap().set_modified(UNIX_EPOCH).unwrap();
        let now = SystemTime::now();
        sweep_before(home.path(), now - Duration::from_secs(60)).unwrap();
        assert!(file.exists());
        sweep_before(home.path(), now + Duration::from_secs(60)).unwrap();
        assert!(!file.exists());
        sweep_before(&home.path().join("none"), now).unwrap();
    }
}
