//! Files that are complete or absent, even after a crash.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes a new file, durably.
///
/// # Errors
/// If the file exists already, or on an I/O error.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Writes a file durably and atomically: first to `part`, a new path in the same folder, then renames it.
///
/// # Errors
/// If `part` exists already, or on an I/O error. The file is unchanged unless only the last sync failed.
pub fn replace(path: &Path, part: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let moved = create(part, bytes, mode).and_then(|()| fs::rename(part, path));
    moved.inspect_err(|_| drop(fs::remove_file(part)))?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Makes the entries of a folder durable.
///
/// # Errors
/// On an I/O error.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_completely_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let (path, part) = (folder.path().join("file"), folder.path().join(".file.part"));
        for text in ["one", "two"] {
            replace(&path, &part, text.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A folder cannot be replaced by a file.
        let folder_path = folder.path().join("folder");
        fs::create_dir_all(folder_path.join("inner")).unwrap();
        assert!(replace(&folder_path, &part, b"three", 0o600).is_err());
        assert!(!part.exists() && folder_path.join("inner").exists());
        assert!(create(&path, b"four", 0o600).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    }
}
