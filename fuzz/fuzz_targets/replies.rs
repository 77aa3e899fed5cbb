//! Any bytes as a reply of each wire to a model, cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_model::fuzzing::reply(data));
