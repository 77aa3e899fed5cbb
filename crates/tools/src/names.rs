//! Finds files regardless of the Unicode form of their names: macOS decomposes accents, models compose them.

use pudu_base::Sandbox;
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Maximum number of a folder's entries that are compared with a name.
const MAX_SIBLINGS: usize = 50_000;

/// Returns a text with its accents composed.
pub(crate) fn composed(text: &str) -> Cow<'_, str> {
    let already = text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes;
    if already { text.into() } else { text.nfc().collect::<String>().into() }
}

/// Returns the path of the existing file or folder that differs from this path only in the form of accents. A path
/// without a match is returned unchanged.
pub(crate) async fn existing(sandbox: &dyn Sandbox, path: String) -> String {
    if has_one_spelling(&path) {
        return path;
    }
    let mut found = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let next = format!("{found}/{name}");
        if has_one_spelling(name) {
            found = next;
            continue;
        }
        let entries = sandbox.list(&found, 1, MAX_SIBLINGS).await.unwrap_or_default();
        let mut names =
            entries.iter().filter_map(|entry| entry.path.trim_end_matches('/').rsplit('/').next());
        let same = |other: &&str| composed(other) == composed(name);
        match names.clone().find(|other| *other == name).or_else(|| names.find(same)) {
            Some(name) => found = format!("{found}/{name}"),
            None => return path,
        }
    }
    found
}

fn has_one_spelling(text: &str) -> bool {
    text.is_ascii() || (text.nfc().eq(text.chars()) && text.nfd().eq(text.chars()))
}
