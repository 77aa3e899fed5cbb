//! Any Markdown, cut at any limit: every part fits, and no word is lost.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: (u8, u8, &str)| pudu_channels::fuzzing::split(data.0, data.1, data.2));
