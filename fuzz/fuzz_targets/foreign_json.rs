//! Any bytes as foreign JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_net::fuzzing::foreign_json(data));
