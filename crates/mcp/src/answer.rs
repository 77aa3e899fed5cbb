//! A server's answer, as text that a model can read, and the images that it can see.

use base64::{Engine, prelude::BASE64_STANDARD};
use pudu_base::{Cut, image_kind};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Maximum length of an answer, in characters; both ends are kept.
const MAX_ANSWER_CHARS: usize = 1 << 20;
/// Maximum number of images taken of an answer.
const MAX_IMAGES: usize = 8;
/// Maximum size of those together, in bytes.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// As many are passed on where the answer is not kept whole elsewhere.
pub(crate) const SHOWN: Cut = Cut::Middle(50_000);

/// A server's answer.
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    /// The contents of its images.
    pub(crate) images: Vec<Vec<u8>>,
}

/// Flattens an answer: its texts, a word in the place of what is no text, or its structured content if
/// that is all there is.
pub(crate) fn read(result: &CallToolResult) -> ToolAnswer {
    let mut images = Vec::new();
    let blocks: Vec<String> = result.content.iter().map(|content| block(content, &mut images)).collect();
    let text = match &result.structured_content {
        Some(value) if blocks.is_empty() => value.to_string(),
        _ => blocks.join("\n"),
    };
    let text = if text.is_empty() { "(no output)".to_owned() } else { text };
    ToolAnswer { text: Cut::Middle(MAX_ANSWER_CHARS).apply(text), images }
}

/// Returns whether a text had to be cut to be taken.
pub(crate) fn is_cut(text: &str) -> bool {
    // What stands in the place of the middle makes it longer than anything that was taken whole.
    text.len() > MAX_ANSWER_CHARS && text.chars().count() > MAX_ANSWER_CHARS
}

fn block(block: &ContentBlock, images: &mut Vec<Vec<u8>>) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => seen("image", &image.mime_type, &image.data, images),
        ContentBlock::Audio(audio) => unseen("sound", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                format!(
                    "{uri}: {}",
                    seen("file", mime_type.as_deref().unwrap_or("unknown type"), blob, images)
                )
            }
            _ => "[something that is not shown]".to_owned(),
        },
        _ => "[something that is not shown]".to_owned(),
    }
}

/// Takes an image, and returns what stands for it.
fn seen(what: &str, kind: &str, base64: &str, images: &mut Vec<Vec<u8>>) -> String {
    let taken: usize = images.iter().map(Vec::len).sum();
    let room = images.len() < MAX_IMAGES && base64.len() / 4 * 3 <= MAX_IMAGE_BYTES.saturating_sub(taken);
    let bytes = room.then(|| BASE64_STANDARD.decode(base64).ok()).flatten();
    let Some(bytes) = bytes.filter(|bytes| image_kind(bytes).is_some()) else {
        return unseen(what, kind, base64);
    };
    let size = bytes.len();
    images.push(bytes);
    format!("[image {}, {kind}, {size} bytes]", images.len())
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
        assert_eq!(read(&result).text, expect, "{answer}");
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
    fn images_are_taken_as_far_as_there_is_room() {
        let image = |bytes: &[u8]| json!({"type": "image", "mimeType": "image/png", "data": BASE64_STANDARD.encode(bytes)});
        let png = |size: usize| [&b"\x89PNG\r\n\x1a\n"[..], &vec![0; size - 8]].concat();
        let large = png(MAX_IMAGE_BYTES - 9);
        let blob = BASE64_STANDARD.encode(png(8));
        let answer = json!({"content": [
            image(&large),
            {"type": "resource", "resource": {"uri": "file:///b.png", "blob": blob}},
            image(&png(9)),
            {"type": "image", "mimeType": "image/png", "data": "no base64"},
        ]});
        let ToolAnswer { text, images } = read(&serde_json::from_value(answer).unwrap());
        assert!(images == [large, png(8)]);
        let expect = format!(
            "[image 1, image/png, {} bytes]\nfile:///b.png: [image 2, unknown type, 8 bytes]\n\
             [image, image/png, 9 bytes, not shown]\n[image, image/png, 6 bytes, not shown]",
            MAX_IMAGE_BYTES - 9
        );
        assert_eq!(text, expect);
        let many = json!({"content": vec![image(&png(8)); MAX_IMAGES + 1]});
        assert_eq!(read(&serde_json::from_value(many).unwrap()).images.len(), MAX_IMAGES);
    }

    #[test]
    fn a_giant_answer_keeps_both_ends_and_says_what_is_missing() {
        let giant = format!("begin{}end", "ü".repeat(MAX_ANSWER_CHARS));
        let answer = json!({"content": [{"type": "text", "text": giant}]});
        let text = read(&serde_json::from_value(answer).unwrap()).text;
        assert!(text.starts_with("beginü") && text.ends_with("üend"));
        assert!(text.contains("\n[… 8 characters left out …]\n"));
        assert!(is_cut(&text) && !is_cut(&"ä".repeat(MAX_ANSWER_CHARS)));
    }
}
