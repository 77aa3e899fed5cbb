//! Images in replies. Other media are skipped.

use base64::{Engine, engine::general_purpose::STANDARD};
use pudu_base::{Delta, image_kind};

/// Maximum number of images in a reply.
const MAX_IMAGES: usize = 10;
/// Maximum size of all images of a reply, in bytes.
pub(crate) const MAX_IMAGE_BYTES: usize = 32 * 1024 * 1024;

/// Separator between the type and the data in a data URL.
const BASE64_MARK: &str = ";base64,";

/// Images and other media in a reply.
#[derive(Debug, Default)]
pub(crate) struct ReplyMedia {
    images: usize,
    bytes: usize,
    left_out: usize,
    /// The newest image, because some gateways repeat it at the end.
    newest: Vec<u8>,
}

impl ReplyMedia {
    /// Adds the base64 data of an image. Skips other media, and images above the limits.
    pub(crate) fn take(&mut self, data: &str, out: &mut Vec<Delta>) {
        let room = MAX_IMAGE_BYTES.saturating_sub(self.bytes);
        // Base64 encodes three bytes as four characters.
        let fits = self.images < MAX_IMAGES && data.len() / 4 * 3 <= room;
        let image = fits.then(|| STANDARD.decode(data.trim()).ok()).flatten();
        match image.filter(|bytes| image_kind(bytes).is_some()) {
            Some(bytes) if bytes == self.newest => {}
            Some(bytes) => {
                self.images += 1;
                self.bytes += bytes.len();
                self.newest.clone_from(&bytes);
                out.push(Delta::Image(bytes));
            }
            None => self.left_out += 1,
        }
    }

    /// Adds an image given as a data URL.
    pub(crate) fn take_url(&mut self, url: &str, out: &mut Vec<Delta>) {
        match url.strip_prefix("data:image/").and_then(|rest| rest.split_once(BASE64_MARK)) {
            Some((_, data)) => self.take(data, out),
            None => self.left_out += 1,
        }
    }

    /// Adds an image from the text of a reply, given as a data URL. Returns `false` if the URL is not an image, so that
    /// the text is kept.
    pub(crate) fn take_inline(&mut self, url: &str, out: &mut Vec<Delta>) -> bool {
        let Some((_, data)) = url.split_once(BASE64_MARK) else { return false };
        let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
        let is_whole = data.len().is_multiple_of(4) && data.trim_end_matches('=').chars().all(is_base64);
        let is_image = is_whole && Self::begins_image(url);
        if is_image {
            self.take(data, out);
        }
        is_image
    }

    /// Returns whether the data of a URL, which may be truncated, begins like an image.
    pub(crate) fn begins_image(url: &str) -> bool {
        let Some((_, data)) = url.split_once(BASE64_MARK) else { return false };
        let length = data.len().min(64) / 4 * 4;
        let head = data.get(..length).and_then(|head| STANDARD.decode(head).ok());
        head.is_some_and(|bytes| image_kind(&bytes).is_some())
    }

    /// Counts a skipped image.
    pub(crate) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    /// Returns the number of skipped images and other media.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    fn read(images: &[&[u8]]) -> (usize, usize) {
        let (mut media, mut out) = (ReplyMedia::default(), Vec::new());
        images.iter().for_each(|image| media.take(&STANDARD.encode(image), &mut out));
        (out.len(), media.left_out())
    }

    #[test]
    fn images_are_emitted_and_other_media_are_counted() {
        assert_eq!(read(&[PNG, b"RIFF\0\0\0\0WAVE"]), (1, 1));
        assert_eq!(read(&[PNG, PNG]), (1, 0), "a repeated image counts once");
        let many: Vec<Vec<u8>> = (0..12).map(|n| [PNG, &[n]].concat()).collect();
        let many: Vec<&[u8]> = many.iter().map(Vec::as_slice).collect();
        assert_eq!(read(&many), (10, 2));
        let large = [PNG, &vec![0; 20 * 1024 * 1024]].concat();
        let other = [&large[..], b"x"].concat();
        assert_eq!(read(&[&large, &other]), (1, 1));
    }

    #[test]
    fn a_url_contains_an_image_or_is_skipped() {
        let (mut media, mut out) = (ReplyMedia::default(), Vec::new());
        media.take_url(&format!("data:image/png;base64,{}", STANDARD.encode(PNG)), &mut out);
        for other in
            ["https://example.org/a.png", "data:image/png;base64,!", "data:text/html;base64,eA==", ""]
        {
            media.take_url(other, &mut out);
        }
        assert_eq!((out, media.left_out()), (vec![Delta::Image(PNG.to_vec())], 4));
    }
}
