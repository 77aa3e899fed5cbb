//! A server's answer, as text that a model can read.

use pudu_base::Cut;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Maximum length of an answer, in characters; both ends are kept.
const MAX_ANSWER_CHARS: usize = 1 << 20;
/// As many are passed on where the answer is not kept whole elsewhere.
pub(crate) const SHOWN: Cut = Cut::Middle(50_000);

/// Flattens an answer: its texts, a word in the place of what is no text, or its structured content if
/// that is all there is.
pub(crate) fn text(result: &CallToolResult) -> String {
    let blocks: Vec<String> = result.content.iter().map(block).collect();
    let text = match &result.structured_content {
        Some(value) if blocks.is_empty() => value.to_string(),
        _ => blocks.join("\n"),
    };
    if text.is_empty() { "(no output)".to_owned() } else { Cut::Middle(MAX_ANSWER_CHARS).apply(text) }
}

/// Returns whether a text had to be cut to be taken.
pub(crate) fn is_cut(text: &str) -> bool {
    // What stands in the place of the middle makes it longer than anything that was taken whole.
    text.len() > MAX_ANSWER_CHARS && text.chars().count() > MAX_ANSWER_CHARS
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => unseen("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => unseen("sound", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!("{uri}: {}", unseen("file", mime_type.as_deref().unwrap_or("unknown type"), blob))
            }
            _ => "[something that is not shown]".to_owned(),
        },
        _ => "[something that is not shown]".to_owned(),
    }
}

/// Stands for bytes that are no text; four characters of base64 are three bytes.
fn unseen(what: &str, kind: &str, base64: &str) -> String {
    format!("[{what}, {kind}, {} bytes, not shown]", base64.trim_end_matches('=').len() * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(answer: &Value, expect: &str) {
        let result: CallToolResult = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(text(&result), expect, "{answer}");
    }

    #[test]
    fn every_kind_of_content_becomes_text() {
        check(
            &json!({"content": [
                {"type": "text", "text": "two"},
                {"type": "text", "text": "lines"},
                {"type": "image", "mimeType": "image/png", "data": "AAAAAA=="},
                {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
                {"type": "resource_link", "name": "notes", "uri": "file:///notes.md"},
                {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAAA"}},
            ]}),
            "two\nlines\n[image, image/png, 4 bytes, not shown]\n[sound, audio/wav, 3 bytes, not shown]\n\
             [notes](file:///notes.md)\nfile:///a.txt:\ninside\n\
             file:///b.bin: [file, unknown type, 3 bytes, not shown]",
        );
        check(&json!({"content": [], "structuredContent": {"sum": 3}}), r#"{"sum":3}"#);
        check(
            &json!({"content": [{"type": "text", "text": "three"}], "structuredContent": {"sum": 3}}),
            "three",
        );
        check(&json!({"content": []}), "(no output)");
    }

    #[test]
    fn a_giant_answer_keeps_both_ends_and_says_what_is_missing() {
        let giant = format!("begin{}end", "ü".repeat(MAX_ANSWER_CHARS));
        let text =
            text(&serde_json::from_value(json!({"content": [{"type": "text", "text": giant}]})).unwrap());
        assert!(text.starts_with("beginü") && text.ends_with("üend"));
        assert!(text.contains("\n[… 8 characters left out …]\n"));
        assert!(is_cut(&text) && !is_cut(&"ä".repeat(MAX_ANSWER_CHARS)));
    }
}
