//! Splits a child's output into lines; each is a message. A line that exceeds the size limit is dropped except
//! for its beginning and end, which identify the call that it answers.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum size of a message from a server, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a dropped line, in bytes. A longer one ends the stream.
const MAX_DROPPED_BYTES: usize = 64 * 1024 * 1024;
/// Number of bytes kept from each end of a dropped line.
const END_BYTES: usize = 4 * 1024;

/// A line, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputLine {
    /// The whole line.
    Whole(Vec<u8>),
    /// The ends of a line that exceeded the limit.
    Oversized {
        /// The beginning.
        head: Vec<u8>,
        /// The end.
        tail: Vec<u8>,
    },
}

/// Reads lines from a stream.
pub struct LineReader<R> {
    inner: BufReader<R>,
    /// The line so far, or its beginning if it exceeds the limit.
    line: Vec<u8>,
    /// The end of a line that exceeds the limit.
    tail: Vec<u8>,
    /// Length of the line so far, in bytes.
    length: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader.
    pub fn new(inner: R) -> Self {
        Self { inner: BufReader::new(inner), line: Vec::new(), tail: Vec::new(), length: 0 }
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// When the stream fails, or when a line exceeds the limit for dropped lines.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> io::Result<Option<OutputLine>> {
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
    async fn a_giant_line_loses_only_its_own_middle() {
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
    async fn an_endless_line_ends_the_stream() {
        let mut reader = LineReader::new(tokio::io::repeat(b'x'));
        assert_eq!(reader.next().await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
