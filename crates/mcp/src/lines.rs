//! A child's output in lines, with a size limit. A line is a message; one that exceeds the limit is dropped except for
//! its ends, which identify the waiting call.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum size of a message from a server, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a dropped line, in bytes. A longer one ends the stream.
const MAX_DROPPED_BYTES: usize = 64 * 1024 * 1024;
/// Number of bytes kept of each end of a dropped line.
const END_BYTES: usize = 4 * 1024;

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OutputLine {
    /// The whole line.
    Whole(Vec<u8>),
    /// The ends of a line that exceeded the limit.
    Oversized { head: Vec<u8>, tail: Vec<u8> },
}

/// Reads lines.
pub(crate) struct LineReader<R> {
    inner: BufReader<R>,
    /// The line so far, or its beginning if it exceeds the limit.
    line: Vec<u8>,
    /// The end of a line that exceeds the limit.
    tail: Vec<u8>,
    /// Length of the line so far.
    length: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner: BufReader::new(inner), line: Vec::new(), tail: Vec::new(), length: 0 }
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// When the stream fails, or a line does not end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<OutputLine>> {
        loop {
            let bytes = self.inner.fill_buf().await?;
            if bytes.is_empty() {
                return Ok((self.length > 0).then(|| self.finish()));
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default().to_vec();
            self.inner.consume(end.map_or(piece.len(), |end| end + 1));
            self.add(&piece)?;
            if end.is_some() {
                return Ok(Some(self.finish()));
            }
        }
    }

    fn add(&mut self, piece: &[u8]) -> io::Result<()> {
        self.length += piece.len();
        if self.length <= MAX_MESSAGE_BYTES {
            self.line.extend_from_slice(piece);
            return Ok(());
        }
        if self.length > MAX_DROPPED_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line has no end"));
        }
        if self.tail.is_empty() {
            self.tail = self.line.split_off(END_BYTES.min(self.line.len()));
            self.line.shrink_to_fit();
        }
        self.tail.extend_from_slice(piece);
        self.tail.drain(..self.tail.len().saturating_sub(END_BYTES));
        self.tail.shrink_to(2 * END_BYTES);
        Ok(())
    }

    fn finish(&mut self) -> OutputLine {
        let line = std::mem::take(&mut self.line);
        let tail = std::mem::take(&mut self.tail);
        match std::mem::take(&mut self.length) > MAX_MESSAGE_BYTES {
            true => OutputLine::Oversized { head: line, tail },
            false => OutputLine::Whole(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> Vec<OutputLine> {
        let mut reader = LineReader::new(bytes);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn a_giant_line_costs_its_own_middle_and_no_other_line() {
        let long = vec![b'x'; MAX_MESSAGE_BYTES];
        let giant = [b"{\"id\":1,", &long[..], b",\"end\":2}"].concat();
        let bytes = [&long[..], b"\n\n", &giant, b"\r\nlast"].concat();
        let lines = read(&bytes).await;
        let [whole, empty, OutputLine::Oversized { head, tail }, last] = &lines[..] else {
            panic!("{}", lines.len())
        };
        assert!(*whole == OutputLine::Whole(long) && *empty == OutputLine::Whole(vec![]));
        assert!(head.starts_with(b"{\"id\":1,xxx") && tail.ends_with(b"xxx,\"end\":2}\r"));
        assert!(head.len() == END_BYTES && tail.len() == END_BYTES);
        assert_eq!(*last, OutputLine::Whole(b"last".to_vec()));
    }

    #[tokio::test]
    async fn a_line_without_end_ends_the_stream() {
        let mut reader = LineReader::new(tokio::io::repeat(b'x'));
        assert_eq!(reader.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
