//! A child's output with a bound on its lines. A line is a message; one that grows past the bound ends the
//! stream with an error, so that its caller learns of it: a line that is merely dropped would leave the
//! caller waiting for an answer that was already thrown away.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// Maximum size of a message from a server, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;

/// Passes bytes on and counts those since the last line's end.
pub(crate) struct LineCounter<R> {
    inner: R,
    length: usize,
}

impl<R> LineCounter<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, length: 0 }
    }

    fn count(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.length += piece.len();
            if self.length > MAX_MESSAGE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too large"));
            }
            if piece.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineCounter<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let counted = self.count(buf.filled().get(before..).unwrap_or_default());
        if counted.is_err() {
            // A reader that fails has read nothing.
            buf.set_filled(before);
        }
        Poll::Ready(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    async fn read(bytes: &[u8]) -> io::Result<usize> {
        LineCounter::new(bytes).read_to_end(&mut Vec::new()).await
    }

    #[tokio::test]
    async fn any_number_of_lines_passes_but_no_giant_one() {
        let line = [vec![b'x'; MAX_MESSAGE_BYTES - 1], vec![b'\n']].concat();
        assert_eq!(read(&line.repeat(3)).await.unwrap(), 3 * MAX_MESSAGE_BYTES);
        let giant = [&line[..10], b"\n", &vec![b'x'; MAX_MESSAGE_BYTES + 1][..]].concat();
        assert_eq!(read(&giant).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
