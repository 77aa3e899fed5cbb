//! The stream of one run: from the ring while the run works and a minute longer, from the log ever after. A reader that
//! comes back goes on behind what it has, and is told where something is gone. A slow one costs the run nothing.

use super::{
    GatewayState,
    wire::{
        frames::{Frames, Position},
        modes::Modes,
    },
};
use crate::bus::STORE_TIMEOUT;
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use pudu_client::{
    LiveRun,
    base::{Message, Outcome, RunEvent, RunId, Seq, ThreadId, Update},
    harness::{ReplayItem, ReplayReader},
    store::{CancelAction, LogEntry, StoreError},
};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// A stream that has nothing to say says so this often.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// So many rows of the log are read at once.
const LOG_PAGE: i64 = 500;
/// Frames are sent together up to so many bytes.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// A reader's request for a run's stream.
pub(super) struct StreamRequest {
    pub(super) thread: ThreadId,
    pub(super) run: RunId,
    pub(super) assistant: String,
    pub(super) modes: Modes,
    /// Position of the reader; the beginning if none.
    pub(super) after: Option<Position>,
    /// Whether the run is stopped when they go away.
    pub(super) cancels: bool,
}

/// Answers with a run's stream.
pub(super) fn respond(gateway: &GatewayState, request: StreamRequest) -> Response {
    let place = format!("/threads/{}/runs/{}", request.thread, request.run);
    let follower = Follower::new(gateway.clone(), request);
    let body = Body::from_stream(stream::unfold(follower, |mut follower| async move {
        let chunk = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), follower))
    }));
    let mut headers = HeaderMap::new();
    let fixed = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        // A proxy that compresses would hold the frames back to the end.
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.extend(places(&place, "stream"));
    (StatusCode::OK, headers, body).into_response()
}

/// Returns the headers that tell which run an answer is about, and where to come back to. LangGraph's SDKs put the latter
/// behind the base address that they were given, which ends in `/api`.
pub(super) fn places(run: &str, back: &str) -> HeaderMap {
    let told =
        [(header::CONTENT_LOCATION, format!("/api{run}")), (header::LOCATION, format!("{run}/{back}"))];
    let told = told.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_str(&value).ok()?)));
    told.collect()
}

/// Reads the position that a request's `Last-Event-ID` names; `-1` and what is none stand for the beginning.
pub(super) fn last_event(headers: &HeaderMap) -> Option<Position> {
    Position::read(headers.get("last-event-id")?.to_str().ok()?)
}

/// Stops a run when its only reader goes away, unless the daemon does.
struct StopsWithReader {
    gateway: GatewayState,
    live: LiveRun,
}

impl Drop for StopsWithReader {
    fn drop(&mut self) {
        if self.live.replay.ended() || self.gateway.0.stop.is_cancelled() {
            return;
        }
        let (gateway, live) = (self.gateway.clone(), self.live.clone());
        let shared = gateway.0.shared.clone();
        shared.tasks.spawn(async move {
            let client = &gateway.0.shared.client;
            if let Err(error) = client.stop(&live, CancelAction::Interrupt).await {
                tracing::warn!(run = %live.run, %error, "failed to stop run whose reader left");
            }
        });
    }
}

/// Makes sure that a run is stopped when the request that waits for it goes away.
pub(super) fn stops_with_reader(gateway: &GatewayState, live: LiveRun) -> impl Drop + use<> {
    StopsWithReader { gateway: gateway.clone(), live }
}

/// Source of the next events.
enum StreamSource {
    /// Nothing was sent yet.
    Begin,
    Ring(ReplayReader, LiveRun),
    /// All was read, and the run is being put away.
    Ending(LiveRun),
    /// The rows of a run that is in no ring any more.
    Log(std::vec::IntoIter<LogEntry>, Option<Outcome>),
    Over,
}

/// Result of reading on.
enum ReadOn {
    Something,
    /// Nothing happened for a while.
    Nothing,
}

struct Follower {
    gateway: GatewayState,
    request: StreamRequest,
    frames: Frames,
    source: StreamSource,
    beat: tokio::time::Interval,
    _stops: Option<StopsWithReader>,
}

impl Follower {
    fn new(gateway: GatewayState, request: StreamRequest) -> Self {
        let StreamRequest { thread, run, assistant, modes, .. } = &request;
        let frames = Frames::new(thread, run, assistant, *modes);
        let live = gateway.0.shared.client.live_run(run).filter(|_| request.cancels);
        let stops = live.map(|live| StopsWithReader { gateway: gateway.clone(), live });
        let mut beat = interval(HEARTBEAT_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        Self { gateway, request, frames, source: StreamSource::Begin, beat, _stops: stops }
    }

    /// Returns the next piece of the stream; `None` behind its end, and when the daemon goes.
    async fn next(&mut self) -> Option<Bytes> {
        while !matches!(self.source, StreamSource::Over) {
            match self.read().await {
                Ok(ReadOn::Something) => {}
                Ok(ReadOn::Nothing) => return Some(Bytes::from_static(b": heartbeat\n\n")),
                Err(error) => self.fail(&error),
            }
            let text = self.frames.take();
            if !text.is_empty() {
                self.beat.reset();
                return Some(text.into());
            }
        }
        None
    }

    /// The store failed: the reader comes back later and goes on.
    fn fail(&mut self, error: &StoreError) {
        tracing::error!(run = %self.request.run, %error, "failed to read run");
        self.source = StreamSource::Over;
    }

    /// Reads on, and makes frames of it.
    async fn read(&mut self) -> Result<ReadOn, StoreError> {
        let stop = &self.gateway.0.stop;
        match &mut self.source {
            StreamSource::Begin => self.begin().await?,
            StreamSource::Ring(reader, live) => {
                let item = tokio::select! {
                    biased;
                    () = stop.cancelled() => { self.source = StreamSource::Over; return Ok(ReadOn::Something) }
                    item = reader.next() => item,
                    _ = self.beat.tick() => return Ok(ReadOn::Nothing),
                };
                let live = live.clone();
                match item {
                    Some(item) => {
                        self.take(item, &live).await?;
                        self.take_ready(&live).await?;
                    }
                    None => self.source = StreamSource::Ending(live),
                }
            }
            StreamSource::Ending(live) => {
                // Who has read the last frame finds the run ended, and its thread free.
                tokio::select! {
                    biased;
                    () = stop.cancelled() => { self.source = StreamSource::Over; return Ok(ReadOn::Something) }
                    () = live.closed.cancelled() => {}
                    _ = self.beat.tick() => return Ok(ReadOn::Nothing),
                }
                let outcome = live.replay.progress().outcome;
                self.end(outcome.as_ref()).await;
            }
            StreamSource::Log(rows, outcome) => {
                let (updates, outcome) = (commit_of(rows), outcome.clone());
                match updates.last().map(|entry| entry.seq) {
                    None => self.end(outcome.as_ref()).await,
                    Some(seq) => {
                        let updates = updates.into_iter().map(|entry| entry.update).collect();
                        self.push(&RunEvent::Committed { seq, updates }).await?;
                    }
                }
            }
            StreamSource::Over => {}
        }
        Ok(ReadOn::Something)
    }

    /// Takes what is there already, so that it is sent together.
    async fn take_ready(&mut self, live: &LiveRun) -> Result<(), StoreError> {
        while self.frames.len() < MAX_CHUNK_BYTES {
            let StreamSource::Ring(reader, _) = &mut self.source else { return Ok(()) };
            let Some(Some(item)) = futures_util::FutureExt::now_or_never(reader.next()) else {
                return Ok(());
            };
            self.take(item, live).await?;
        }
        Ok(())
    }

    async fn take(&mut self, item: ReplayItem, live: &LiveRun) -> Result<(), StoreError> {
        match item {
            ReplayItem::Event(_, event) => self.push(&event).await,
            ReplayItem::Gap(_) => self.jump(live).await,
        }
    }

    async fn push(&mut self, event: &RunEvent) -> Result<(), StoreError> {
        if let RunEvent::Committed { seq, updates } = event
            && self.frames.needs_state()
        {
            let before = seq - Seq::try_from(updates.len()).unwrap_or(0);
            let db = &self.gateway.0.shared.db;
            let (_, state) = db.state_at(&self.request.thread, before).await?;
            self.frames.set_state(state);
            self.frames.set_title(db.title(&self.request.thread).await?);
        }
        self.frames.push(event);
        Ok(())
    }

    /// Goes on from how the thread is now: what comes between is gone.
    async fn jump(&mut self, live: &LiveRun) -> Result<(), StoreError> {
        let asked = self.frames.position();
        let (seq, state) = self.gateway.0.shared.db.state_at(&self.request.thread, Seq::MAX).await?;
        // Changes that the state has already are skipped.
        let known = |event: &RunEvent| matches!(event, RunEvent::Committed { seq: of, .. } if *of <= seq);
        let (oldest, next) = live.replay.span();
        let from = match live.replay.newest(known) {
            Some(at) => at + 1,
            // All that a resumed run has said since is behind the state.
            None if oldest == 0 => 0,
            None => next,
        };
        self.frames.gap(asked, seq, state);
        self.source = StreamSource::Ring(live.replay.read(from), live.clone());
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        let shared = self.gateway.0.shared.clone();
        let live = shared.client.live_run(&self.request.run);
        if let Some(after) = self.request.after {
            self.frames.seek(after);
            if after.seq > 0 {
                let (_, state) = shared.db.state_at(&self.request.thread, after.seq).await?;
                self.frames.set_state(state);
                self.frames.set_title(shared.db.title(&self.request.thread).await?);
            }
        } else {
            self.frames.begin();
        }
        if let Some(live) = live {
            match ring_place(&live, self.request.after) {
                Some(at) => self.source = StreamSource::Ring(live.replay.read(at), live),
                None => self.jump(&live).await?,
            }
            return Ok(());
        }
        let db = shared.db.within(STORE_TIMEOUT);
        let row = db.run(&self.request.run).await?;
        let outcome = row.and_then(|row| row.outcome());
        let after = self.request.after.unwrap_or_default();
        if after.event > 0 && outcome.is_some() {
            // Pieces of the message that comes next were sent, and are not known any more.
            let (seq, state) = db.state_at(&self.request.thread, Seq::MAX).await?;
            self.frames.gap(after, seq, state);
            self.source = StreamSource::Log(Vec::new().into_iter(), outcome);
            return Ok(());
        }
        let rows = self.rows(after.seq).await?;
        self.source = StreamSource::Log(rows.into_iter(), outcome);
        Ok(())
    }

    async fn rows(&self, mut after: Seq) -> Result<Vec<LogEntry>, StoreError> {
        let (db, request) = (self.gateway.0.shared.db.within(STORE_TIMEOUT), &self.request);
        let mut all = Vec::new();
        loop {
            let page = db.log_after(&request.thread, Some(&request.run), after, LOG_PAGE).await?;
            let is_last = page.len() < usize::try_from(LOG_PAGE).unwrap_or(usize::MAX);
            after = page.last().map_or(after, |entry| entry.seq);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    async fn end(&mut self, outcome: Option<&Outcome>) {
        let shared = &self.gateway.0.shared;
        let title = shared.db.within(STORE_TIMEOUT).title(&self.request.thread).await.ok().flatten();
        self.frames.end(outcome.unwrap_or(&Outcome::Stopped), title);
        self.source = StreamSource::Over;
    }
}

/// Takes the rows of a run that were one step: a reply by itself, and the results of its calls together.
fn commit_of(rows: &mut std::vec::IntoIter<LogEntry>) -> Vec<LogEntry> {
    let is_reply = |entry: &LogEntry| matches!(&entry.update, Update::Message(message) if matches!(**message, Message::Assistant(_)));
    let until = rows.as_slice().iter().position(is_reply);
    let count = match until {
        Some(0) => 1,
        Some(at) => at,
        None => rows.len(),
    };
    rows.take(count).collect()
}

/// Returns the event of a run's ring behind the row of a position; `None` if it is not there any more.
fn ring_place(live: &LiveRun, after: Option<Position>) -> Option<u64> {
    let (oldest, next) = live.replay.span();
    let at = match after {
        None | Some(Position { seq: 0, .. }) => 0,
        Some(Position { seq, .. }) => {
            let is_row =
                |known: &RunEvent| matches!(known, RunEvent::Committed { seq: of, .. } if *of == seq);
            live.replay.newest(is_row)? + 1
        }
    };
    (oldest..=next).contains(&at).then_some(at)
}
