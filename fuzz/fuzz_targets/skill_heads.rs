//! Any text as a `SKILL.md`: its head is refused with a reason, or read with a plain name and bounded notes.
#![no_main]

use pudu_skills::{Front, is_skill_name};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match Front::read(&String::from_utf8_lossy(data), Some("folder")) {
        Err(why) => assert!(!why.is_empty()),
        Ok(front) => {
            assert!(is_skill_name(&front.name) && !front.about.is_empty());
            assert!(front.about.chars().count() <= 1024 && front.notes.len() <= 20);
            assert!(front.argument_hint.is_none_or(|hint| !hint.contains(['\n', '`'])));
        }
    }
});
