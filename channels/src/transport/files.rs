//! File transfers, streamed from and to disk, with a size limit. An incomplete download leaves no file behind.

use super::{CallError, NoCase};
use crate::{OutFile, SendError};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use pudu_net::reqwest::{Body, RequestBuilder, Response, header, multipart::Part};
use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt,
};
use tokio_util::io::ReaderStream;

/// Minimum speed of a transfer, in bytes per second.
const MIN_BYTES_PER_SECOND: u64 = 50_000;

/// Returns the timeout for the transfer of a file of at most `size` bytes.
pub(crate) fn transfer_timeout(size: u64) -> Duration {
    Duration::from_secs(30 + size / MIN_BYTES_PER_SECOND)
}

/// Fails if the size is known and too large.
pub(crate) fn check_size(size: Option<u64>, limit: u64) -> Result<(), SendError> {
    if size.is_some_and(|size| size > limit) { Err(SendError::TooLarge { limit }) } else { Ok(()) }
}

/// Downloads a file to `to`, which does not exist yet.
pub(crate) async fn fetch(request: RequestBuilder, to: &Path, limit: u64) -> Result<u64, SendError> {
    save(begin_fetch(request, limit).await?, to, limit).await
}

/// Requests a file of at most `limit` bytes.
pub(crate) async fn begin_fetch(request: RequestBuilder, limit: u64) -> Result<Response, CallError> {
    // Without compression, the response has the size of the file.
    let request = request.header(header::ACCEPT_ENCODING, "identity").timeout(transfer_timeout(limit));
    pudu_net::send(request).await.map_err(CallError::of_client)
}

/// Writes the file in a response to `to`, which does not exist yet.
pub(crate) async fn save(response: Response, to: &Path, limit: u64) -> Result<u64, SendError> {
    let status = response.status();
    if !status.is_success() {
        let why = format!("the file cannot be downloaded (HTTP {})", status.as_u16());
        let passing = status.is_server_error();
        return Err(if passing { SendError::Unreachable(why) } else { SendError::Refused(why) });
    }
    check_size(response.content_length(), limit)?;
    let cut = |error| CallError::<NoCase>::of_client(error).into();
    save_stream(response.bytes_stream(), to, limit, cut).await
}

/// Writes a stream to `to`. `cut` converts an error of the stream.
async fn save_stream<E>(
    body: impl Stream<Item = Result<Bytes, E>>,
    to: &Path,
    limit: u64,
    cut: impl Fn(E) -> SendError,
) -> Result<u64, SendError> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(to).await.map_err(local)?;
    let unfinished = Unfinished(Some(to.to_owned()));
    let (mut size, mut body) = (0, pin!(body));
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(&cut)?;
        size += chunk.len() as u64;
        check_size(Some(size), limit)?;
        file.write_all(&chunk).await.map_err(local)?;
    }
    file.flush().await.map_err(local)?;
    unfinished.keep();
    Ok(size)
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn local(error: std::io::Error) -> SendError {
    SendError::File(error.to_string())
}

/// A file that is deleted unless it is kept, even if its download is cancelled.
struct Unfinished(Option<PathBuf>);

impl Unfinished {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(path) = self.0.take()
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "failed to remove an unfinished download");
        }
    }
}

/// A file that is streamed while it is sent.
pub(crate) struct OutgoingFile {
    pub(crate) body: Body,
    name: String,
    pub(crate) size: u64,
    /// Number of bytes sent so far.
    left: Arc<AtomicU64>,
}

/// How much of a file has been sent, during and after the upload.
pub(crate) struct SentBytes {
    size: u64,
    left: Arc<AtomicU64>,
}

impl OutgoingFile {
    /// Opens a file.
    pub(crate) async fn open<C>(file: &OutFile) -> Result<Self, CallError<C>> {
        let unreadable = |error: std::io::Error| CallError::File(error.to_string());
        let open = File::open(&file.path).await.map_err(unreadable)?;
        let size = open.metadata().await.map_err(unreadable)?.len();
        let left = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&left);
        let count = move |chunk: &std::io::Result<Bytes>| {
            counter.fetch_add(chunk.as_ref().map_or(0, |bytes| bytes.len() as u64), Ordering::Relaxed);
        };
        let body = Body::wrap_stream(ReaderStream::new(open).inspect(count));
        Ok(Self { body, name: file.name.clone(), size, left })
    }

    pub(crate) fn sent_bytes(&self) -> SentBytes {
        SentBytes { size: self.size, left: Arc::clone(&self.left) }
    }

    /// Converts the file to a form part.
    pub(crate) fn part(self) -> Part {
        Part::stream_with_length(self.body, self.size).file_name(self.name)
    }
}

impl SentBytes {
    /// Returns whether all bytes were sent. If not, the file did not arrive.
    pub(crate) fn are_all(&self) -> bool {
        self.left.load(Ordering::Relaxed) >= self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[tokio::test]
    async fn a_file_is_downloaded_completely_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let chunk = |bytes: &'static [u8]| Ok::<_, &str>(Bytes::from_static(bytes));
        let cut = |why: &str| SendError::Unreachable(why.to_owned());
        let too_large = Err(SendError::TooLarge { limit: 4 });
        let cases = [
            (vec![chunk(b"ab"), chunk(b"cd")], Ok(4)),
            (vec![chunk(b"abc"), chunk(b"de")], too_large),
            (vec![chunk(b"ab"), Err("cut")], Err(cut("cut"))),
        ];
        for (n, (chunks, expected)) in cases.into_iter().enumerate() {
            let to = folder.path().join(n.to_string());
            let kept = save_stream(stream::iter(chunks), &to, 4, cut).await;
            assert_eq!((kept.clone(), to.exists()), (expected, kept.is_ok()));
        }
        let there = folder.path().join("0");
        assert!(
            save_stream(stream::iter([chunk(b"x")]), &there, 4, cut).await.is_err(),
            "no file is overwritten"
        );
        assert_eq!(std::fs::read(there).unwrap(), b"abcd");
    }
}
