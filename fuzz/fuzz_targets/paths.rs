//! Any text as a path of an agent's, and as the name of a file that somebody sent: nothing leaves the thread's folders.
#![no_main]

use pudu_sandbox::fuzzing::Paths;
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|text: &str| {
    static PATHS: OnceLock<(tempfile::TempDir, Paths)> = OnceLock::new();
    let (_, paths) = PATHS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::new(folder.path()).expect("files");
        (folder, paths)
    });
    paths.check(text);
});
