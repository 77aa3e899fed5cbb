//! Any bytes as a document: Markdown within its bounds, or an error with words. What libraries panic over is
//! caught where they are used, and is no finding; what takes the process down or does not end is one.
#![no_main]

use pudu_documents::{DocumentLimits, convert, text::TextFile};
use std::sync::Once;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    let limits = DocumentLimits { expanded: 8 << 20, output: 64 << 10, ..DocumentLimits::default() };
    if let Ok(file) = TextFile::read(data.to_vec())
        && let Ok(same) = file.with_text(&file.text)
    {
        assert_eq!(same, data, "a text that nobody changed has other bytes");
    }
    for name in ["a", "a.csv", "a.html", "a.eml"] {
        match convert(data, name, &limits) {
            Ok(document) => assert!(document.markdown.len() < limits.output + 100),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
