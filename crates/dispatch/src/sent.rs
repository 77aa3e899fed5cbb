//! Files on their way to people. An agent's files are under its hands until they are sent, which may be much later than
//! the run that made them; files to be sent are kept here, where commands cannot replace them.

use pudu_client::{
    base::{MessageId, SandboxError, digest},
    sandbox::ThreadFiles,
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The folder's name in the home.
const FOLDER: &str = "sent";
/// The name under which people get the whole text of an approval.
pub const ASKED: &str = "what-i-ask.txt";
/// Nothing is sent that is older.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Maximum size of all kept files, in bytes; one that is larger is not sent.
const ROOM: u64 = 2 * 1024 * 1024 * 1024;
/// Maximum number of files kept.
const MAX_SENT_FILES: usize = 4096;

/// Keeps a file of a thread and returns where the copy is: no command can change it any more.
pub async fn keep(home: &Path, files: &ThreadFiles, path: &str) -> Result<PathBuf, SandboxError> {
    let folder = home.join(FOLDER);
    let made = tokio::fs::create_dir_all(&folder).await;
    made.map_err(|source| SandboxError::Io { path: path.to_owned(), source })?;
    let kept = files.keep(path, &folder, MessageId::fresh().as_str(), ROOM).await?;
    make_more_room(folder).await;
    Ok(kept)
}

/// Returns where something that is sent is kept, by the last part of its path: nothing else is found by it.
pub fn kept(home: &Path, name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    plain.then(|| home.join(FOLDER).join(name))
}

/// Keeps a text that is to be sent as a file and returns where it is.
pub async fn keep_text(home: &Path, text: &str) -> io::Result<PathBuf> {
    let folder = home.join(FOLDER);
    tokio::fs::create_dir_all(&folder).await?;
    let path = folder.join(MessageId::fresh().as_str());
    tokio::fs::write(&path, text).await?;
    make_more_room(folder).await;
    Ok(path)
}

/// Keeps a text that is to be sent. Its owner may want it gone.
pub async fn keep_of(home: &Path, owner: &str, text: &str) -> io::Result<PathBuf> {
    let kept = keep_text(home, text).await?;
    let mut name = kept.file_name().unwrap_or_default().to_owned();
    name.push(mark(owner));
    let marked = kept.with_file_name(name);
    tokio::fs::rename(&kept, &marked).await?;
    Ok(marked)
}

/// Removes the kept files of an owner. A file that was not sent yet is not sent any more.
pub async fn forget_of(home: &Path, owner: &str) {
    let (folder, mark) = (home.join(FOLDER), mark(owner));
    let removed = pudu_kit::blocking::run(move || remove_marked(&folder, &mark)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "failed to remove sent files of somebody");
    }
}

/// Returns the end of the names of an owner's files.
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
    let made = pudu_kit::blocking::run(move || make_room(&folder, ROOM, MAX_SENT_FILES)).await;
    if let Ok(Err(error)) = made {
        tracing::warn!(%error, "failed to make folder for sent files");
    }
}

/// Removes the oldest until the rest is within its bounds. The newest stays in any case. File names are made from the
/// time, so that they sort by age.
fn make_room(folder: &Path, room: u64, most: usize) -> io::Result<()> {
    let mut names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable_by(|a, b| b.cmp(a));
    let mut taken = 0_u64;
    for (place, name) in names.iter().enumerate() {
        let path = folder.join(name);
        // Another one may have removed it already.
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        taken = taken.saturating_add(metadata.len());
        if place > 0 && (place >= most || taken > room) {
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

/// Removes files that were kept long ago.
pub async fn sweep(home: &Path) {
    let folder = home.join(FOLDER);
    let swept = pudu_kit::blocking::run(move || sweep_before(&folder, SystemTime::now() - KEPT)).await;
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
        // When it got this name: a file's own time may be any.
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
    fn when_there_is_no_room_the_oldest_goes() {
        let check = |room: u64, most: usize, expect: &[&str]| {
            let home = tempfile::tempdir().unwrap();
            for (name, length) in [("1", 10), ("2", 10), ("3", 30), ("4", 5)] {
                fs::write(home.path().join(name), vec![0; length]).unwrap();
            }
            make_room(home.path(), room, most).unwrap();
            let mut left: Vec<_> =
                fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, expect, "{room} {most}");
        };
        check(55, 9, &["1", "2", "3", "4"]);
        check(54, 9, &["2", "3", "4"]);
        check(34, 9, &["4"]);
        check(1, 9, &["4"]);
        check(99, 2, &["3", "4"]);
    }

    #[tokio::test]
    async fn a_text_takes_the_place_of_the_oldest() {
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
    async fn what_is_kept_of_somebody_can_be_removed() {
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
    fn what_was_kept_long_ago_is_removed_whatever_time_the_file_says() {
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
