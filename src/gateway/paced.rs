//! How slowly a request's body may come. What a peer is waited for is bounded as a whole, not piece by piece: who sends a byte
//! every few seconds is as good as silent. Time in which nobody reads the body does not count.

use axum::{
    BoxError,
    body::{Body, Bytes},
    extract::Request,
    middleware::Next,
    response::Response,
};
use futures_util::{Stream, StreamExt, stream};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// So long is waited for a body that does not come.
const PATIENCE: Duration = Duration::from_secs(10);
/// What comes at this rate is waited for without end, in bytes for each second.
const RATE: u32 = 8 * 1024;

/// Has the body of a request come in time.
pub(super) async fn pace(request: Request, next: Next) -> Response {
    next.run(request.map(|body| Body::from_stream(paced(body.into_data_stream())))).await
}

/// The body came too slowly.
#[derive(Debug, thiserror::Error)]
#[error("the body comes too slowly")]
struct TooSlow;

/// Passes pieces on for as long as there is patience: waiting costs it, and what comes gives it back.
fn paced<E: Into<BoxError> + Send + 'static>(
    pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static {
    stream::unfold(Some((Box::pin(pieces), PATIENCE)), |state| async move {
        let (mut pieces, patience) = state?;
        let begin = Instant::now();
        match timeout(patience, pieces.next()).await {
            Ok(piece) => {
                let piece = piece?.map_err(Into::into);
                let bytes = piece.as_ref().map_or(0, Bytes::len);
                let earned = Duration::from_secs(bytes as u64) / RATE;
                let patience = (patience.saturating_sub(begin.elapsed()) + earned).min(PATIENCE);
                Some((piece, Some((pieces, patience))))
            }
            Err(_) => Some((Err(TooSlow.into()), None)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{convert::Infallible, pin::pin};
    use tokio::time::sleep;

    /// So many bytes come every so many seconds; returns how many of them did, and after how long it ended.
    async fn take(bytes: u32, pause: u64, times: usize) -> (usize, u64) {
        let pieces = stream::unfold(0, move |sent| async move {
            sleep(Duration::from_secs(pause)).await;
            (sent < times).then(|| (Ok::<_, Infallible>(Bytes::from(vec![0; bytes as usize])), sent + 1))
        });
        let (mut pieces, begin) = (pin!(paced(pieces)), Instant::now());
        let mut all = 0;
        while let Some(Ok(piece)) = pieces.next().await {
            all += piece.len();
        }
        (all, begin.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_comes_at_a_rate_and_not_piece_by_piece() {
        assert_eq!(take(1, 9, 100).await, (1, 10));
        assert_eq!(take(RATE, 1, 100).await, (100 * RATE as usize, 101));
        assert_eq!(take(RATE / 2, 1, 100).await, (19 * RATE as usize / 2, 20));
        // What was quick once earns no more patience than there was.
        assert_eq!(take(1 << 20, 11, 2).await, (0, 10));
    }
}
