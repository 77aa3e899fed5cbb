//! The events of a thread in LangGraph's protocol: those of its runs, one run after another, without an end. A reader
//! names the number of its last event and gets the later ones, from the ring of a run or from the log.

use crate::{FrameStream, RunManager, StreamRequest, follow::STORE_TIMEOUT};
use futures_util::{StreamExt, stream, stream::BoxStream};
use pudu_base::{RunId, ThreadId, UserId};
use pudu_langgraph::{
    frame::{Frame, Position},
    frames::Frames,
    protocol::{Continue, EventFilter, RunPlace, number_at},
    run,
};
use pudu_store::{Db, StoreError, now};
use std::{
    collections::{HashSet, VecDeque},
    fmt::{Display, Formatter, Result as Formatted},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Notify;

/// Age of an ended run whose events a reader without a number gets, in milliseconds: the run may have ended before its
/// client opened the stream, or opened it again. It is short, because Python's SDK takes the end of such a run for the end
/// of the one that it starts next.
const RECENT_MS: i64 = 10_000;
/// Number of runs read at once.
const RUN_PAGE: i64 = 64;
/// First and longest interval of looking for the record of a run that was just added to its thread.
const RECORD_WAIT: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// A reader's request for the events of a thread.
pub struct ThreadEventsRequest {
    /// The thread, which may not exist yet.
    pub thread: ThreadId,
    /// The wanted events.
    pub filter: EventFilter,
    /// Number of the last event that the reader has; `None` for the active and the recently ended runs.
    pub since: Option<u64>,
    /// If set, only runs of this user: the thread did not exist when the reader asked.
    pub only_of: Option<UserId>,
}

/// An event of a thread.
pub struct ThreadEvent {
    number: u64,
    frame: Frame,
}

/// Groups of events. A stream ends with the first error; the reader can then continue after its last number.
pub type ThreadEventStream = BoxStream<'static, Result<Vec<ThreadEvent>, StoreError>>;

impl ThreadEvent {
    /// Returns the event as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Self { number, frame } = self;
        let fallback_id = || frame.id.map(|id| id.to_string()).unwrap_or_default();
        let id = serde_json::Value::from(frame.event_id.clone().unwrap_or_else(fallback_id));
        let (method, params) = (frame.name, &frame.data);
        format!(r#"{{"type":"event","event_id":{id},"seq":{number},"method":"{method}","params":{params}}}"#)
    }
}

/// Writes a server-sent event.
impl Display for ThreadEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        write!(f, "event: {}\ndata: {}\nid: {}\n\n", self.frame.name, self.to_json(), self.number)
    }
}

impl RunManager {
    /// Follows a thread, which works with or without a reader.
    #[must_use]
    pub fn follow_thread(&self, request: ThreadEventsRequest) -> ThreadEventStream {
        let opened = self.0.runs.watch(&request.thread);
        let follower = ThreadFollower {
            manager: self.clone(),
            request,
            opened,
            seen: HashSet::new(),
            next: VecDeque::new(),
            current: None,
            has_begun: false,
        };
        stream::try_unfold(follower, async |mut follower| Ok(Some((follower.events().await?, follower))))
            .boxed()
    }
}

struct ThreadFollower {
    manager: RunManager,
    request: ThreadEventsRequest,
    /// Notified when a run is added to the thread.
    opened: Arc<Notify>,
    /// The runs that were followed, or are not wanted.
    seen: HashSet<RunId>,
    /// The runs that come next, oldest first.
    next: VecDeque<RunId>,
    current: Option<(RunPlace, FrameStream)>,
    has_begun: bool,
}

impl ThreadFollower {
    /// Returns the next events.
    async fn events(&mut self) -> Result<Vec<ThreadEvent>, StoreError> {
        if !self.has_begun {
            self.has_begun = true;
            self.begin().await?;
        }
        loop {
            if let Some((place, frames)) = &mut self.current {
                let Some(made) = frames.next().await else {
                    self.current = None;
                    continue;
                };
                let place = *place;
                let event = |frame: Frame| Some(ThreadEvent { number: place.number(frame.id?), frame });
                let events: Vec<ThreadEvent> = made?.into_iter().filter_map(event).collect();
                if !events.is_empty() {
                    return Ok(events);
                }
            } else if let Some(run) = self.next.pop_front() {
                self.current = self.open(&run).await?;
            } else {
                self.wait().await?;
            }
        }
    }

    fn db(&self) -> Db {
        self.manager.0.agent.db().within(STORE_TIMEOUT)
    }

    fn is_wanted(&self, user: &UserId) -> bool {
        self.request.only_of.as_ref().is_none_or(|only| only == user)
    }

    /// Finds the runs with events that the reader lacks.
    async fn begin(&mut self) -> Result<(), StoreError> {
        let newest = self.db().newest_row(&self.request.thread).await?;
        // A number beyond the log is from another thread, or from before a deletion.
        self.request.since = self.request.since.filter(|since| *since < number_at(newest.saturating_add(1)));
        let mut offset = 0;
        loop {
            let page = self.db().run_ends(&self.request.thread, RUN_PAGE, offset).await?;
            let (count, mut found) = (page.len(), false);
            for (run, user, ended) in page {
                let is_lacking = self.is_wanted(&user) && self.lacks(&run, ended).await?;
                found |= is_lacking;
                if self.seen.insert(run.clone()) && is_lacking {
                    self.next.push_front(run);
                }
            }
            if !found || i64::try_from(count).is_ok_and(|count| count < RUN_PAGE) {
                return Ok(());
            }
            offset += RUN_PAGE;
        }
    }

    /// Returns whether the reader lacks events of a run.
    async fn lacks(&mut self, run: &RunId, ended: Option<i64>) -> Result<bool, StoreError> {
        let is_recent = ended.is_none_or(|ended| ended >= now() - RECENT_MS);
        let (Some(since), Some(_)) = (self.request.since, ended) else { return Ok(is_recent) };
        let span = self.db().span_of_run(&self.request.thread, run).await?;
        Ok(span.map_or(is_recent, |(_, last)| since < number_at(last)))
    }

    /// Begins to follow a run; `None` if it was deleted, or the reader has all of its events.
    async fn open(&mut self, id: &RunId) -> Result<Option<(RunPlace, FrameStream)>, StoreError> {
        let Some(row) = self.db().run(id).await? else { return Ok(None) };
        let live = self.manager.live_run(id);
        let resumed = live.as_ref().map(|live| (live.before, live.first_event)).unwrap_or_default();
        let span = self.db().span_of_run(&row.thread, id).await?;
        let base = match span {
            Some((first, _)) => first - 1,
            None => self.db().newest_row(&row.thread).await?,
        };
        let place = RunPlace { base, resumed };
        let end = span.map_or_else(|| place.number(Position::end(0)), |(_, last)| number_at(last));
        if row.ended.is_some() && self.request.since.is_some_and(|since| since >= end) {
            return Ok(None);
        }
        let after = match self.request.since.map(|since| place.after(since)) {
            Some(Continue::After(position)) => Some(position),
            Some(Continue::Begin) | None => None,
        };
        let assistant = run::assistant(&row.assistant).to_owned();
        let frames = Frames::of_protocol(&row.thread, id, &assistant, self.request.filter.clone());
        let modes = self.request.filter.modes();
        let request =
            StreamRequest { thread: row.thread, run: id.clone(), assistant, modes, after, lost: None };
        Ok(Some((place, self.manager.follow_as(request, frames))))
    }

    /// Waits until the thread has a run that was not followed.
    async fn wait(&mut self) -> Result<(), StoreError> {
        let opened = self.opened.clone();
        let mut interval = RECORD_WAIT.0;
        loop {
            let notified = opened.notified();
            if self.find_new().await? {
                return Ok(());
            }
            // A run is added to its thread before its record is stored. Changes by clients have no record.
            if self.has_unknown_run() {
                tokio::time::timeout(interval, notified).await.ok();
                interval = (interval * 2).min(RECORD_WAIT.1);
            } else {
                notified.await;
                interval = RECORD_WAIT.0;
            }
        }
    }

    fn has_unknown_run(&self) -> bool {
        let live = self.manager.live_runs(&self.request.thread);
        live.iter().any(|live| !self.seen.contains(&live.run))
    }

    /// Finds new runs, and returns whether there is one.
    async fn find_new(&mut self) -> Result<bool, StoreError> {
        let mut offset = 0;
        loop {
            let page = self.db().run_ends(&self.request.thread, RUN_PAGE, offset).await?;
            let (count, mut new) = (page.len(), 0);
            for (run, user, ended) in page {
                if !self.seen.insert(run.clone()) {
                    continue;
                }
                new += 1;
                // An older run reaches the page when a newer one is deleted.
                if self.is_wanted(&user) && ended.is_none_or(|ended| ended >= now() - RECENT_MS) {
                    self.next.push_front(run);
                }
            }
            if new < count || count == 0 {
                return Ok(!self.next.is_empty());
            }
            offset += RUN_PAGE;
        }
    }
}
