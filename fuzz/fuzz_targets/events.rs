//! Any bytes as server-sent events, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_net::fuzzing::events(data));
