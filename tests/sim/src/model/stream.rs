//! A streamed answer: one timer, absolute times, and the record of its end.

use super::{
    At, End, Exchange, Trouble,
    script::{Stops, Turn},
    wire::{Piece, Writer},
};
use crate::gate::{Stop, Then, pass_all};
use bytes::Bytes;
use futures_util::{Stream, stream};
use std::{collections::VecDeque, future::pending, io, time::Duration};
use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

/// The stream of an answer.
pub(crate) struct Flow {
    turn: Turn,
    stops: Stops,
    writer: Box<dyn Writer>,
    opening: Option<Piece>,
    chunks: VecDeque<Piece>,
    ended: bool,
    trouble: Option<(usize, Trouble)>,
    /// Number of sent chunks.
    sent: usize,
    due: Instant,
    delay: Duration,
}

impl Flow {
    pub(crate) fn new(
        turn: Turn,
        stops: Stops,
        writer: Box<dyn Writer>,
        trouble: Option<(usize, Trouble)>,
        delay: Duration,
    ) -> Self {
        let mut chunks = writer.pieces();
        Self {
            turn,
            stops,
            opening: chunks.pop_front(),
            chunks,
            ended: false,
            writer,
            trouble,
            sent: 0,
            due: Instant::now(),
            delay,
        }
    }

    /// Returns the body. It ends with an error if the connection is to break.
    pub(crate) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> {
        stream::unfold(Some(self), |flow| async move {
            let mut flow = flow?;
            match flow.next().await {
                Some(Ok(bytes)) => Some((Ok(bytes), Some(flow))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some(opening) = self.opening.take() {
            return Some(Ok(self.writer.piece(&opening).into()));
        }
        match self.trouble.take_if(|(after, _)| *after == self.sent) {
            Some((_, Trouble::Cut)) => return Some(self.broken().await),
            Some((_, Trouble::Stall)) => return pending().await,
            Some((_, Trouble::Garbage)) => return Some(Ok(self.writer.garbage().into())),
            Some((_, Trouble::Error(message))) => {
                self.chunks.clear();
                self.ended = true;
                self.turn.ends(End::Broken);
                return Some(Ok(self.writer.error(&message).into()));
            }
            None => {}
        }
        match self.chunks.pop_front() {
            Some(chunk) => Some(self.chunk(&chunk).await),
            None => self.end().await,
        }
    }

    async fn chunk(&mut self, chunk: &Piece) -> io::Result<Bytes> {
        // From the planned time, so that delays do not accumulate.
        self.due += self.delay;
        if !self.delay.is_zero() {
            sleep_until(self.due).await;
        }
        if self.pass(At::Chunk(self.sent + 1)).await == Then::Cut {
            return self.broken().await;
        }
        if self.sent == 0 {
            self.turn.first();
        }
        self.sent += 1;
        Ok(self.writer.piece(chunk).into())
    }

    async fn end(&mut self) -> Option<io::Result<Bytes>> {
        if std::mem::replace(&mut self.ended, true) {
            return None;
        }
        if self.pass(At::End).await == Then::Cut {
            return Some(self.broken().await);
        }
        // Recorded now: a client may disconnect after the last chunk.
        self.turn.ends(End::Whole);
        Some(Ok(self.writer.tail().into()))
    }

    async fn broken(&mut self) -> io::Result<Bytes> {
        flushed().await;
        self.turn.ends(End::Broken);
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    async fn pass(&mut self, at: At) -> Then {
        if self.stops.is_empty() {
            return Then::Proceed;
        }
        pass(&mut self.stops, at, &self.turn.exchange).await
    }
}

/// Lets the server write its buffers, which it does when a body has nothing ready: earlier chunks must be sent before a
/// stop or a break.
async fn flushed() {
    yield_now().await;
}

/// Passes the stops at a point.
pub(crate) async fn pass(stops: &mut Stops, at: At, exchange: &Exchange) -> Then {
    let here: Vec<Stop<Exchange>> =
        stops.extract_if(.., |(point, _)| *point == at).map(|(_, stop)| stop).collect();
    if !here.is_empty() {
        flushed().await;
    }
    pass_all(here, exchange).await
}
