//! Folders of agents: listed, created, changed and removed in atomic steps.

use super::{error::AgentError, file::AgentFile, place::AgentPlace};
use pudu_base::{MessageId, UserId};
use pudu_kit::file::{self, sync_folder};
use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Prefix of temporary folders and files. Names of agents never begin with a dot.
const PREFIX: &str = ".staging-";
/// Suffix of temporary files.
const PART: &str = ".part";

/// Returns the names of all folders that contain an agent's files, sorted.
pub(super) fn names(roots: &[(PathBuf, AgentPlace)]) -> BTreeSet<String> {
    let entries = roots.iter().filter_map(|(root, _)| fs::read_dir(root).ok()).flatten().flatten();
    let folders = entries.filter(|entry| super::file::is_agent(&entry.path()));
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// Returns the users, except the local one, that have agents.
pub(super) fn owners(users: &Path) -> Vec<UserId> {
    let folders = fs::read_dir(users).into_iter().flatten().flatten();
    let user = |folder: fs::DirEntry| {
        let name = folder.file_name().into_string().ok()?;
        let user =
            UserId::from_raw(&name).ok().filter(|user| user.as_str() == name && *user != UserId::local())?;
        (!names(&[(folder.path().join("agents"), AgentPlace::Own)]).is_empty()).then_some(user)
    };
    let mut owners: Vec<UserId> = folders.filter_map(user).collect();
    owners.sort();
    owners
}

/// Locks the agents against concurrent changes, such as those by the command line.
pub(super) fn lock(root: &Path) -> Result<File, AgentError> {
    DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(AgentError::io(root))?;
    let path = root.join(".lock");
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(AgentError::io(&path))?;
    file.lock().map_err(AgentError::io(&path))?;
    sweep(root);
    Ok(file)
}

/// Removes unfinished folders left by a crash.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// Removes unfinished files left by a crash from an agent's folder.
fn sweep_parts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(PART) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Returns an agent's folder for writing; a symbolic link is refused.
pub(super) fn inside(root: &Path, name: &str) -> Result<PathBuf, AgentError> {
    let folder = root.join(name);
    let meta = fs::symlink_metadata(&folder).map_err(AgentError::io(&folder))?;
    if !meta.is_dir() {
        let text =
            format!("the folder of `{name}` is a symbolic link; change the agent at the link's target");
        return Err(AgentError::Wrong(text));
    }
    Ok(folder)
}

/// Creates a folder with files: first under a temporary name, so that no reader sees an incomplete one.
pub(super) fn create(root: &Path, name: &str, files: &[AgentFile]) -> Result<(), AgentError> {
    let aside = temporary_path(root);
    let make = || {
        DirBuilder::new().mode(0o700).create(&aside)?;
        for (name, bytes) in files {
            file::create(&aside.join(name), bytes, 0o600)?;
        }
        sync_folder(&aside)?;
        fs::rename(&aside, root.join(name))?;
        sync_folder(root)
    };
    make().map_err(|error| {
        fs::remove_dir_all(&aside).ok();
        AgentError::io(&root.join(name))(error)
    })
}

/// Replaces files. All are written under temporary names before the first is renamed.
pub(super) fn replace(folder: &Path, files: &[AgentFile]) -> Result<(), AgentError> {
    sweep_parts(folder);
    let mark = MessageId::fresh();
    let part = |name: &str| folder.join(format!("{PREFIX}{mark}-{name}{PART}"));
    let put = || {
        for (name, bytes) in files {
            file::create(&part(name), bytes, 0o600)?;
        }
        for (name, _) in files {
            fs::rename(part(name), folder.join(name))?;
        }
        sync_folder(folder)
    };
    put().map_err(|error| {
        files.iter().for_each(|(name, _)| drop(fs::remove_file(part(name))));
        AgentError::io(folder)(error)
    })
}

/// Removes a folder. It is first renamed, so that no reader sees an incomplete one.
pub(super) fn remove(root: &Path, name: &str) -> Result<(), AgentError> {
    let (folder, aside) = (root.join(name), temporary_path(root));
    let is_link = fs::symlink_metadata(&folder).map_err(AgentError::io(&folder))?.is_symlink();
    if is_link {
        // The link's target does not belong to pudu.
        return fs::remove_file(&folder).map_err(AgentError::io(&folder));
    }
    fs::rename(&folder, &aside).map_err(AgentError::io(&folder))?;
    fs::remove_dir_all(&aside).map_err(AgentError::io(&folder))
}

fn temporary_path(root: &Path) -> PathBuf {
    root.join(format!("{PREFIX}{}", MessageId::fresh()))
}
