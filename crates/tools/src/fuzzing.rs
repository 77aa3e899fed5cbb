//! Ways in for fuzzers, which live in a workspace of their own and see only what is public. Each checks what
//! must hold for any input at all.

use crate::web;

/// Reads anything as a page: it ends, and nothing in it speaks with another's voice.
pub fn page(kind: &str, body: &[u8]) {
    if let Some(shown) = web::fuzz(kind, body) {
        assert_eq!(shown.matches("<web_page").count(), 1, "{shown}");
        assert_eq!(shown.matches("</web_page>").count(), 1, "{shown}");
        assert!(!shown.to_lowercase().contains("<system>"), "{shown}");
    }
}
