//! Any bytes as a configuration: read or refused with words, never a panic. The module is taken as it is in
//! the program, which is no library.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the program uses what this does not")]

#[path = "../../src/config.rs"]
mod config;

use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder"));
    std::fs::write(folder.path().join("config.yaml"), data).expect("a file");
    let start = config::Start { dir: folder.path().to_owned(), ..config::Start::default() };
    if let Err(error) = config::load(&start) {
        assert!(!error.to_string().is_empty());
    }
});
