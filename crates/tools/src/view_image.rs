//! Shows the model an image, where the model can see.

use crate::text_file::failed;
use pudu_base::{Image, ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum size of an image, in bytes: what providers take at most.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

pub(crate) struct ViewImage;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The image's absolute path: PNG, JPEG, WebP or GIF.
    image_path: String,
}

impl TypedTool for ViewImage {
    type Args = Args;
    const NAME: &'static str = "view_image";
    const DESCRIPTION: &'static str = "Shows you an image from your files. You see it in the next step.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let bytes = cx.sandbox.read(&args.image_path, MAX_IMAGE_BYTES).await.map_err(failed)?;
        let Some(mime) = kind(&bytes) else {
            return Err(ToolError(format!("{} is no PNG, JPEG, WebP or GIF", args.image_path)));
        };
        let text = format!("{} ({mime}, {} bytes) is shown to you.", args.image_path, bytes.len());
        let image = Some(Image { path: args.image_path, mime: mime.to_owned() });
        Ok(ToolOutput { text, image, ..ToolOutput::default() })
    }
}

/// Returns an image's kind by its first bytes; a name can say anything.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn an_image_is_told_by_its_first_bytes() {
        for (bytes, expect) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(kind(bytes), expect, "{bytes:?}");
        }
    }
}
