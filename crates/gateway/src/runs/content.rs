//! A message's content as programs send it to LangGraph: text, or blocks of text and images in the formats of OpenAI,
//! LangChain and Anthropic.

use base64::{Engine, prelude::BASE64_STANDARD};
use pudu_base::image_kind;
use pudu_channels::Attachment;
use serde_json::Value;

/// Maximum number of images in a message.
const MAX_IMAGES: usize = 20;

/// Text and images of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PostedContent {
    pub(crate) text: String,
    /// Its images. Each handle is a `data:` URL or the URL of the image.
    pub(crate) images: Vec<Attachment>,
}

/// Parses a message's content. The error names the block.
pub(crate) fn read(content: &Value) -> Result<PostedContent, String> {
    let blocks = match content {
        Value::String(text) => return Ok(PostedContent { text: text.clone(), images: Vec::new() }),
        Value::Array(blocks) => blocks,
        _ => return Err("content must be text or a list of blocks".to_owned()),
    };
    let mut read = PostedContent::default();
    let mut words = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let wrong = |why: &str| format!("content[{at}]: {why}");
        match (block, block["type"].as_str()) {
            (Value::String(text), _) => words.push(text.as_str()),
            (_, Some("text")) => {
                words.push(block["text"].as_str().ok_or_else(|| wrong("text must be a string"))?)
            }
            (_, Some("image_url" | "image")) => {
                let source = source(block).ok_or_else(|| wrong("the block has no image"))?;
                let number = read.images.len() + 1;
                read.images.push(attachment(&source, number).map_err(wrong)?);
            }
            (_, Some(kind)) => {
                return Err(wrong(&format!("{kind:?} blocks are not supported: send text or images")));
            }
            (_, None) => return Err(wrong("the block has no type")),
        }
    }
    if read.images.len() > MAX_IMAGES {
        return Err(format!("content has more than {MAX_IMAGES} images"));
    }
    read.text = words.join("\n");
    Ok(read)
}

/// Source of an image: a URL, or base64 data in the block.
#[derive(Debug, PartialEq, Eq)]
enum BlockImage<'a> {
    Url(&'a str),
    Base64(&'a str),
}

/// Finds the image of a block: OpenAI's `image_url`, an object or a string; LangChain's `base64`, `data` or `url`;
/// Anthropic's `source`.
fn source(block: &Value) -> Option<BlockImage<'_>> {
    let url = &block["image_url"];
    if let Some(url) = url.as_str().or(url["url"].as_str()) {
        return Some(BlockImage::Url(url));
    }
    [block, &block["source"]].into_iter().find_map(|of| {
        let data = of["base64"].as_str().or(of["data"].as_str());
        data.map(BlockImage::Base64).or_else(|| of["url"].as_str().map(BlockImage::Url))
    })
}

fn attachment(source: &BlockImage<'_>, number: usize) -> Result<Attachment, &'static str> {
    let base64 = match source {
        BlockImage::Base64(base64) => base64,
        BlockImage::Url(url) => match url.split_once(',') {
            Some((head, base64)) if head.starts_with("data:") && head.ends_with(";base64") => base64,
            _ if url.starts_with("http://") || url.starts_with("https://") => {
                let name = format!("image-{number}");
                return Ok(Attachment { handle: (*url).to_owned(), name, size: None });
            }
            _ => return Err("its url must be a data: URL in base64"),
        },
    };
    let bytes = BASE64_STANDARD.decode(base64).map_err(|_| "its data is not valid base64")?;
    let mime = image_kind(&bytes).ok_or("its data must be a PNG, JPEG, WebP or GIF image")?;
    let ending = mime.trim_start_matches("image/");
    Ok(Attachment {
        handle: format!("data:{mime};base64,{base64}"),
        name: format!("image-{number}.{ending}"),
        size: Some(bytes.len() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PNG: &str = "iVBORw0KGgo=";

    #[test]
    fn text_and_images_are_read_in_every_form() {
        let url = format!("data:image/png;base64,{PNG}");
        for block in [
            json!({"type": "image_url", "image_url": {"url": url}}),
            json!({"type": "image_url", "image_url": url}),
            json!({"type": "image", "source_type": "base64", "mime_type": "image/png", "data": PNG}),
            json!({"type": "image", "mime_type": "image/jpeg", "base64": PNG}),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        ] {
            let content = json!([{"type": "text", "text": "what"}, block, "is this?"]);
            let image = Attachment { handle: url.clone(), name: "image-1.png".into(), size: Some(8) };
            let expect = PostedContent { text: "what\nis this?".into(), images: vec![image] };
            assert_eq!(read(&content), Ok(expect), "{content}");
        }
        let far = json!([{"type": "image_url", "image_url": {"url": "https://deer.example/a.png"}}]);
        assert_eq!(read(&far).unwrap().images[0].handle, "https://deer.example/a.png");
        assert_eq!(read(&json!("hello")).unwrap().text, "hello");
    }

    #[test]
    fn invalid_content_is_refused_with_its_position() {
        for (content, why) in [
            (json!(7), "content must be text or a list of blocks"),
            (json!([{"type": "text", "text": 7}]), "content[0]: text must be a string"),
            (
                json!(["a", {"type": "video"}]),
                "content[1]: \"video\" blocks are not supported: send text or images",
            ),
            (json!([{"text": "a"}]), "content[0]: the block has no type"),
            (json!([{"type": "image"}]), "content[0]: the block has no image"),
            (json!([{"type": "image", "base64": "%"}]), "content[0]: its data is not valid base64"),
            (
                json!([{"type": "image", "base64": "AAAA"}]),
                "content[0]: its data must be a PNG, JPEG, WebP or GIF image",
            ),
            (
                json!([{"type": "image", "url": "file:///etc/passwd"}]),
                "content[0]: its url must be a data: URL in base64",
            ),
            (
                json!([{"type": "image_url", "image_url": "data:image/png,a"}]),
                "content[0]: its url must be a data: URL in base64",
            ),
            (json!(vec![json!({"type": "image", "base64": PNG}); 21]), "content has more than 20 images"),
        ] {
            assert_eq!(read(&content).unwrap_err(), why, "{content}");
        }
    }
}
