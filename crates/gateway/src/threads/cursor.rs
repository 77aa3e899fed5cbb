//! Encoded cursors of thread lists, which clients send back. They reveal nothing that the list does not show.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use pudu_store::ThreadCursor;

/// Encodes a cursor.
pub(super) fn write(cursor: &ThreadCursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {} {}", u8::from(cursor.pinned), cursor.updated, cursor.id))
}

/// Decodes a cursor; `None` if it is invalid.
pub(super) fn read(text: &str) -> Option<ThreadCursor> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let mut parts = text.splitn(3, ' ');
    let (pinned, updated, id) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let pinned = matches!(pinned, "0" | "1").then_some(pinned == "1")?;
    Some(ThreadCursor { pinned, updated, id: id.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_round_trip_and_garbage_is_refused() {
        let cursor = ThreadCursor { pinned: true, updated: -7, id: "a b\u{fc}".to_owned() };
        assert_eq!(read(&write(&cursor)), Some(cursor));
        for garbage in ["", "x", "!", "MQ", "MSBhIGI", "MiA3IGE"] {
            assert_eq!(read(garbage), None, "{garbage}");
        }
    }
}
