//! Keeps the beginning and end of an output of any length.

use std::collections::VecDeque;

/// Number of bytes kept from each end.
pub const END: usize = 256 * 1024;

/// The kept part of an output.
#[derive(Debug, Default)]
pub struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl Capture {
    /// Adds output.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = END - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(END);
        self.tail.drain(..surplus);
        self.cut += surplus as u64;
    }

    /// Returns whether part of the output was dropped.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut > 0
    }

    /// Returns the kept output, with a note in place of the omitted part.
    #[must_use]
    pub fn text(self) -> String {
        let tail: Vec<u8> = self.tail.into();
        if self.cut == 0 {
            let all = [self.head, tail].concat();
            return String::from_utf8_lossy(&all).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        format!("{head}\n[… {} bytes omitted …]\n{tail}", self.cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_flood_are_kept_with_a_note_on_the_cut() {
        let mut capture = Capture::default();
        capture.push(b"begin");
        for _ in 0..21 {
            capture.push(&vec![b'x'; END / 10]);
        }
        capture.push(b"end");
        assert!(capture.is_cut());
        let text = capture.text();
        assert!(text.starts_with("beginxx") && text.ends_with("xxend"), "ends are missing");
        assert!(text.contains("[… 26214 bytes omitted …]"), "the cut is not told");
        assert!(text.len() < 2 * END + 100);
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        let mut capture = Capture::default();
        capture.push("grüße".as_bytes());
        assert_eq!(capture.text(), "grüße");
    }
}
