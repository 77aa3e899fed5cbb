//! Minimum rate of request bodies. The wait for a body is limited in total, not per piece, because a peer that sends a
//! byte every few seconds is as good as silent. Time during which no handler reads the body does not count.
//!
//! The rest of a refused body is read and discarded, within limits. Otherwise a client that sends its whole request
//! before it reads would see a connection reset instead of the error.

use super::errors::ApiError;
use axum::{
    BoxError,
    body::{Body, Bytes},
    extract::Request,
    http::header,
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream, stream::BoxStream};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Maximum wait while nothing of a body arrives.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// Minimum rate, in bytes per second, of a body whose total time is not limited.
const BODY_RATE: u32 = 8 * 1024;
/// Maximum number of bytes that are read from the rest of a refused body.
const MAX_DROPPED_BYTES: usize = 1024 * 1024 * 1024;
/// Maximum time for reading the rest of a refused body.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits the time for a request's body. If the body is late, its reader gets an error, and this function replaces the
/// response.
pub(crate) async fn pace(request: Request, next: Next) -> Response {
    let late = Arc::<AtomicBool>::default();
    // A client that waits for `100 Continue` does not send the body after an error.
    let sends_at_once = !request.headers().contains_key(header::EXPECT);
    let body = |body: Body| {
        let pieces = paced(body.into_data_stream(), late.clone()).boxed();
        if sends_at_once { Body::from_stream(ReadToEnd(Some(pieces))) } else { Body::from_stream(pieces) }
    };
    let answer = next.run(request.map(body)).await;
    match late.load(Ordering::Relaxed) {
        true => ApiError::timeout("the body arrived too slowly").into_response(),
        false => answer,
    }
}

/// Error for a body that arrives too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the body arrives too slowly")]
struct TooSlow;

/// A body that is read to its end when its handler drops it.
struct ReadToEnd(Option<BoxStream<'static, Result<Bytes, BoxError>>>);

impl Stream for ReadToEnd {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(pieces) = &mut self.0 else { return Poll::Ready(None) };
        let piece = std::task::ready!(pieces.poll_next_unpin(cx));
        if piece.as_ref().is_none_or(Result::is_err) {
            self.0 = None;
        }
        Poll::Ready(piece)
    }
}

impl Drop for ReadToEnd {
    fn drop(&mut self) {
        let (Some(pieces), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let mut dropped = 0;
        let rest = pieces.take_while(move |piece| {
            dropped += piece.as_ref().map_or(MAX_DROPPED_BYTES, Bytes::len);
            std::future::ready(dropped < MAX_DROPPED_BYTES)
        });
        runtime.spawn(timeout(DROP_TIMEOUT, rest.for_each(|_| std::future::ready(()))));
    }
}

/// Passes pieces on within a time budget: waiting consumes it, and received bytes restore it.
fn paced<E: Into<BoxError> + Send + 'static>(
    pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    late: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static {
    stream::unfold(Some((Box::pin(pieces), BODY_PATIENCE, late)), |state| async move {
        let (mut pieces, patience, late) = state?;
        let begin = Instant::now();
        match timeout(patience, pieces.next()).await {
            Ok(piece) => {
                let piece = piece?.map_err(Into::into);
                let bytes = piece.as_ref().map_or(0, Bytes::len);
                let earned = Duration::from_secs(bytes as u64) / BODY_RATE;
                let patience = (patience.saturating_sub(begin.elapsed()) + earned).min(BODY_PATIENCE);
                Some((piece, Some((pieces, patience, late))))
            }
            Err(_) => {
                late.store(true, Ordering::Relaxed);
                Some((Err(TooSlow.into()), None))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{convert::Infallible, pin::pin};
    use tokio::time::sleep;

    /// Sends `bytes` bytes every `pause` seconds; returns the number of received bytes, and the seconds until the end.
    async fn take(bytes: u32, pause: u64, times: usize) -> (usize, u64) {
        let pieces = stream::unfold(0, move |sent| async move {
            sleep(Duration::from_secs(pause)).await;
            (sent < times).then(|| (Ok::<_, Infallible>(Bytes::from(vec![0; bytes as usize])), sent + 1))
        });
        let (mut pieces, begin) = (pin!(paced(pieces, Arc::default())), Instant::now());
        let mut all = 0;
        while let Some(Ok(piece)) = pieces.next().await {
            all += piece.len();
        }
        (all, begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_are_limited_by_their_rate_and_not_per_piece() {
        assert_eq!(take(1, 9, 100).await, (1, 10));
        assert_eq!(take(BODY_RATE, 1, 100).await, (100 * BODY_RATE as usize, 101));
        assert_eq!(take(BODY_RATE / 2, 1, 100).await, (19 * BODY_RATE as usize / 2, 19));
        // An earlier fast piece does not extend the time limit beyond its maximum.
        assert_eq!(take(1 << 20, 11, 2).await, (0, 10));
    }
}
