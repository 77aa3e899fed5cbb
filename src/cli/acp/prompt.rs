//! The content of a prompt.

use serde_json::{Value, json};

/// A prompt for a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PromptContent {
    /// Its text, with links and embedded texts.
    pub(super) text: String,
    /// Its images, as blocks of a message.
    pub(super) images: Vec<Value>,
}

impl PromptContent {
    /// Reads the blocks of a prompt. A block that cannot be passed on is named in the text.
    pub(super) fn read(blocks: &Value) -> Self {
        let mut prompt = Self::default();
        for block in blocks.as_array().into_iter().flatten() {
            prompt.add(block);
        }
        prompt
    }

    fn add(&mut self, block: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let resource = &block["resource"];
        match block["type"].as_str().unwrap_or_default() {
            "text" => self.text.push_str(&text(&block["text"])),
            "resource_link" => {
                self.text.push_str(&format!("[{}]({})", text(&block["name"]), text(&block["uri"])));
            }
            "resource" if resource["text"].is_string() => {
                let (uri, content) = (text(&resource["uri"]), text(&resource["text"]));
                let fence = fence(&content);
                self.text.push_str(&format!("\n\n{uri}\n{fence}\n{content}\n{fence}\n"));
            }
            "image" if block["data"].is_string() => self.images.push(json!({
                "type": "image", "mime_type": block["mimeType"], "base64": block["data"],
            })),
            "resource" => self
                .text
                .push_str(&format!("\n\n({} is not text and was not passed on)", text(&resource["uri"]))),
            other => self.text.push_str(&format!("\n\n(content of the type {other:?} was not passed on)")),
        }
    }

    /// Returns the content of a message.
    pub(super) fn content(&self) -> Value {
        if self.images.is_empty() {
            return json!(self.text);
        }
        let text = json!({ "type": "text", "text": self.text });
        std::iter::once(text).chain(self.images.iter().cloned()).collect()
    }
}

/// Returns a fence that the content does not contain.
fn fence(content: &str) -> String {
    let mut fence = "```".to_owned();
    while content.contains(&fence) {
        fence.push('`');
    }
    fence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_a_prompt_is_passed_on_or_named() {
        let blocks = json!([
            {"type": "text", "text": "Look at "},
            {"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs"},
            {"type": "resource", "resource": {"uri": "file:///b.md", "text": "```\nx\n```"}},
            {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": "AA=="}},
            {"type": "audio", "data": "AA=="},
            {"type": "image", "mimeType": "image/png", "data": "iVBOR"},
            7,
        ]);
        let prompt = PromptContent::read(&blocks);
        for part in [
            "Look at [a.rs](file:///a.rs)",
            "\n\nfile:///b.md\n````\n```\nx\n```\n````\n",
            "(file:///c.bin is not text and was not passed on)",
            "(content of the type \"audio\" was not passed on)",
        ] {
            assert!(prompt.text.contains(part), "{}", prompt.text);
        }
        let content = prompt.content();
        assert_eq!(content[1], json!({"type": "image", "mime_type": "image/png", "base64": "iVBOR"}));
        assert_eq!(PromptContent::read(&json!([{"type": "text", "text": "hi"}])).content(), "hi");
    }
}
