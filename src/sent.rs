//! Files on their way to people. An agent's files are under its hands until they are sent, which may be much later
//! than the run that made them; what is sent is kept here, where commands cannot put something else in its place.

use pudu_client::{
    base::{MessageId, SandboxError},
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
/// Nothing is sent that is older.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Keeps a file of a thread and returns where it is. Mostly it takes no room: it is a second name of the file.
pub(crate) async fn keep(home: &Path, files: &ThreadFiles, path: &str) -> Result<PathBuf, SandboxError> {
    let folder = home.join(FOLDER);
    let made = tokio::fs::create_dir_all(&folder).await;
    made.map_err(|source| SandboxError::Io { path: path.to_owned(), source })?;
    files.keep(path, &folder, MessageId::fresh().as_str()).await
}

/// Removes what was kept long ago.
pub(crate) async fn sweep(home: &Path) {
    let folder = home.join(FOLDER);
    let swept = tokio::task::spawn_blocking(move || sweep_before(&folder, SystemTime::now() - KEPT)).await;
    if let Ok(Err(error)) = swept {
        tracing::warn!(%error, "files that were sent could not be removed");
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
        if u64::try_from(entry.metadata()?.ctime()).is_ok_and(|time| time < when) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
