//! Any bytes as a document: Markdown within its bounds, or an error with words. What libraries panic over is
//! caught where they are used, and is no finding; what takes the process down or does not end is one.
#![no_main]

use pudu_documents::{Limits, convert};
use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    let limits = Limits { expanded: 8 << 20, output: 64 << 10, ..Limits::default() };
    for name in ["a", "a.csv", "a.html"] {
        match convert(data, name, &limits) {
            Ok(document) => assert!(document.markdown.len() < limits.output + 100),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
