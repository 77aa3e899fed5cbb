//! Any bytes over Feishu's long connection: frames, fragments, garbage.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_channels::fuzzing::feishu_frames(data));
