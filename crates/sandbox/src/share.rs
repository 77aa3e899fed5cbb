//! Access for users to a thread's files: their uploads and the agent's outputs. A command may change anything in the
//! folder concurrently, so the checks hold for exactly the file that is opened.

use crate::{
    ROOT,
    failure::{failed, no_file},
    mounts::UPLOADS,
};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use pudu_base::SandboxError;
use rustix::fs::OFlags;
use std::{
    fs::File,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

/// An uploaded file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Upload {
    /// The file's name.
    pub name: String,
    /// The agent's path of the file.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last modification.
    pub modified: SystemTime,
}

/// Opens a regular file folder by folder, so that no part of the path is a symlink.
pub(crate) fn open(root: &Dir, path: &str) -> Result<(File, u64), SandboxError> {
    let inner = inner(path)?;
    let name = inner.file_name().ok_or_else(|| no_file(path))?;
    let mut dir = root.try_clone().map_err(|error| failed(path, error))?;
    for part in inner.parent().into_iter().flat_map(Path::components) {
        if let Component::Normal(part) = part {
            plain(&dir, part.as_ref(), path)?;
            dir = dir.open_dir(part).map_err(|error| failed(path, error))?;
        }
    }
    plain(&dir, name.as_ref(), path)?;
    let mut options = OpenOptions::new();
    // A pipe in place of the file does not block, and a symlink is not followed.
    options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
    let file = dir.open_with(name, &options).map_err(|error| failed(path, error))?;
    let meta = file.metadata().map_err(|error| failed(path, error))?;
    if meta.is_file() { Ok((file.into_std(), meta.len())) } else { Err(no_file(path)) }
}

/// Converts an agent's path to one below the root.
pub(crate) fn inner(path: &str) -> Result<PathBuf, SandboxError> {
    let outside = || SandboxError::Outside { path: path.to_owned() };
    let below = Path::new(path).strip_prefix(ROOT).map_err(|_| outside())?;
    let plain = below.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if plain && !path.contains('\0') { Ok(below.to_owned()) } else { Err(outside()) }
}

/// Refuses entries other than files and folders.
fn plain(dir: &Dir, name: &Path, path: &str) -> Result<(), SandboxError> {
    let meta = dir.symlink_metadata(name).map_err(|error| failed(path, error))?;
    if meta.is_symlink() {
        return Err(SandboxError::Refused(format!("{path} is a symlink; put a copy there")));
    }
    if meta.is_file() || meta.is_dir() { Ok(()) } else { Err(no_file(path)) }
}

pub(crate) fn uploads(root: &Dir, limit: usize) -> Result<Vec<Upload>, SandboxError> {
    let listed = || {
        let mut found = Vec::new();
        for entry in root.open_dir(UPLOADS)?.entries()? {
            let entry = entry?;
            let (name, meta) = (entry.file_name().to_string_lossy().into_owned(), entry.metadata()?);
            if meta.is_file() && found.len() < limit {
                let modified = meta.modified()?.into_std();
                found.push(Upload {
                    path: format!("{ROOT}/{UPLOADS}/{name}"),
                    name,
                    size: meta.len(),
                    modified,
                });
            }
        }
        found.sort();
        Ok(found)
    };
    listed().map_err(|error| failed(ROOT, error))
}

/// Returns the agent's path of an upload. The name must be a single path component.
pub(crate) fn upload_path(name: &str) -> Result<String, SandboxError> {
    let path = format!("{ROOT}/{UPLOADS}/{name}");
    match name.contains(['/', '\\', '\0']) || matches!(name, "" | "." | "..") {
        true => Err(SandboxError::Outside { path }),
        false => Ok(path),
    }
}

pub(crate) fn remove(root: &Dir, name: &str) -> Result<(), SandboxError> {
    let path = upload_path(name)?;
    let remove = || {
        let uploads = root.open_dir(UPLOADS)?;
        if !uploads.symlink_metadata(name)?.is_file() {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        uploads.remove_file(name)
    };
    remove().map_err(|error| failed(&path, error))
}

#[cfg(test)]
mod tests {
    use crate::{Folders, ThreadFiles};
    use pudu_base::SandboxError;
    use std::io::Read;

    fn place() -> (tempfile::TempDir, ThreadFiles) {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::new(folder.path().to_owned(), None);
        let data = folders.thread(&"t".into()).join("user-data");
        std::os::unix::fs::symlink(&data, folder.path().join("thread")).unwrap();
        for path in ["uploads/a.txt", "uploads/b.txt", "outputs/deep/c.txt", "workspace/secret"] {
            std::fs::create_dir_all(data.join(path).parent().unwrap()).unwrap();
            std::fs::write(data.join(path), path).unwrap();
        }
        let local = folders.thread_files(&"t".into());
        let outputs = folder.path().join("thread/outputs");
        std::fs::write(folder.path().join("host"), "of the host").unwrap();
        std::os::unix::fs::symlink("../workspace", outputs.join("folder")).unwrap();
        std::os::unix::fs::symlink("../workspace/secret", outputs.join("inside")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("host"), outputs.join("outside")).unwrap();
        std::os::unix::fs::symlink("../outputs/deep/c.txt", folder.path().join("thread/uploads/link"))
            .unwrap();
        (folder, local)
    }

    #[tokio::test]
    async fn only_regular_files_are_opened() {
        let (folder, local) = place();
        let (mut file, size) = local.open("/mnt/user-data/outputs/deep/c.txt").await.unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), size), ("outputs/deep/c.txt", 18));
        let pipe = folder.path().join("thread/outputs/pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        for inner in [
            "inside",
            "outside",
            "folder/secret",
            "pipe",
            "deep",
            "none",
            "../workspace/secret",
            "..",
            "",
            "a\0",
        ] {
            let opened = local.open(&format!("/mnt/user-data/outputs/{inner}")).await;
            assert!(opened.is_err(), "{inner}: {opened:?}");
        }
    }

    #[tokio::test]
    async fn reading_an_unknown_thread_creates_no_folder() {
        let home = tempfile::tempdir().unwrap();
        let folders = Folders::new(home.path().to_owned(), None);
        let files = folders.thread_files(&"unknown".into());
        assert_eq!(files.uploads(10).await.unwrap(), []);
        let opened = files.open("/mnt/user-data/outputs/a").await;
        assert!(matches!(opened, Err(SandboxError::Missing { path }) if path == "/mnt/user-data/outputs/a"));
        assert!(matches!(files.open("/etc/passwd").await, Err(SandboxError::Outside { .. })));
        assert!(matches!(files.remove_upload("a").await, Err(SandboxError::Missing { .. })));
        assert!(matches!(files.remove_upload("../a").await, Err(SandboxError::Outside { .. })));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn uploads_are_listed_and_removed_by_name() {
        let (_folder, local) = place();
        let names = async |limit| {
            let found = local.uploads(limit).await.unwrap();
            found.into_iter().map(|upload| (upload.name, upload.size)).collect::<Vec<_>>()
        };
        assert_eq!(names(10).await, [("a.txt".to_owned(), 13), ("b.txt".to_owned(), 13)]);
        assert_eq!(names(1).await.len(), 1);
        for name in ["", ".", "..", "../outputs/deep/c.txt", "x\\y", "link", "none"] {
            assert!(local.remove_upload(name).await.is_err(), "{name}");
        }
        local.remove_upload("a.txt").await.unwrap();
        assert_eq!(names(10).await, [("b.txt".to_owned(), 13)]);
    }
}
