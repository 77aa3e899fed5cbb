//! Files on their way in: streamed to the disk, never more of them than was asked for, and nothing left
//! behind of one that did not come whole.

use crate::SendError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};
use tokio::{
    fs::{File, OpenOptions},
    io::AsyncWriteExt,
};

/// A transfer slower than this is taken for dead.
const MIN_BYTES_PER_SECOND: u64 = 50_000;

/// Returns how long a file of at most `limit` bytes may take.
pub(crate) fn patience(limit: u64) -> Duration {
    Duration::from_secs(30 + limit / MIN_BYTES_PER_SECOND)
}

/// Fails for a size that is known to be too large.
pub(crate) fn check(size: Option<u64>, limit: u64) -> Result<(), SendError> {
    if size.is_some_and(|size| size > limit) { Err(SendError::TooLarge { limit }) } else { Ok(()) }
}

/// Writes what comes to `to`, which does not exist yet. `lost` words a break of the line.
pub(crate) async fn keep<E>(
    body: impl Stream<Item = Result<Bytes, E>>,
    to: &Path,
    limit: u64,
    lost: impl Fn(E) -> SendError,
) -> Result<u64, SendError> {
    let mut file = create(to).await?;
    let unfinished = Unfinished(Some(to.to_owned()));
    let (mut size, mut body) = (0, pin!(body));
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(&lost)?;
        size += chunk.len() as u64;
        check(Some(size), limit)?;
        file.write_all(&chunk).await.map_err(local)?;
    }
    file.flush().await.map_err(local)?;
    unfinished.keep();
    Ok(size)
}

async fn create(to: &Path) -> Result<File, SendError> {
    OpenOptions::new().write(true).create_new(true).open(to).await.map_err(local)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn local(error: std::io::Error) -> SendError {
    SendError::File(error.to_string())
}

/// A file that is removed unless it is kept, also when its download is dropped.
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
            tracing::warn!(%error, "an unfinished download could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;

    #[tokio::test]
    async fn a_file_comes_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let chunk = |bytes: &'static [u8]| Ok::<_, &str>(Bytes::from_static(bytes));
        let lost = |why: &str| SendError::Unreachable(why.to_owned());
        let too_large = Err(SendError::TooLarge { limit: 4 });
        let cases = [
            (vec![chunk(b"ab"), chunk(b"cd")], Ok(4)),
            (vec![chunk(b"abc"), chunk(b"de")], too_large),
            (vec![chunk(b"ab"), Err("cut")], Err(lost("cut"))),
        ];
        for (n, (chunks, expected)) in cases.into_iter().enumerate() {
            let to = folder.path().join(n.to_string());
            let kept = keep(stream::iter(chunks), &to, 4, lost).await;
            assert_eq!((kept.clone(), to.exists()), (expected, kept.is_ok()));
        }
        let there = folder.path().join("0");
        assert!(keep(stream::iter([chunk(b"x")]), &there, 4, lost).await.is_err(), "nothing is overwritten");
        assert_eq!(std::fs::read(there).unwrap(), b"abcd");
    }
}
