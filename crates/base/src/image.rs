//! Media types of images that models accept.

use crate::{Image, SharedFile};

/// Detects an image's media type from its first bytes, since a file name is not reliable.
#[must_use]
pub fn image_kind(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        _ => return None,
    })
}

impl SharedFile {
    /// Returns the file as an image, if its extension is that of an image type that models accept.
    #[must_use]
    pub fn image(&self) -> Option<Image> {
        let (_, ending) = self.path.rsplit_once('.')?;
        let mime = match ending.to_ascii_lowercase().as_str() {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "webp" => "image/webp",
            "gif" => "image/gif",
            _ => return None,
        };
        Some(Image { path: self.path.clone(), mime: mime.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::image_kind;

    #[test]
    fn an_image_is_recognised_by_its_first_bytes() {
        for (bytes, expect) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg/>", None),
            (b"", None),
        ] {
            assert_eq!(image_kind(bytes), expect, "{bytes:?}");
        }
    }
}
