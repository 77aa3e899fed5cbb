//! Entry point for fuzzers. They are in a separate workspace and can access only public items, so this module builds a
//! thread's folder and checks the properties that must hold for any text used as a path or file name in it.

use crate::{
    files::Files,
    mounts::{self, ACP, Mount, ROOT},
    names, share,
};
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Content of every file outside of the thread. No file inside the thread has it.
const OUTSIDE: &str = "of the host";
/// Content of files written inside the thread.
const INSIDE: &[u8] = b"of the thread";

/// A thread with links to the outside in its folder.
pub struct Paths {
    folder: PathBuf,
    files: Files,
}

impl Paths {
    /// Creates a thread in an empty folder.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let (own, shown) = (folder.join("thread"), folder.join("shown"));
        for place in [&own, &shown, &own.join("outputs"), &own.join("uploads"), &own.join("workspace")] {
            fs::create_dir_all(place)?;
        }
        for (at, to) in [("workspace/up", ".."), ("outputs/out", "../../"), ("uploads/root", "/")] {
            std::os::unix::fs::symlink(to, own.join(at))?;
        }
        std::os::unix::fs::symlink(folder.join("secret"), own.join("outputs/secret"))?;
        fs::write(folder.join("secret"), OUTSIDE)?;
        fs::write(shown.join("note"), OUTSIDE)?;
        let more = vec![Mount { host: shown, agent: ACP.to_owned(), read_only: true }];
        Ok(Self { folder: folder.to_owned(), files: Files::new(own, more, None) })
    }

    /// Uses a text as a path and as a file name. Checks that it does not lead out of the thread's folders.
    pub fn check(&self, text: &str) {
        self.read(text);
        self.write(text);
        plain(text);
        name(text);
    }

    fn read(&self, text: &str) {
        let opened = self.files.read(text, 100).ok();
        // Other mounts do not belong to the thread but are readable.
        let shown = mounts::find(self.files.mounts().unwrap_or_default(), text);
        if shown.is_some_and(|(mount, _)| mount.agent == ROOT) {
            assert_ne!(opened.as_deref(), Some(OUTSIDE.as_bytes()), "{text:?}");
        }
        let copy = self.folder.join("kept");
        if self.files.keep(text, &copy, 100).is_ok() {
            assert_ne!(fs::read(&copy).ok().as_deref(), Some(OUTSIDE.as_bytes()), "{text:?}");
            fs::remove_file(copy).ok();
        }
    }

    fn write(&self, text: &str) {
        if self.files.write(text, INSIDE, text.len().is_multiple_of(2)).is_ok() {
            let (mount, _) = mounts::find(self.files.mounts().unwrap_or_default(), text).unzip();
            assert_eq!(mount.map(|mount| mount.agent.as_str()), Some(ROOT), "{text:?}");
        }
        self.files.list(text, 2, 10).ok();
        assert_eq!(
            fs::read(self.folder.join("secret")).ok().as_deref(),
            Some(OUTSIDE.as_bytes()),
            "{text:?}"
        );
        let mut entries: Vec<_> = fs::read_dir(&self.folder).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        let entries: Vec<_> = entries.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(entries, ["secret", "shown", "thread"], "{text:?}");
    }
}

/// Checks that a path accepted below the root has no `..`, no root component and no NUL.
fn plain(text: &str) {
    if let Ok(inner) = share::inner(text) {
        let down = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        assert!(inner.components().all(down) && !text.contains('\0'), "{text:?}");
    }
}

/// Checks that a safe name has a single component and no confusing characters.
fn name(text: &str) {
    let name = names::safe(text);
    assert!((1..=200).contains(&name.len()), "{text:?}: {name:?}");
    assert!(!name.contains(['/', '\\', '\0']) && !name.contains(char::is_control), "{text:?}: {name:?}");
    assert!(!name.starts_with('.') && name.trim() == name, "{text:?}: {name:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates path components that users or attackers might choose.
    fn piece() -> impl Strategy<Value = String> {
        let known = [
            "/",
            "//",
            ".",
            "..",
            "../",
            "/..",
            "/mnt/user-data",
            "/mnt/user-data/",
            "/mnt/acp-workspace/",
            "mnt",
            "user-data",
            "outputs",
            "uploads",
            "workspace",
            "up",
            "out",
            "root",
            "secret",
            "note",
            "shown",
            "thread",
            "%2e%2e",
            "%2f",
            "\0",
            "\\",
            " ",
            "~",
            "ü",
            "\u{202e}",
            "a.txt",
            "C:",
            "\n",
        ];
        let known = proptest::sample::select(known.to_vec()).prop_map(str::to_owned);
        prop_oneof![8 => known, 1 => any::<String>(), 1 => "[a-z]{250,300}"]
    }

    fn text() -> impl Strategy<Value = String> {
        let begin =
            prop_oneof![Just(""), Just("/mnt/user-data/"), Just("/mnt/user-data/outputs/"), Just("/mnt/")];
        let joint = prop_oneof![Just(""), Just("/")];
        (begin, proptest::collection::vec(piece(), 0..8), joint)
            .prop_map(|(begin, pieces, joint)| format!("{begin}{}", pieces.join(joint)))
    }

    #[test]
    fn no_text_leads_out_of_the_threads_folders() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::new(folder.path()).unwrap();
        let config = ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(text in text())| paths.check(&text));
        paths.check(&format!("/mnt/user-data/{}", "a/".repeat(5000)));
        paths.check(&"../".repeat(5000));
    }
}
