//! Any bytes as an archive of a skill: refused with words, or taken with plain names and honest sizes. Bytes that are
//! no zip by themselves are also tried as what stands in a zip's own places.
#![no_main]

use pudu_skills::examine;
use std::io::{Cursor, Write};
use zip::{ZipWriter, write::SimpleFileOptions};

const SKILL: &[u8] = b"---\nname: demo\ndescription: For the fuzzer.\n---\n";

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    check(data);
    // An honest archive with one entry whose name is the input's first line, and then bytes of it changed.
    let (name, rest) = data.split_at(data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len()));
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let entries = [("SKILL.md", SKILL), (&*String::from_utf8_lossy(name), rest)];
    for (name, bytes) in entries {
        if zip.start_file(name, SimpleFileOptions::default()).is_err() || zip.write_all(bytes).is_err() {
            return;
        }
    }
    let Ok(whole) = zip.finish() else { return };
    let mut whole = whole.into_inner();
    check(&whole);
    for change in rest.chunks_exact(3).take(8) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % whole.len();
        whole[at] = change[2];
    }
    check(&whole);
});

fn check(archive: &[u8]) {
    match examine(Cursor::new(archive)) {
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
        Ok(contents) => {
            assert!(contents.files.len() <= 4096 && contents.bytes <= 512 * 1024 * 1024);
            for file in &contents.files {
                let odd = |part: &str| part.is_empty() || part == "." || part == "..";
                assert!(!file.starts_with('/') && !file.split('/').any(odd), "{file:?}");
                assert!(!file.contains(['\\', ':', '\0', '\n']), "{file:?}");
            }
        }
    }
}
