//! The stream of one run: from the ring buffer while the run is active and for a minute after it ends, then from the
//! log. A returning reader continues after its last position, and gets a gap frame in place of lost events. A slow
//! reader does not slow down the run.

use crate::{LiveRun, RunManager};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_base::{Message, Outcome, RunEvent, RunId, Seq, ThreadId, ThreadState, Update};
use pudu_harness::{ReplayItem, ReplayReader};
use pudu_langgraph::{
    frame::{Frame, Position},
    frames::Frames,
    modes::Modes,
    run,
    steps::Steps,
};
use pudu_store::{LogEntry, RunRow, RunTitles, StoreError};
use std::{cell::Cell, time::Duration};

/// Maximum number of log rows per read.
const LOG_PAGE: i64 = 500;
/// Maximum number of log rows per read if only the newest steps are needed.
const STEP_PAGE: i64 = 64;
/// Timeout of store reads for a reader.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// A reader's request for a run's stream.
pub struct StreamRequest {
    /// The thread of the run.
    pub thread: ThreadId,
    /// The run.
    pub run: RunId,
    /// The name of its assistant, for the frames' metadata.
    pub assistant: String,
    /// The requested frames.
    pub modes: Modes,
    /// Position of the reader; `None` for the beginning.
    pub after: Option<Position>,
    /// An id from the reader that matches no frame. The stream then begins with a gap.
    pub lost: Option<String>,
}

/// Groups of frames, one per event. The stream ends after the last frame and after an error; a reader can then resume
/// at its position.
pub type FrameStream = BoxStream<'static, Result<Vec<Frame>, StoreError>>;

impl RunManager {
    /// Returns the newest steps of a thread up to a position: enough to determine the parent of the newest one.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn steps_at(&self, thread: &ThreadId, seq: Seq) -> Result<Steps, StoreError> {
        let (db, mut rows, mut at) =
            (self.0.agent.db().within(STORE_TIMEOUT), Vec::new(), seq.saturating_add(1));
        loop {
            let page = db.log_before(thread, at, STEP_PAGE).await?;
            let oldest = page.last().map(|entry| entry.seq);
            rows.extend(page);
            let steps = Steps::from_rows(&rows);
            match oldest {
                Some(oldest) if oldest > 1 && steps.parent().is_none() => at = oldest,
                _ => return Ok(steps),
            }
        }
    }

    /// Follows a run, which continues with or without a reader.
    #[must_use]
    pub fn follow(&self, request: StreamRequest) -> FrameStream {
        let StreamRequest { thread, run, assistant, modes, .. } = &request;
        let frames = Frames::new(thread, run, assistant, *modes);
        self.follow_as(request, frames)
    }

    /// Follows a run, converting its events to these frames.
    pub(crate) fn follow_as(&self, request: StreamRequest, frames: Frames) -> FrameStream {
        let follower = Follower { manager: self.clone(), request, frames, source: StreamSource::Begin };
        stream::try_unfold(follower, async |mut follower| {
            Ok(follower.next().await?.map(|frames| (frames, follower)))
        })
        .boxed()
    }
}

/// Source of the next events.
enum StreamSource {
    /// No frame was sent yet.
    Begin,
    Ring(ReplayReader, LiveRun),
    /// All events were read, and the run is being closed.
    Ending(LiveRun),
    /// Rows of a run that are not in a ring, and how the stream continues after them.
    Log(std::vec::IntoIter<LogEntry>, Rest),
    Over,
}

/// How a stream continues after the rows of a run.
#[derive(Clone)]
enum Rest {
    /// Its events since a restart.
    Ring(LiveRun),
    End(Option<Outcome>),
}

struct Follower {
    manager: RunManager,
    request: StreamRequest,
    frames: Frames,
    source: StreamSource,
}

impl Follower {
    /// Returns the next frames; `None` after the last.
    async fn next(&mut self) -> Result<Option<Vec<Frame>>, StoreError> {
        while !matches!(self.source, StreamSource::Over) {
            self.read().await?;
            let frames = self.frames.take();
            if !frames.is_empty() {
                return Ok(Some(frames));
            }
        }
        Ok(None)
    }

    /// Reads the next events and converts them to frames.
    async fn read(&mut self) -> Result<(), StoreError> {
        match &mut self.source {
            StreamSource::Begin => self.begin().await?,
            StreamSource::Ring(reader, live) => {
                let (item, live) = (reader.next().await, live.clone());
                match item {
                    Some(item) => self.take(item, &live).await?,
                    None => self.source = StreamSource::Ending(live),
                }
            }
            StreamSource::Ending(live) => {
                // When a reader gets the last frame, the end must be stored and the thread released.
                live.closed.cancelled().await;
                let outcome = live.replay.progress().outcome;
                self.end(outcome.as_ref()).await?;
            }
            StreamSource::Log(rows, rest) => {
                let known = self.request.after.unwrap_or_default().seq;
                let (updates, rest) = (commit_of(rows, known), rest.clone());
                self.frames.set_time(updates.last().map(|entry| entry.at));
                match (updates.last().map(|entry| entry.seq), rest) {
                    (None, Rest::End(outcome)) => self.end(outcome.as_ref()).await?,
                    (None, Rest::Ring(live)) => {
                        self.frames.go_on_at(first_place(&live));
                        self.source = StreamSource::Ring(live.replay.read(0), live);
                    }
                    (Some(seq), _) => {
                        let updates = updates.into_iter().map(|entry| entry.update).collect();
                        self.push(&RunEvent::Committed { seq, updates }).await?;
                    }
                }
            }
            StreamSource::Over => {}
        }
        Ok(())
    }

    async fn take(&mut self, item: ReplayItem, live: &LiveRun) -> Result<(), StoreError> {
        match item {
            ReplayItem::Event(_, event) => self.push(&event).await,
            ReplayItem::Gap(_) => self.jump(live, self.frames.position()).await,
        }
    }

    async fn push(&mut self, event: &RunEvent) -> Result<(), StoreError> {
        if let RunEvent::Committed { seq, updates } = event
            && self.frames.needs_state()
        {
            let before = seq - Seq::try_from(updates.len()).unwrap_or(0);
            let state = match self.start(before) {
                Some(state) => state,
                None => self.manager.0.agent.db().state_at(&self.request.thread, before).await?.1,
            };
            let steps = self.steps(before).await?;
            self.frames.set_state(state, steps);
            self.read_title().await?;
        }
        // The model is known before the first event that names it.
        if let StreamSource::Ring(_, live) | StreamSource::Log(_, Rest::Ring(live)) = &self.source
            && let Some(model) = live.model.get()
        {
            self.frames.set_model(model);
        }
        self.frames.push(event);
        Ok(())
    }

    /// Returns the thread's state at the start of the run, if that was at this position.
    fn start(&self, position: Seq) -> Option<ThreadState> {
        let StreamSource::Ring(_, live) = &self.source else { return None };
        live.start.get().filter(|(seq, _)| *seq == position).map(|(_, state)| state.clone())
    }

    /// Sets the title from before the run, if any frame contains it.
    async fn read_title(&mut self) -> Result<(), StoreError> {
        let title = self.titles().await?.found;
        self.frames.set_title(title);
        Ok(())
    }

    /// Returns the titles before and after the run; none if no frame contains them.
    async fn titles(&self) -> Result<RunTitles, StoreError> {
        let (db, request) = (self.manager.0.agent.db().within(STORE_TIMEOUT), &self.request);
        match request.modes.show_values() {
            true => db.run_titles(&request.thread, &request.run).await,
            false => Ok(RunTitles::default()),
        }
    }

    /// Reports a gap up to a position, with the thread's state there. Returns the position of that state.
    async fn gap(&mut self, asked: Position, until: Seq) -> Result<Seq, StoreError> {
        let db = self.manager.0.agent.db();
        let (seq, state) = db.state_at(&self.request.thread, until).await?;
        self.read_title().await?;
        let steps = self.steps(seq).await?;
        self.frames.gap(asked, seq, state, steps);
        Ok(seq)
    }

    /// Continues from the current state of the thread; the events in between are gone.
    async fn jump(&mut self, live: &LiveRun, asked: Position) -> Result<(), StoreError> {
        let seq = self.gap(asked, Seq::MAX).await?;
        // Changes that the state already includes are skipped.
        let known = |event: &RunEvent| matches!(event, RunEvent::Committed { seq: of, .. } if *of <= seq);
        let (oldest, next) = live.replay.span();
        let from = match live.replay.newest(known) {
            Some(at) => at + 1,
            // All events since a restart are after the state.
            None if oldest == 0 => 0,
            None => next,
        };
        self.source = StreamSource::Ring(live.replay.read(from), live.clone());
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        if let Some(after) = self.request.after
            && self.is_unknown(after).await?
        {
            self.request.after = None;
            self.request.lost = Some(after.to_string());
        }
        if self.frames.needs_run() {
            let (db, request) = (self.manager.0.agent.db().within(STORE_TIMEOUT), &self.request);
            let span = db.span_of_run(&request.thread, &request.run).await?;
            let row = db.run(&request.run).await?;
            self.know_model(row.as_ref());
            self.frames
                .set_run(span.map(|(first, _)| first), row.map(|row| run::input(&row)).unwrap_or_default());
        }
        if self.request.after.is_none() {
            self.frames.begin();
        }
        if let Some(lost) = &self.request.lost {
            self.frames.lost(lost);
        }
        let mut after = self.request.after.unwrap_or_default();
        if after.left == Some(0) {
            after.left = None;
            self.frames.go_on_at(after);
            self.know_state(after.seq).await?;
            self.frames.tell_state();
        }
        self.frames.go_on_at(after);
        match self.manager.live_run(&self.request.run) {
            Some(live) => self.begin_live(live, after).await,
            None => self.begin_ended(after).await,
        }
    }

    /// Sets the model from the run's record, if there is one.
    fn know_model(&mut self, row: Option<&RunRow>) {
        if let Some(row) = row {
            self.frames.set_model(&row.model);
        }
    }

    /// Returns whether a position is after the thread's newest row, as with an id from another server or a deleted run.
    async fn is_unknown(&self, after: Position) -> Result<bool, StoreError> {
        if after.seq == 0 {
            return Ok(false);
        }
        let db = self.manager.0.agent.db().within(STORE_TIMEOUT);
        Ok(db.newest_row(&self.request.thread).await? < after.seq)
    }

    /// Begins to read an active or recently ended run. Its events from before a restart are only in the log.
    async fn begin_live(&mut self, live: LiveRun, after: Position) -> Result<(), StoreError> {
        let ring = first_place(&live);
        let Some((at, from)) = ring_place(&live, after) else { return self.jump(&live, after).await };
        if after.order() >= ring.order() {
            self.frames.seek(from, after);
            // If a step is read again, the state before it is set while reading.
            if !is_within_step(after) {
                self.know_state(after.seq).await?;
            }
            self.source = StreamSource::Ring(live.replay.read(at), live);
            return Ok(());
        }
        let row = self.manager.0.agent.db().within(STORE_TIMEOUT).run(&self.request.run).await?;
        self.know_model(row.as_ref());
        let rows = self.rows_behind(after, ring.seq).await?;
        self.source = StreamSource::Log(rows.into_iter(), Rest::Ring(live));
        Ok(())
    }

    /// Begins to read a run that ended longer ago.
    async fn begin_ended(&mut self, after: Position) -> Result<(), StoreError> {
        let db = self.manager.0.agent.db().within(STORE_TIMEOUT);
        let row = db.run(&self.request.run).await?;
        self.know_model(row.as_ref());
        let outcome = row.and_then(|row| row.outcome());
        let rows = self.rows_behind(after, Seq::MAX).await?;
        self.source = StreamSource::Log(rows.into_iter(), Rest::End(outcome));
        Ok(())
    }

    /// Reads the run's rows after a reader's position, up to another one. Streamed pieces of a message are not stored,
    /// so a reader that has some of the next message gets a gap.
    async fn rows_behind(&mut self, after: Position, until: Seq) -> Result<Vec<LogEntry>, StoreError> {
        if is_within_step(after) {
            // Rows before that position produce no frames: the reader already has them.
            self.frames.seek(Position::default(), after);
            return self.rows(0, until).await;
        }
        if after.event > 0 && !after.is_end() {
            self.gap(after, until).await?;
            return Ok(Vec::new());
        }
        self.frames.seek(Position::after(after.seq, 0), after);
        self.know_state(after.seq).await?;
        self.rows(after.seq, until).await
    }

    /// Sets the thread's state at the position where the reader continues.
    async fn know_state(&mut self, seq: Seq) -> Result<(), StoreError> {
        if seq > 0 {
            let db = self.manager.0.agent.db();
            let (_, state) = db.state_at(&self.request.thread, seq).await?;
            let steps = self.steps(seq).await?;
            self.frames.set_state(state, steps);
            self.read_title().await?;
        }
        Ok(())
    }

    /// Returns the newest steps up to a position; none if no frame contains them.
    async fn steps(&self, seq: Seq) -> Result<Steps, StoreError> {
        match self.frames.needs_steps() {
            true => self.manager.steps_at(&self.request.thread, seq).await,
            false => Ok(Steps::default()),
        }
    }

    /// Reads the run's rows after a position of the log, up to another one.
    async fn rows(&self, mut after: Seq, until: Seq) -> Result<Vec<LogEntry>, StoreError> {
        let (db, request) = (self.manager.0.agent.db().within(STORE_TIMEOUT), &self.request);
        let mut all = Vec::new();
        loop {
            let page = db.log_after(&request.thread, Some(&request.run), after, LOG_PAGE).await?;
            let is_last = page.len() < usize::try_from(LOG_PAGE).unwrap_or(usize::MAX);
            after = page.last().map_or(after, |entry| entry.seq);
            all.extend(page.into_iter().filter(|entry| entry.seq <= until));
            if is_last || after >= until {
                return Ok(all);
            }
        }
    }

    async fn end(&mut self, outcome: Option<&Outcome>) -> Result<(), StoreError> {
        let title = self.titles().await?.left;
        self.frames.end(outcome.unwrap_or(&Outcome::Stopped), title);
        self.source = StreamSource::Over;
        Ok(())
    }
}

/// Takes the rows of a run's next step: one reply, or all rows before the next reply. Stops after the reader's row
/// `known`.
fn commit_of(rows: &mut std::vec::IntoIter<LogEntry>, known: Seq) -> Vec<LogEntry> {
    let is_reply = |entry: &LogEntry| matches!(&entry.update, Update::Message(message) if matches!(**message, Message::Assistant(_)));
    let until = rows.as_slice().iter().position(is_reply);
    let count = match until {
        Some(0) => 1,
        Some(at) => at,
        None => rows.len(),
    };
    let known = rows.as_slice().iter().position(|entry| entry.seq == known);
    rows.take(known.map_or(count, |at| count.min(at + 1))).collect()
}

/// Returns the position of a run's ring before its first event.
fn first_place(live: &LiveRun) -> Position {
    Position::after(live.before, live.first_event)
}

/// Returns whether a reader has some frames of a row's step, but not all.
fn is_within_step(after: Position) -> bool {
    after.event == 0 && after.left.is_some()
}

/// Returns where in a run's ring a reader continues, and the position before that event; `None` if the event was
/// dropped. The event follows the reader's row, or the row before it if the reader lacks a part of that row's step.
fn ring_place(live: &LiveRun, after: Position) -> Option<(u64, Position)> {
    let (oldest, next) = live.replay.span();
    let behind_row = |is_wanted: &dyn Fn(Seq) -> bool| {
        let row = Cell::new(0);
        let at = live.replay.newest(|event| match event {
            RunEvent::Committed { seq, .. } => {
                row.set(*seq);
                is_wanted(*seq)
            }
            _ => false,
        })?;
        Some((at + 1, Position::after(row.get(), 0)))
    };
    let begin = (0, first_place(live));
    let position = match after.seq > live.before {
        false => begin,
        true => {
            let after_row = behind_row(&|seq| seq == after.seq)?;
            match is_within_step(after) {
                true => behind_row(&|seq| seq < after.seq).unwrap_or(begin),
                false => after_row,
            }
        }
    };
    (oldest..=next).contains(&position.0).then_some(position)
}
