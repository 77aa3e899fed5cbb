//! Entry points for fuzzers, which are in a separate workspace and see only public items. Each checks properties that
//! hold for any input.

use crate::web;

/// Parses any input as a page: this ends, and its text cannot imitate another speaker.
pub fn page(kind: &str, body: &[u8]) {
    if let Some(shown) = web::fuzz(kind, body) {
        assert_eq!(shown.matches("<web_page").count(), 1, "{shown}");
        assert_eq!(shown.matches("</web_page>").count(), 1, "{shown}");
        assert!(!shown.to_lowercase().contains("<system>"), "{shown}");
    }
}
