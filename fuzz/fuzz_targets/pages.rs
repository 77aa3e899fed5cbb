//! Any bytes of any kind as a web page: read or named, marked as foreign, and nothing in it leaves the mark.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: (&str, &[u8])| pudu_tools::fuzzing::page(data.0, data.1));
