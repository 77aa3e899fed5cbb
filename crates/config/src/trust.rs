//! Trust in files, based on their owners. Some files name programs to run, or grant access to the daemon. Such a file
//! is not trusted if another user of the machine owns it or can change it.
//!
//! Deliberately absent: files that only hold data, and read permissions.

use rustix::process::{getegid, geteuid};
use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The sticky bit of a folder, which prevents users from replacing files of others.
const STICKY: u32 = 0o1000;
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The reason why a file is not trusted.
#[derive(Debug, thiserror::Error)]
#[error("{} is not trusted: {what}. {help}", file.display())]
pub struct Untrusted {
    /// The file.
    pub file: PathBuf,
    /// Description of the problem.
    pub what: String,
    /// The fix for the operator.
    pub help: String,
}

/// Effective user and group of the process.
#[derive(Clone, Copy)]
struct Us {
    user: u32,
    group: u32,
}

/// Checks that only root and the daemon's own user can change a file and every folder above it.
///
/// # Errors
/// When another user can change one, or the permissions cannot be read.
pub fn check(file: &Path) -> Result<(), Untrusted> {
    let us = Us { user: geteuid().as_raw(), group: getegid().as_raw() };
    let unknown = |error: io::Error| Untrusted {
        file: file.to_owned(),
        what: format!("its owner cannot be determined: {error}"),
        help: "Make its folder readable".to_owned(),
    };
    // The link itself is checked as well, because a user who can change it can point it elsewhere.
    let path_as_written = std::path::absolute(file).map_err(unknown)?;
    let real = path_as_written.canonicalize().map_err(unknown)?;
    for path in [&path_as_written, &real].into_iter().flat_map(|path| path.ancestors()) {
        let about = path.symlink_metadata().map_err(unknown)?;
        if about.is_symlink() {
            continue;
        }
        if let Some((what, help)) = us.objection(path, &about) {
            return Err(Untrusted { file: file.to_owned(), what, help });
        }
    }
    Ok(())
}

impl Us {
    fn objection(self, path: &Path, about: &Metadata) -> Option<(String, String)> {
        let (shown, mode) = (path.display(), about.mode());
        if about.uid() != 0 && about.uid() != self.user {
            let what =
                format!("{shown} belongs to user {}, and pudu runs as user {}", about.uid(), self.user);
            let help = format!("If you have read it and trust it: chown {} {shown}", self.user);
            return Some((what, help));
        }
        // Many systems give each user a private group with the same id; others have one group for all users.
        let own_group = about.gid() == self.group && self.group == self.user;
        let group = mode & GROUP_WRITES != 0 && !own_group && about.gid() != 0;
        let others = mode & OTHERS_WRITE != 0;
        let sticky = about.is_dir() && mode & STICKY != 0;
        ((group || others) && !sticky).then(|| {
            let what = format!("other users may write to {shown} (mode {:o})", mode & 0o7777);
            (what, format!("If you have read it and trust it: chmod go-w {shown}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// Returns the objection to `a/b/file` after a change to the folder.
    fn objection(change: impl FnOnce(&Path)) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/file");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        change(&root.path().join("a"));
        check(&file).err().map(|error| error.to_string().replace(&root.path().display().to_string(), ""))
    }

    fn mode(path: PathBuf, mode: u32) {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_trusted_if_no_other_user_can_change_it() {
        assert_eq!(objection(|_| {}), None);
        assert_eq!(objection(|a| mode(a.join("b/file"), 0o664)), None, "a group of this user");
        assert_eq!(objection(|a| mode(a.to_owned(), 0o1777)), None, "sticky");
        let said = objection(|a| mode(a.join("b/file"), 0o666)).unwrap();
        let expected = "/a/b/file is not trusted: other users may write to /a/b/file (mode 666). If you have read it \
                        and trust it: chmod go-w /a/b/file";
        assert_eq!(said, expected);
        assert!(objection(|a| mode(a.to_owned(), 0o777)).unwrap().contains("may write to /a (mode 777)"));
        let elsewhere = |a: &Path| {
            std::fs::create_dir(a.join("open")).unwrap();
            std::fs::rename(a.join("b/file"), a.join("open/file")).unwrap();
            symlink(a.join("open/file"), a.join("b/file")).unwrap();
            mode(a.join("open"), 0o777);
        };
        assert!(objection(elsewhere).unwrap().contains("may write to /a/open"));
        assert!(
            objection(|a| std::fs::remove_file(a.join("b/file")).unwrap())
                .unwrap()
                .contains("cannot be determined")
        );
    }

    /// Only root can give files away.
    #[test]
    fn a_file_of_another_user_is_not_trusted() {
        if !geteuid().is_root() {
            return;
        }
        let said = objection(|a| chown(a.join("b/file"), Some(12_345), None).unwrap()).unwrap();
        let expected = "/a/b/file is not trusted: /a/b/file belongs to user 12345, and pudu runs as user 0. If you \
                        have read it and trust it: chown 0 /a/b/file";
        assert_eq!(said, expected);
        assert!(
            objection(|a| chown(a, Some(12_345), None).unwrap())
                .unwrap()
                .contains("/a belongs to user 12345")
        );
        assert!(
            objection(|a| {
                mode(a.join("b"), 0o770);
                chown(a.join("b"), None, Some(12_345)).unwrap();
            })
            .is_some()
        );
    }
}
