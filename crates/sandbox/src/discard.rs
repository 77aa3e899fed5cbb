//! Removes folders that commands have filled, regardless of depth, size and permissions.
//!
//! Nothing here is recursive. Each subfolder is moved up next to its parent before it is processed, so that paths stay
//! short and only one folder is open at a time. No symlink is followed: a moved folder is inside a folder of the
//! daemon, under a name that commands cannot know.

use pudu_base::MessageId;
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, DirEntry, Permissions},
    io,
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::Path,
};

/// Removes everything in a folder, which may be missing. If an entry cannot be removed, the others are removed anyway,
/// and the first error is returned.
pub(crate) fn all(folder: &Path) -> io::Result<()> {
    let mut outcome = Ok(());
    // The next round processes the moved folders.
    while let Some(entries) = entries(folder)? {
        let mut gone = 0;
        for entry in entries {
            let discarded = discard(&entry, folder);
            gone += usize::from(discarded.is_ok());
            outcome = outcome.and(discarded);
        }
        if gone == 0 {
            break;
        }
    }
    outcome
}

/// Returns the entries of a folder; `None` if there are none.
fn entries(folder: &Path) -> io::Result<Option<Vec<DirEntry>>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        entries => Ok(Some(entries?.collect::<io::Result<Vec<_>>>()?).filter(|found| !found.is_empty())),
    }
}

/// Removes an entry. If it is a folder, its files are removed and its subfolders are moved up.
fn discard(entry: &DirEntry, up: &Path) -> io::Result<()> {
    let path = entry.path();
    if !entry.file_type()?.is_dir() {
        return fs::remove_file(path);
    }
    allow(&path);
    for inner in fs::read_dir(&path)? {
        let inner = inner?;
        if inner.file_type()?.is_dir() {
            allow(&inner.path());
            fs::rename(inner.path(), up.join(MessageId::fresh().as_str()))?;
        } else {
            fs::remove_file(inner.path())?;
        }
    }
    fs::remove_dir(path)
}

/// Grants the owner access to a folder, which a command may have revoked. If this fails, the next step fails. A symlink
/// in place of the folder is not followed.
fn allow(folder: &Path) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(opened) = rustix::fs::open(folder, flags, Mode::empty()) {
        let opened = format!("/proc/self/fd/{}", opened.as_raw_fd());
        fs::set_permissions(opened, Permissions::from_mode(0o700)).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::{ambient_authority, fs::Dir};

    #[test]
    fn a_folder_of_any_depth_is_removed_and_nothing_outside_it() {
        let home = tempfile::tempdir().unwrap();
        let (outside, folder) = (home.path().join("outside"), home.path().join("deleted"));
        for path in [&outside, &folder] {
            fs::create_dir(path).unwrap();
        }
        fs::write(outside.join("kept"), "kept").unwrap();
        let mut deep = Dir::open_ambient_dir(&folder, ambient_authority()).unwrap();
        for _ in 0..5_000 {
            deep.create_dir("a").unwrap();
            deep.write("file", "x").unwrap();
            deep = deep.open_dir("a").unwrap();
        }
        std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, folder.join("a/link")).unwrap();
        fs::create_dir_all(folder.join("shut/in")).unwrap();
        for path in ["shut/in", "shut"] {
            fs::set_permissions(folder.join(path), Permissions::from_mode(0o000)).unwrap();
        }
        all(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        all(&home.path().join("none")).unwrap();
    }
}
