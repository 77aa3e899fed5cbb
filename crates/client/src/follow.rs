//! The stream of one run: from the ring while the run works and a minute longer, from the log afterwards. A returning
//! reader continues after its last position, and gets a gap frame where events are gone. A slow reader does not slow
//! the run.

use crate::{
    Client, LiveRun,
    base::{Message, Outcome, RunEvent, RunId, Seq, ThreadId, ThreadState, Update},
    harness::{ReplayItem, ReplayReader},
    store::{LogEntry, RunRow, RunTitles, StoreError},
    wire::{
        frame::{Frame, Position},
        frames::Frames,
        modes::Modes,
        run,
        steps::Steps,
    },
};
use futures_util::{StreamExt, stream, stream::BoxStream};
use std::{cell::Cell, time::Duration};

/// Maximum number of log rows per read.
const LOG_PAGE: i64 = 500;
/// The same limit for reads of the newest steps only.
const STEP_PAGE: i64 = 64;
/// Timeout of store reads for a reader.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// Position of the reader; the beginning if none.
    pub after: Option<Position>,
    /// An id from the reader that no frame has. The stream then begins with a gap.
    pub lost: Option<String>,
}

/// Groups of frames, one per event. The stream ends after the last frame and after an error; a reader can then resume
/// at its position.
pub type FrameStream = BoxStream<'static, Result<Vec<Frame>, StoreError>>;

impl Client {
    /// Returns the newest steps of a thread up to a position, as many as it takes to know the parent of the newest.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn steps_at(&self, thread: &ThreadId, seq: Seq) -> Result<Steps, StoreError> {
        let (db, mut rows, mut at) = (self.0.db.within(STORE_TIMEOUT), Vec::new(), seq.saturating_add(1));
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
        let follower = Follower { client: self.clone(), request, frames, source: StreamSource::Begin };
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
    /// Rows of a run that are in no ring, and the continuation after them.
    Log(std::vec::IntoIter<LogEntry>, Rest),
    Over,
}

/// Continuation of a run after its rows.
#[derive(Clone)]
enum Rest {
    /// Its events since a restart.
    Ring(LiveRun),
    End(Option<Outcome>),
}

struct Follower {
    client: Client,
    request: StreamRequest,
    frames: Frames,
    source: StreamSource,
}

impl Follower {
    /// Returns the next frames; `None` behind the last.
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

    /// Reads the next events, and turns them into frames.
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
                // After the last frame, a reader finds the run ended and its thread free.
                live.closed.cancelled().await;
                let outcome = live.replay.progress().outcome;
                self.end(outcome.as_ref()).await?;
            }
            StreamSource::Log(rows, rest) => {
                let known = self.request.after.unwrap_or_default().seq;
                let (updates, rest) = (commit_of(rows, known), rest.clone());
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
                None => self.client.0.db.state_at(&self.request.thread, before).await?.1,
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

    /// Returns the thread as the run found it, if that was at this position.
    fn start(&self, position: Seq) -> Option<ThreadState> {
        let StreamSource::Ring(_, live) = &self.source else { return None };
        live.start.get().filter(|(seq, _)| *seq == position).map(|(_, state)| state.clone())
    }

    /// Sets the title that the run found, if frames show one.
    async fn read_title(&mut self) -> Result<(), StoreError> {
        let title = self.titles().await?.found;
        self.frames.set_title(title);
        Ok(())
    }

    /// Returns the titles that the run found and left; none if no frame shows them.
    async fn titles(&self) -> Result<RunTitles, StoreError> {
        let (db, request) = (self.client.0.db.within(STORE_TIMEOUT), &self.request);
        match request.modes.show_values() {
            true => db.run_titles(&request.thread, &request.run).await,
            false => Ok(RunTitles::default()),
        }
    }

    /// Reports a gap up to a position, with the state of the thread there.
    async fn gap(&mut self, asked: Position, until: Seq) -> Result<Seq, StoreError> {
        let db = &self.client.0.db;
        let (seq, state) = db.state_at(&self.request.thread, until).await?;
        self.read_title().await?;
        let steps = self.steps(seq).await?;
        self.frames.gap(asked, seq, state, steps);
        Ok(seq)
    }

    /// Continues from the current state of the thread; the events in between are gone.
    async fn jump(&mut self, live: &LiveRun, asked: Position) -> Result<(), StoreError> {
        let seq = self.gap(asked, Seq::MAX).await?;
        // Changes that the state has already are skipped.
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
            let (db, request) = (self.client.0.db.within(STORE_TIMEOUT), &self.request);
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
        match self.client.live_run(&self.request.run) {
            Some(live) => self.begin_live(live, after).await,
            None => self.begin_ended(after).await,
        }
    }

    /// Sets the model that the store has for the run.
    fn know_model(&mut self, row: Option<&RunRow>) {
        if let Some(row) = row {
            self.frames.set_model(&row.model);
        }
    }

    /// Returns whether a position is behind the thread's newest row: an id of another server, or of a run that is gone.
    async fn is_unknown(&self, after: Position) -> Result<bool, StoreError> {
        if after.seq == 0 {
            return Ok(false);
        }
        let db = self.client.0.db.within(STORE_TIMEOUT);
        let newest = db.log_before(&self.request.thread, Seq::MAX, 1).await?;
        Ok(newest.first().is_none_or(|row| row.seq < after.seq))
    }

    /// Begins to read a run that works, or ended a moment ago. Its events from before a restart are in the log only.
    async fn begin_live(&mut self, live: LiveRun, after: Position) -> Result<(), StoreError> {
        let ring = first_place(&live);
        let Some((at, from)) = ring_place(&live, after) else { return self.jump(&live, after).await };
        if after.order() >= ring.order() {
            self.frames.seek(from, after);
            // The state before a step that is read again comes with it.
            if !is_within_step(after) {
                self.know_state(after.seq).await?;
            }
            self.source = StreamSource::Ring(live.replay.read(at), live);
            return Ok(());
        }
        let row = self.client.0.db.within(STORE_TIMEOUT).run(&self.request.run).await?;
        self.know_model(row.as_ref());
        let rows = self.rows_behind(after, ring.seq).await?;
        self.source = StreamSource::Log(rows.into_iter(), Rest::Ring(live));
        Ok(())
    }

    /// Begins to read a run that ended longer ago.
    async fn begin_ended(&mut self, after: Position) -> Result<(), StoreError> {
        let db = self.client.0.db.within(STORE_TIMEOUT);
        let row = db.run(&self.request.run).await?;
        self.know_model(row.as_ref());
        let outcome = row.and_then(|row| row.outcome());
        let rows = self.rows_behind(after, Seq::MAX).await?;
        self.source = StreamSource::Log(rows.into_iter(), Rest::End(outcome));
        Ok(())
    }

    /// Reads the run's rows after a reader, up to another position. Pieces of a message after the reader's row are not
    /// stored: a reader that has some gets a gap.
    async fn rows_behind(&mut self, after: Position, until: Seq) -> Result<Vec<LogEntry>, StoreError> {
        if is_within_step(after) {
            // The rows before it make no frames: the reader has them.
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

    /// Sets the thread's state at the position from which the reader continues.
    async fn know_state(&mut self, seq: Seq) -> Result<(), StoreError> {
        if seq > 0 {
            let db = &self.client.0.db;
            let (_, state) = db.state_at(&self.request.thread, seq).await?;
            let steps = self.steps(seq).await?;
            self.frames.set_state(state, steps);
            self.read_title().await?;
        }
        Ok(())
    }

    /// Returns the newest steps up to a position; none if no frame names them.
    async fn steps(&self, seq: Seq) -> Result<Steps, StoreError> {
        match self.frames.needs_steps() {
            true => self.client.steps_at(&self.request.thread, seq).await,
            false => Ok(Steps::default()),
        }
    }

    /// Reads the run's rows behind a position of the log, up to another one.
    async fn rows(&self, mut after: Seq, until: Seq) -> Result<Vec<LogEntry>, StoreError> {
        let (db, request) = (self.client.0.db.within(STORE_TIMEOUT), &self.request);
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

/// Takes the rows of one step of a run: a single reply, or the results of its calls together, up to the row that the
/// reader knows.
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

/// Returns whether a reader has some frames of a row's step, and not all.
fn is_within_step(after: Position) -> bool {
    after.event == 0 && after.left.is_some()
}

/// Returns the event of a run's ring from which a reader continues, and the position before it; `None` if the event is
/// gone. The event follows the reader's row, or the row before if the reader lacks a part of that step.
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
    let place = match after.seq > live.before {
        false => begin,
        true => {
            let behind = behind_row(&|seq| seq == after.seq)?;
            match is_within_step(after) {
                true => behind_row(&|seq| seq < after.seq).unwrap_or(begin),
                false => behind,
            }
        }
    };
    (oldest..=next).contains(&place.0).then_some(place)
}
