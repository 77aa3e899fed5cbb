//! Extracts images that gateways write into the text of a reply, as `![…](data:image/png;base64,…)`. All other text is
//! kept, including such images within code.

use crate::media::{MAX_IMAGE_BYTES, ReplyMedia};
use pudu_base::Delta;

/// The beginning of a Markdown image, the separator before its URL, and the beginning of a data URL.
const MARKS: [&str; 3] = ["![", "](", "data:image/"];
/// Maximum length of an image's alternative text, in bytes. Anything with a longer one is not an image.
const MAX_ALT_BYTES: usize = 300;
/// Maximum length of an image's URL, in bytes.
const MAX_ADDRESS_BYTES: usize = MAX_IMAGE_BYTES / 3 * 4 + 100;
/// Minimum number of characters of a code fence.
const MIN_FENCE_MARKS: usize = 3;

/// Splits text into words and images while it arrives.
#[derive(Debug, Default)]
pub(crate) struct InlineImages {
    /// Text that may be part of an image.
    held: String,
    /// Position of an image's URL in `held`.
    address: Option<usize>,
    /// Length of the part of `held` that has been searched for the end of the URL, in bytes.
    searched: usize,
    /// Whether the current image is too large, so that the remainder of its URL is dropped.
    is_too_large: bool,
    code: CodeMarks,
}

impl InlineImages {
    /// Adds text.
    pub(crate) fn push(&mut self, text: &str, media: &mut ReplyMedia, out: &mut Vec<Delta>) {
        self.held.push_str(text);
        while self.step(media, out) {}
    }

    /// Ends the text.
    pub(crate) fn end(&mut self, media: &mut ReplyMedia, out: &mut Vec<Delta>) {
        let cut = self.address.take().and_then(|at| self.held.get(at..));
        if std::mem::take(&mut self.is_too_large) || cut.is_some_and(ReplyMedia::begins_image) {
            media.leave_out();
            self.held.clear();
        }
        self.emit(self.held.len(), out);
    }

    /// Processes a part of the text and returns whether there may be more.
    fn step(&mut self, media: &mut ReplyMedia, out: &mut Vec<Delta>) -> bool {
        if self.is_too_large {
            return self.leave_out(media);
        }
        if let Some(at) = self.address {
            return self.end_address(at, media, out);
        }
        let [begin, middle, data] = MARKS;
        let begins = self.find_beginning();
        self.emit(begins.unwrap_or(self.held.len()), out);
        if begins.is_none() || self.held.len() < begin.len() {
            return false;
        }
        let found = self.held.find(middle);
        let alt = self.held.get(..found.unwrap_or(self.held.len())).unwrap_or_default();
        if alt.len() > MAX_ALT_BYTES || alt.contains('\n') {
            self.emit(begin.len(), out);
            return true;
        }
        let Some(at) = found else { return false };
        // If there are two beginnings, the image starts at the later one.
        if let Some(later @ 1..) = alt.rfind(begin) {
            self.emit(later, out);
            return true;
        }
        let end = at + middle.len();
        let address = self.held.get(end..).unwrap_or_default();
        if address.len() < data.len() && data.starts_with(address) {
            return false;
        }
        if address.starts_with(data) {
            (self.address, self.searched) = (Some(end), end);
        } else {
            self.emit(end, out);
        }
        true
    }

    /// Returns the position of the next possible image, or of a trailing exclamation mark, outside of code.
    fn find_beginning(&self) -> Option<usize> {
        let mut code = self.code;
        for (at, c) in self.held.char_indices() {
            let rest = self.held.get(at..).unwrap_or_default();
            if (rest == "!" || rest.starts_with(MARKS[0])) && !code.is_code() {
                return Some(at);
            }
            code.see(c);
        }
        None
    }

    /// Returns the position after the URL, if it is complete.
    fn find_end(&mut self) -> Option<usize> {
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !"+/=;:,._-".contains(c);
        let found = self.held.get(self.searched..).and_then(|rest| rest.find(is_other));
        let end = found.map(|at| at + self.searched);
        self.searched = end.unwrap_or(self.held.len());
        end
    }

    fn end_address(&mut self, at: usize, media: &mut ReplyMedia, out: &mut Vec<Delta>) -> bool {
        let Some(end) = self.find_end() else {
            if self.searched - at <= MAX_ADDRESS_BYTES {
                return false;
            }
            self.address = None;
            self.is_too_large = self.held.get(at..).is_some_and(ReplyMedia::begins_image);
            if !self.is_too_large {
                self.emit(self.held.len(), out);
            }
            return self.is_too_large;
        };
        self.address = None;
        let is_whole = self.held.get(end..).is_some_and(|rest| rest.starts_with(')'));
        let address = self.held.get(at..end).filter(|_| is_whole).unwrap_or_default();
        if media.take_inline(address, out) {
            self.held.drain(..=end);
        } else {
            self.emit(end, out);
        }
        true
    }

    /// Drops the URL of an image that is too large.
    fn leave_out(&mut self, media: &mut ReplyMedia) -> bool {
        let end = self.find_end();
        self.held.drain(..end.unwrap_or(self.held.len()));
        self.searched = 0;
        if end.is_some() {
            self.is_too_large = false;
            media.leave_out();
            if self.held.starts_with(')') {
                self.held.drain(..1);
            }
        }
        end.is_some()
    }

    fn emit(&mut self, length: usize, out: &mut Vec<Delta>) {
        let text: String = self.held.drain(..length).collect();
        text.chars().for_each(|c| self.code.see(c));
        out.extend((!text.is_empty()).then_some(Delta::Text(text)));
    }
}

/// Tracks whether the text so far ends within code, either between backticks or in a fenced block.
#[derive(Clone, Copy, Debug)]
struct CodeMarks {
    open: Option<OpenCode>,
    /// The fence character that the text ends with, and the number of its repetitions.
    run: Option<(char, usize)>,
    /// Whether only whitespace precedes the run on its line.
    is_line_start: bool,
    /// Whether the line may close a fenced block.
    closes: bool,
}

/// The beginning of code.
#[derive(Clone, Copy, Debug)]
struct OpenCode {
    mark: char,
    marks: usize,
    /// Whether the mark begins a fenced block, unless the same characters occur again on its line.
    may_fence: bool,
    is_block: bool,
}

impl Default for CodeMarks {
    fn default() -> Self {
        Self { open: None, run: None, is_line_start: true, closes: false }
    }
}

impl CodeMarks {
    /// Processes the next character.
    fn see(&mut self, c: char) {
        if let Some((mark, marks)) = &mut self.run
            && *mark == c
        {
            *marks += 1;
            return;
        }
        self.end_run();
        match c {
            '`' | '~' => self.run = Some((c, 1)),
            '\n' => self.end_line(),
            c if c.is_whitespace() => {}
            _ => (self.is_line_start, self.closes) = (false, false),
        }
    }

    /// Returns whether the next ordinary character would be in code.
    fn is_code(mut self) -> bool {
        self.end_run();
        self.open.is_some()
    }

    fn end_run(&mut self) {
        let Some((mark, marks)) = self.run.take() else { return };
        let begins_line = std::mem::take(&mut self.is_line_start);
        self.closes = false;
        let may_fence = begins_line && marks >= MIN_FENCE_MARKS;
        match self.open {
            None if may_fence || mark == '`' => {
                self.open = Some(OpenCode { mark, marks, may_fence, is_block: false });
            }
            Some(open) if open.mark == mark && open.is_block => {
                self.closes = begins_line && marks >= open.marks;
            }
            Some(open) if open.mark == mark && open.marks == marks => self.open = None,
            _ => {}
        }
    }

    /// Ends a line. Inline code ends with it, so a lone backtick does not hide later images.
    fn end_line(&mut self) {
        self.open = match self.open {
            Some(open) if open.is_block => (!self.closes).then_some(open),
            open => open.filter(|open| open.may_fence).map(|open| OpenCode { is_block: true, ..open }),
        };
        (self.is_line_start, self.closes) = (true, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";

    /// Checks the result for a text as a whole and split at every byte.
    fn check(text: &str, words: &str, images: usize, left_out: usize) {
        for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (mut reader, mut media, mut out) =
                (InlineImages::default(), ReplyMedia::default(), Vec::new());
            let (first, second) = text.split_at(cut);
            reader.push(first, &mut media, &mut out);
            reader.push(second, &mut media, &mut out);
            reader.end(&mut media, &mut out);
            assert_eq!(result(&out, &media), (words.to_owned(), images, left_out), "{text} {cut}");
        }
    }

    fn result(out: &[Delta], media: &ReplyMedia) -> (String, usize, usize) {
        let words = out.iter().filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let images = out.iter().filter(|delta| matches!(delta, Delta::Image(_))).count();
        (words.collect(), images, media.left_out())
    }

    #[test]
    fn images_are_extracted_and_other_text_is_kept() {
        check(&format!("Here! ![a dot]({PNG}) done!"), "Here!  done!", 1, 0);
        check(&format!("![]({PNG})![]({PNG})"), "", 1, 0);
        check(&format!("![ ![x]({PNG}) b"), "![  b", 1, 0);
        for text in [
            "Hi!",
            "![a](https://example.org/a.png) b",
            "![",
            "a ![b\nc](data:x",
            "!! [x](data:image/png)",
            "中![文",
            "a ![x](data:image/png;base64,!!) b",
            "a ![x](data:image/png;base64,…) b",
            "a ![x](data:image/png;base64,iVBORw0KGgo…) b",
            "a ![x](data:image/png;base64,iVBORw0KGgo...) b",
            "a ![x](data:image/svg+xml;base64,PHN2Zy8+) b",
            "a ![x](data:image/svg+xml,%3Csvg/%3E) b",
            "a ![x](data:image/png;base64,iVBORw0KGgo= and (more) words",
            "cut ![x](data:image/png;base64,iVBOR",
        ] {
            check(text, text, 0, 0);
        }
        check("cut ![x](data:image/png;base64,iVBORw0KGgoAAAAN", "cut ", 0, 1);
    }

    #[test]
    fn images_in_code_remain_text() {
        let image = format!("![x]({PNG})");
        for text in [
            format!("`{image}`"),
            format!("a ``b ` {image}`` c"),
            format!("```md\n{image}\n```\n"),
            format!("  ~~~\n```\n{image}"),
            format!("````\n```\n{image}\n````"),
            format!("```\n```js\n{image}\n```"),
        ] {
            check(&text, &text, 0, 0);
        }
        for (before, after) in
            [("```\na\n```\n", ""), ("`a` ", "`b`"), ("a ` b\n", ""), ("```a``` ", ""), ("a ~~~ b ", "")]
        {
            check(&format!("{before}{image}{after}"), &format!("{before}{after}"), 1, 0);
        }
    }

    #[test]
    fn an_oversized_image_is_dropped_and_the_text_after_it_is_kept() {
        let (mut reader, mut media, mut out) = (InlineImages::default(), ReplyMedia::default(), Vec::new());
        reader.push("a ![x](data:image/png;base64,iVBORw0KGgoA", &mut media, &mut out);
        let part = "A".repeat(1 << 20);
        for _ in 0..=MAX_ADDRESS_BYTES >> 20 {
            reader.push(&part, &mut media, &mut out);
        }
        reader.push(") b", &mut media, &mut out);
        reader.end(&mut media, &mut out);
        assert_eq!(result(&out, &media), ("a  b".to_owned(), 0, 1));
    }
}
