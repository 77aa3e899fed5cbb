//! Entry points for fuzzers, which are in a separate workspace and can access only public items. Each checks properties
//! that hold for any input.

use crate::web;

/// Parses arbitrary input as a page. Checks that parsing ends and that the text cannot imitate another speaker.
pub fn page(kind: &str, body: &[u8]) {
    if let Some(shown) = web::fuzz(kind, body) {
        assert_eq!(shown.matches("<web_page").count(), 1, "{shown}");
        assert_eq!(shown.matches("</web_page>").count(), 1, "{shown}");
        assert!(!shown.to_lowercase().contains("<system>"), "{shown}");
    }
}
