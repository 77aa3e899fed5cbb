//! Converts a server's result to text for a model, and takes its images.

use base64::{Engine, prelude::BASE64_STANDARD_NO_PAD};
use pudu_base::{Cut, ToolOutput, image_kind};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Maximum length of an answer, in characters. A longer one loses its middle.
const MAX_ANSWER_CHARS: usize = 1 << 20;
/// Maximum number of images taken from a result.
const MAX_IMAGES: usize = 8;
/// Maximum total size of these images, in bytes.
const MAX_IMAGE_BYTES: usize = 16 << 20;
/// Length of a result that the model gets if the full result is not stored elsewhere.
pub(crate) const SHOWN: Cut = Cut::Middle(50_000);

/// A server's answer.
pub(crate) struct ToolAnswer {
    pub(crate) text: String,
    /// The contents of its images.
    pub(crate) images: Vec<Vec<u8>>,
}

/// Flattens a result to its texts, a note for each piece of other content, and its structured content unless the texts
/// repeat it.
pub(crate) fn read(result: &CallToolResult) -> ToolAnswer {
    let mut images = Vec::new();
    let mut blocks: Vec<String> = result.content.iter().map(|content| block(content, &mut images)).collect();
    if let Some(value) =
        result.structured_content.as_ref().filter(|value| !is_repeated(value, &result.content))
    {
        blocks.push(value.to_string());
    }
    let text = blocks.join("\n");
    let text = if text.is_empty() { "(no output)".to_owned() } else { text };
    ToolAnswer { text: Cut::Middle(MAX_ANSWER_CHARS).apply(text), images }
}

/// Converts a result for the model, with a note behind its text.
pub(crate) fn output(result: &CallToolResult, note: &str) -> ToolOutput {
    let ToolAnswer { text, images } = read(result);
    let partial = is_cut(&text);
    ToolOutput { text: text + note, cut: Some(SHOWN), partial, attached: images, ..ToolOutput::default() }
}

/// Returns whether the texts repeat the structured content. Python's server library puts a value that is not an object
/// under `result`, and sends each item of a list as a separate text.
fn is_repeated(structured: &Value, content: &[ContentBlock]) -> bool {
    let texts: Vec<&str> = content.iter().filter_map(|block| Some(block.as_text()?.text.trim())).collect();
    let wrapped = structured.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("result"));
    let is_all = |value: &Value| match value {
        Value::Array(items) if items.len() == texts.len() => {
            items.iter().zip(&texts).all(|(item, text)| is_same(item, text))
        }
        _ => false,
    };
    [Some(structured), wrapped]
        .into_iter()
        .flatten()
        .any(|value| texts.iter().any(|text| is_same(value, text)) || is_all(value))
}

/// Returns whether a text represents a value, as JSON in any layout or, for a string, as the string itself.
fn is_same(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) if own.trim() == text => true,
        _ => serde_json::from_str::<Value>(text).is_ok_and(|parsed| is_equal(&parsed, value)),
    }
}

/// Returns whether two values are equal. 5 and 5.0 are.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

/// Returns whether a text was cut to the maximum length.
fn is_cut(text: &str) -> bool {
    // With the note that replaces its middle, a cut text is longer than the limit.
    text.len() > MAX_ANSWER_CHARS && text.chars().count() > MAX_ANSWER_CHARS
}

fn block(block: &ContentBlock, images: &mut Vec<Vec<u8>>) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => take_image("image", &image.mime_type, &image.data, images),
        ContentBlock::Audio(audio) => not_shown("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => {
            let mime = link.mime_type.as_ref().map(|mime| format!(" ({mime})")).unwrap_or_default();
            let about = link.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
            format!("[{}]({}){mime}{about}", link.name, link.uri)
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.as_deref().unwrap_or("unknown type");
                match text_in(mime, blob) {
                    Some(text) => format!("{uri}:\n{text}"),
                    None => format!("{uri}: {}", take_image("file", mime, blob, images)),
                }
            }
            _ => "[content that cannot be shown]".to_owned(),
        },
        _ => "[content that cannot be shown]".to_owned(),
    }
}

/// Takes an image if there is room, and returns the note that replaces it in the text.
fn take_image(kind: &str, mime: &str, base64: &str, images: &mut Vec<Vec<u8>>) -> String {
    let used_bytes: usize = images.iter().map(Vec::len).sum();
    let room =
        images.len() < MAX_IMAGES && base64.len() / 4 * 3 <= MAX_IMAGE_BYTES.saturating_sub(used_bytes);
    let bytes = room.then(|| decode(base64)).flatten();
    let Some(bytes) = bytes.filter(|bytes| image_kind(bytes).is_some()) else {
        return not_shown(kind, mime, base64);
    };
    let size = bytes.len();
    images.push(bytes);
    format!("[image {}, {mime}, {size} bytes]", images.len())
}

/// Returns the note that replaces binary content. Base64 encodes three bytes as four characters.
fn not_shown(kind: &str, mime: &str, base64: &str) -> String {
    let size = base64.trim_end_matches('=').len() * 3 / 4;
    format!("[{kind}, {mime}, {size} bytes, not shown]")
}

/// Returns the text of a file; `None` if its type is not textual.
fn text_in(mime: &str, base64: &str) -> Option<String> {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = mime.starts_with("text/")
        || ["json", "xml", "yaml", "javascript"].iter().any(|format| mime.ends_with(format));
    is_text.then(|| decode(base64)).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// Decodes base64 in either alphabet, with or without padding and line breaks.
fn decode(base64: &str) -> Option<Vec<u8>> {
    let plain = |c: char| match c {
        '-' => '+',
        '_' => '/',
        c => c,
    };
    let cleaned: String = base64.chars().filter(|c| !c.is_whitespace() && *c != '=').map(plain).collect();
    BASE64_STANDARD_NO_PAD.decode(cleaned).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::BASE64_STANDARD;
    use serde_json::json;

    fn check_text(answer: &Value, expect: &str) {
        let result: CallToolResult = serde_json::from_value(answer.clone()).unwrap();
        assert_eq!(read(&result).text, expect, "{answer}");
    }

    #[test]
    fn every_kind_of_content_is_converted_to_text() {
        check_text(
            &json!({"content": [
                {"type": "text", "text": "two"},
                {"type": "text", "text": "lines"},
                {"type": "image", "mimeType": "image/png", "data": "AAAAAA=="},
                {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
                {"type": "resource_link", "name": "notes", "uri": "file:///notes.md"},
                {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///b.bin", "blob": "AAAA"}},
            ]}),
            "two\nlines\n[image, image/png, 4 bytes, not shown]\n[audio, audio/wav, 3 bytes, not shown]\n\
             [notes](file:///notes.md)\nfile:///a.txt:\ninside\n\
             file:///b.bin: [file, unknown type, 3 bytes, not shown]",
        );
        check_text(&json!({"content": [], "structuredContent": {"sum": 3}}), r#"{"sum":3}"#);
        check_text(&json!({"content": []}), "(no output)");
        let blob = |mime: &str| {
            let blob = BASE64_STANDARD.encode("a,b");
            json!({"content": [{"type": "resource", "resource": {"uri": "u:x", "mimeType": mime, "blob": blob}}]})
        };
        check_text(&blob("text/csv; charset=utf-8"), "u:x:\na,b");
        check_text(&blob("image/svg+xml"), "u:x:\na,b");
        check_text(&blob("application/zip"), "u:x: [file, application/zip, 3 bytes, not shown]");
        let link = json!({"type": "resource_link", "name": "n", "uri": "u:n", "mimeType": "text/csv", "description": "d"});
        check_text(&json!({"content": [link]}), "[n](u:n) (text/csv): d");
    }

    #[test]
    fn structured_content_is_added_unless_the_text_repeats_it() {
        let check = |texts: &[&str], structured: &Value, expect: &str| {
            let content: Vec<Value> =
                texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            check_text(&json!({"content": content, "structuredContent": structured}), expect);
        };
        check(&["2 found"], &json!({"items": [1, 2]}), "2 found\n{\"items\":[1,2]}");
        check(
            &["{\n \"b\": 1.0,\n \"a\": [\"x\"]\n}"],
            &json!({"a": ["x"], "b": 1}),
            "{\n \"b\": 1.0,\n \"a\": [\"x\"]\n}",
        );
        check(&["Done:", "{\"a\": 1}"], &json!({"a": 1}), "Done:\n{\"a\": 1}");
        check(&["{\"a\": 1}"], &json!({"a": 1, "b": 2}), "{\"a\": 1}\n{\"a\":1,\"b\":2}");
        check(&["sunny"], &json!({"result": "sunny"}), "sunny");
        check(&["5"], &json!({"result": 5}), "5");
        check(&["1", "two"], &json!({"result": [1, "two"]}), "1\ntwo");
        check(&["1", "two"], &json!({"result": [1, "two", 3]}), "1\ntwo\n{\"result\":[1,\"two\",3]}");
        check(&[" "], &json!(["a"]), " \n[\"a\"]");
    }

    #[test]
    fn images_are_taken_up_to_the_limits() {
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
    fn a_giant_answer_keeps_both_ends_and_notes_the_cut() {
        let giant = format!("begin{}end", "ü".repeat(MAX_ANSWER_CHARS));
        let answer = json!({"content": [{"type": "text", "text": giant}]});
        let text = read(&serde_json::from_value(answer).unwrap()).text;
        assert!(text.starts_with("beginü") && text.ends_with("üend"));
        assert!(text.contains("\n[… 8 characters left out …]\n"));
        assert!(is_cut(&text) && !is_cut(&"ä".repeat(MAX_ANSWER_CHARS)));
    }
}
