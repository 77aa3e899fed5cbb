//! Stores tool results that are too long for a model in a folder of the thread's outputs. A command may change anything
//! there concurrently, so no symlink is followed, and only regular files of that folder are removed.

use crate::{ROOT, failure::failed, files::Files, monitor, mounts::OUTPUTS};
use cap_std::{
    fs::{Dir, DirBuilder, DirBuilderExt, OpenOptions},
    time::SystemTime,
};
use pudu_base::SandboxError;
use rustix::fs::{Mode, OFlags};
use std::{
    io::{self, Write},
    path::{Component, Path},
};

/// Maximum size of a stored result, in bytes. The agent's tools could not read a larger one.
const MAX_RESULT_BYTES: usize = 16 << 20;
/// Maximum number of stored results per folder, and their maximum total size in bytes. The oldest are removed first.
const MAX_RESULTS: (usize, u64) = (64, 64 << 20);
/// Maximum number of entries examined when old ones are removed.
const MAX_EXAMINED: usize = 10_000;

/// Stores a text or an image as a new file in a folder below the outputs, and returns the agent's path.
pub(crate) fn keep(files: &Files, folder: &str, name: &str, bytes: &[u8]) -> Result<String, SandboxError> {
    let path = format!("{ROOT}/{OUTPUTS}/{folder}/{name}");
    let host = files.mounts()?.first().is_some_and(|own| monitor::almost_full(&own.host));
    if host || bytes.len() > MAX_RESULT_BYTES || !plain(folder) || !plain(name) {
        return Err(SandboxError::Refused(format!(
            "cannot store {path}: it is too large, or the disk is \
            almost full"
        )));
    }
    let keep = || {
        let mut dir = step(files, files.own().map_err(io::Error::other)?, OUTPUTS)?;
        for part in folder.split('/') {
            dir = step(files, &dir, part)?;
        }
        let mut file = dir.open_with(name, OpenOptions::new().write(true).create_new(true))?;
        let written = file.write_all(bytes).and_then(|()| files.give_open(&file));
        if written.is_err() {
            dir.remove_file(name).ok();
        }
        // Leftover results are harmless; the next call may remove them.
        sweep(&dir, name, MAX_RESULTS).ok();
        written
    };
    keep().map_err(|error| failed(&path, error))?;
    Ok(path)
}

/// Removes a stored file. No link is followed.
pub(crate) fn remove(files: &Files, path: &str) -> Result<(), SandboxError> {
    let below = path.strip_prefix(ROOT).and_then(|path| path.strip_prefix('/'));
    let parts = below.filter(|path| plain(path)).and_then(|path| path.rsplit_once('/'));
    let Some((folder, name)) = parts.filter(|(folder, _)| folder.starts_with(OUTPUTS)) else {
        return Err(SandboxError::Refused(format!("{path} is not a stored result")));
    };
    let own = files.existing(path)?;
    let remove = || {
        let mut dir = own.try_clone()?;
        for part in folder.split('/') {
            dir = enter(&dir, part)?;
        }
        if !dir.symlink_metadata(name)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        dir.remove_file(name)
    };
    remove().map_err(|error| failed(path, error))
}

/// Returns whether a path only descends.
fn plain(path: &str) -> bool {
    let normal = |part: &str| matches!(Path::new(part).components().next(), Some(Component::Normal(_)));
    path.split('/').all(normal) && !path.contains('\0')
}

/// Opens a subfolder. No link is followed.
pub(crate) fn enter(dir: &Dir, name: &str) -> io::Result<Dir> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let below = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    Ok(Dir::from_std_file(std::fs::File::from(below)))
}

/// Opens a subfolder. Creates it if it is missing.
fn step(files: &Files, dir: &Dir, name: &str) -> io::Result<Dir> {
    let mut builder = DirBuilder::new();
    let is_new = match dir.create_dir_with(name, builder.mode(0o700)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        result => result.map(|()| true)?,
    };
    let below = enter(dir, name)?;
    if is_new {
        files.give_open(&below)?;
    }
    Ok(below)
}

/// Removes the oldest files beyond `most` files or `bytes` bytes, but never the newest one.
pub(crate) fn sweep(dir: &Dir, newest: &str, (most, bytes): (usize, u64)) -> io::Result<()> {
    let mut old: Vec<(SystemTime, u64, std::ffi::OsString)> = Vec::new();
    let (mut count, mut total) = (0, 0_u64);
    for entry in dir.entries()?.take(MAX_EXAMINED) {
        let entry = entry?;
        let meta = entry.metadata()?;
        if !meta.is_file() {
            continue;
        }
        if entry.file_name() == newest {
            (count, total) = (1, meta.len());
        } else {
            old.push((meta.modified()?, meta.len(), entry.file_name()));
        }
    }
    old.sort_by(|one, other| other.cmp(one));
    for (_, size, name) in old {
        count += 1;
        total = total.saturating_add(size);
        if count > most || total > bytes {
            dir.remove_file(name).ok();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::fs;

    fn place() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::new(folder.path().join("thread"), Vec::new(), None);
        (folder, files)
    }

    #[test]
    fn a_result_is_stored_where_the_agent_can_read_it() {
        let (folder, files) = place();
        let path = keep(&files, ".tool-results", "bash-1.log", "grüße".as_bytes()).unwrap();
        assert_eq!(path, "/mnt/user-data/outputs/.tool-results/bash-1.log");
        assert_eq!(files.read(&path, 100).unwrap(), "grüße".as_bytes());
        let deep = keep(&files, "a/b", "c.txt", b"x").unwrap();
        assert_eq!(files.read(&deep, 100).unwrap(), b"x");
        assert!(keep(&files, ".tool-results", "bash-1.log", b"other").is_err(), "nothing is written over");
        assert_eq!(
            fs::read(folder.path().join("thread/outputs/.tool-results/bash-1.log")).unwrap(),
            b"gr\xc3\xbc\xc3\x9fe"
        );
    }

    #[test]
    fn invalid_paths_and_large_results_are_refused() {
        let (folder, files) = place();
        for (dir, name) in [("..", "a"), ("", "a"), ("/tmp", "a"), ("a/../..", "a"), ("a", "../a"), ("a", "")]
        {
            assert!(keep(&files, dir, name, b"x").is_err(), "{dir:?} {name:?}");
        }
        assert!(keep(&files, "a", "b", &vec![b'x'; MAX_RESULT_BYTES + 1]).is_err());
        let outputs = folder.path().join("thread/outputs");
        fs::write(folder.path().join("thread/workspace/mine"), "x").unwrap();
        std::os::unix::fs::symlink("../workspace", outputs.join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path(), outputs.join("out")).unwrap();
        fs::write(outputs.join("file"), "x").unwrap();
        for dir in ["link", "out", "file"] {
            assert!(keep(&files, dir, "a", b"x").is_err(), "{dir}");
        }
        assert_eq!(fs::read_dir(folder.path().join("thread/workspace")).unwrap().count(), 1);
    }

    #[test]
    fn the_oldest_results_beyond_the_limits_are_removed() {
        let left = |most: usize, bytes: u64| {
            let folder = tempfile::tempdir().unwrap();
            let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
            for (age, name) in ["new", "a", "b", "c", "d"].iter().enumerate() {
                let file = fs::File::create(folder.path().join(name)).unwrap();
                file.set_len(10).unwrap();
                // The newest file is kept regardless of its time.
                let age = if age == 0 { 100 } else { age as u64 };
                let then = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
                file.set_modified(then).unwrap();
            }
            fs::create_dir(folder.path().join("folder")).unwrap();
            sweep(&dir, "new", (most, bytes)).unwrap();
            let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(left(9, 1000), "a b c d folder new");
        assert_eq!(left(3, 1000), "a b folder new");
        assert_eq!(left(9, 25), "a folder new");
        assert_eq!(left(1, 0), "folder new");
    }
}
