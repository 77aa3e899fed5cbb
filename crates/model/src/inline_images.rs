//! Images that gateways write into the text of an answer, as `![…](data:image/png;base64,…)`.

use crate::media::{MAX_IMAGE_BYTES, ReplyMedia};
use pudu_base::Delta;

/// Beginning of an image in Markdown, its end before the address, and the beginning of an address with data.
const MARKS: [&str; 3] = ["![", "](", "data:image/"];
/// Maximum length of the words for an image, in bytes. Longer text is none.
const MAX_ALT_BYTES: usize = 300;
/// Maximum length of the address of an image, in bytes.
const MAX_ADDRESS_BYTES: usize = MAX_IMAGE_BYTES / 3 * 4 + 100;

/// Splits a growing text into words and images.
#[derive(Debug, Default)]
pub(crate) struct InlineImages {
    /// Text that may be part of an image.
    held: String,
    /// Whether `held` is the address of an image.
    is_address: bool,
    /// Length of the part of `held` without the end of the address, in bytes.
    searched: usize,
}

impl InlineImages {
    /// Takes more of the text.
    pub(crate) fn push(&mut self, text: &str, media: &mut ReplyMedia, out: &mut Vec<Delta>) {
        self.held.push_str(text);
        while self.step(media, out) {}
    }

    /// Ends the text.
    pub(crate) fn end(&mut self, media: &mut ReplyMedia, out: &mut Vec<Delta>) {
        if std::mem::take(&mut self.is_address) {
            media.leave_out();
            self.held.clear();
        }
        self.emit(self.held.len(), out);
    }

    /// Returns whether there may be more to emit.
    fn step(&mut self, media: &mut ReplyMedia, out: &mut Vec<Delta>) -> bool {
        if self.is_address {
            return self.end_address(media, out);
        }
        let [begin, middle, data] = MARKS;
        let Some(at) = self.held.find(begin) else {
            let waits = usize::from(self.held.ends_with('!'));
            self.emit(self.held.len() - waits, out);
            return false;
        };
        self.emit(at, out);
        let Some(at) = self.held.find(middle) else {
            if self.held.len() <= MAX_ALT_BYTES && !self.held.contains('\n') {
                return false;
            }
            self.emit(begin.len(), out);
            return true;
        };
        let behind = at + middle.len();
        let address = self.held.get(behind..).unwrap_or_default();
        if address.len() < data.len() && data.starts_with(address) {
            return false;
        }
        if address.starts_with(data) {
            self.held.drain(..behind);
            (self.is_address, self.searched) = (true, 0);
        } else {
            self.emit(behind, out);
        }
        true
    }

    fn end_address(&mut self, media: &mut ReplyMedia, out: &mut Vec<Delta>) -> bool {
        let found = self.held.get(self.searched..).and_then(|rest| rest.find(')'));
        let Some(end) = found.map(|at| at + self.searched) else {
            self.searched = self.held.len();
            if self.searched > MAX_ADDRESS_BYTES {
                // What comes up to its end is left out as well.
                self.held.clear();
                self.searched = 0;
            }
            return false;
        };
        let address: String = self.held.drain(..=end).collect();
        media.take_url(address.trim_end_matches(')'), out);
        self.is_address = false;
        true
    }

    fn emit(&mut self, length: usize, out: &mut Vec<Delta>) {
        let text: String = self.held.drain(..length).collect();
        out.extend((!text.is_empty()).then_some(Delta::Text(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

    /// Reads a text whole and cut at every byte.
    fn check(text: &str, words: &str, images: usize, left_out: usize) {
        for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (mut reader, mut media, mut out) =
                (InlineImages::default(), ReplyMedia::default(), Vec::new());
            let (first, second) = text.split_at(cut);
            reader.push(first, &mut media, &mut out);
            reader.push(second, &mut media, &mut out);
            reader.end(&mut media, &mut out);
            let read: String = out
                .iter()
                .filter_map(|delta| match delta {
                    Delta::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let found = out.iter().filter(|delta| matches!(delta, Delta::Image(_))).count();
            assert_eq!((read.as_str(), found, media.left_out()), (words, images, left_out), "{text} {cut}");
        }
    }

    #[test]
    fn images_leave_the_text_and_all_else_stays() {
        check(&format!("Here! ![a dot]({PNG}) done!"), "Here!  done!", 1, 0);
        check(&format!("![]({PNG})![]({PNG})"), "", 1, 0);
        for text in [
            "Hi!",
            "![a](https://example.org/a.png) b",
            "![",
            "a ![b\nc](data:x",
            "!! [x](data:image/png)",
            "中![文",
        ] {
            check(text, text, 0, 0);
        }
        check("a ![x](data:image/png;base64,!!) b", "a  b", 0, 1);
        check("cut ![x](data:image/png;base64,iVBOR", "cut ", 0, 1);
    }
}
