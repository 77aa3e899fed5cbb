//! The runs that work, and their events, for programs that want more than a chat shows.

use super::{GatewayState, auth::CallerProof, caller::Caller, errors::refuse, refusal::scrubbed};
use axum::{
    Extension,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, stream};
use pudu_client::{
    LiveRun,
    base::{MessageId, RunEvent, RunId},
    harness::{Gap, Progress, ReplayItem, ReplayReader},
    net::scrub,
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use serde_json::{Value, json};
use std::{collections::VecDeque, convert::Infallible, time::Duration};
use tokio_util::sync::CancellationToken;

/// Lists the runs that work or wait to, oldest first: those of the caller's own threads, unless the caller sees all.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
) -> Response {
    let mut shown_runs = Vec::new();
    for (run, replay) in gateway.0.shared.client.runs() {
        if found(&gateway, (&caller, &proof), &run).await.is_some() {
            shown_runs.push(json!({ "run_id": run, "progress": progress(&replay.progress()) }));
        }
    }
    scrubbed(&json!({ "runs": shown_runs }))
}

/// Returns a run that the caller may follow. Runs of other users are not distinguished from missing ones.
async fn found(
    gateway: &GatewayState,
    (caller, proof): (&Caller, &CallerProof),
    run: &RunId,
) -> Option<LiveRun> {
    let live = gateway.0.shared.client.live_run(run)?;
    if proof.sees_all(caller) {
        return Some(live);
    }
    let thread = gateway.0.shared.db.within(STORE_TIMEOUT).client_thread(&live.thread).await;
    thread.ok().flatten().filter(|thread| thread.user == caller.user).map(|_| live)
}

/// Follows a run's events; with `Last-Event-ID`, from the one behind it on. A reader that has fallen out of the ring
/// gets a `gap` with all progress so far, and continues from there.
pub(super) async fn events(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(LiveRun { replay, .. }) = found(&gateway, (&caller, &proof), &run.into()).await else {
        return refuse(StatusCode::NOT_FOUND, "there is no such run, or it ended more than a minute ago");
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<u64>().ok());
    let reader = replay.read(last.map_or(0, |last| last.saturating_add(1)));
    let keep = KeepAlive::new().interval(Duration::from_secs(15)).text("heartbeat");
    let following = follow(RunFollower::new(reader), gateway.0.stop.clone());
    ([("x-accel-buffering", "no")], Sse::new(following).keep_alive(keep)).into_response()
}

fn follow(follower: RunFollower, stop: CancellationToken) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold((follower, stop), |(mut follower, stop)| async move {
        let event = stop.run_until_cancelled(follower.next()).await??;
        Some((Ok(event), (follower, stop)))
    })
}

/// A reader of a run's events. Text that may be the beginning of a secret waits for the text after it, and so does the
/// id of its event: a reader that resumes behind an id has had all before it.
struct RunFollower {
    reader: ReplayReader,
    words: Option<WaitingWords>,
    ready: VecDeque<Event>,
}

/// Text of a message that was not sent yet.
struct WaitingWords {
    message: MessageId,
    id: u64,
    told: String,
    rest: scrub::GrowingTalk,
}

impl WaitingWords {
    fn event(mut self) -> Option<Event> {
        self.told.push_str(&self.rest.finish());
        let happened = RunEvent::Text { message: self.message, delta: self.told };
        (!matches!(&happened, RunEvent::Text { delta, .. } if delta.is_empty()))
            .then(|| event(self.id, &happened))
    }
}

impl RunFollower {
    fn new(reader: ReplayReader) -> Self {
        Self { reader, words: None, ready: VecDeque::new() }
    }

    async fn next(&mut self) -> Option<Event> {
        while self.ready.is_empty() {
            let item = self.reader.next().await?;
            self.take(&item);
        }
        self.ready.pop_front()
    }

    fn take(&mut self, item: &ReplayItem) {
        match item {
            ReplayItem::Event(id, happened) => match &**happened {
                // These contain more than chats show.
                RunEvent::Committed { .. } | RunEvent::Reasoning { .. } => {}
                RunEvent::Text { message, delta } => self.words(*id, message, delta),
                happened => {
                    self.ready.extend(self.words.take().and_then(WaitingWords::event));
                    self.ready.push_back(event(*id, happened));
                }
            },
            ReplayItem::Gap(Gap { missed, next, progress: so_far }) => {
                self.words = None;
                let data = json!({ "missed": missed, "next": next, "progress": progress(so_far) });
                let gap = Event::default().id(next.saturating_sub(1).to_string()).event("gap");
                self.ready.push_back(gap.data(shown(&data)));
            }
        }
    }

    fn words(&mut self, id: u64, message: &MessageId, delta: &str) {
        let is_same = |words: &WaitingWords| words.message == *message;
        let before = self.words.take();
        let (told, rest) = match before {
            Some(words) if is_same(&words) => (words.told, words.rest),
            other => {
                self.ready.extend(other.and_then(WaitingWords::event));
                Default::default()
            }
        };
        let mut words = WaitingWords { message: message.clone(), id, told, rest };
        words.told.push_str(&words.rest.push(delta));
        match words.rest.is_empty() {
            true => self.ready.extend(words.event()),
            false => self.words = Some(words),
        }
    }
}

fn event(id: u64, happened: &RunEvent) -> Event {
    let data = serde_json::to_value(happened).unwrap_or_default();
    let name = data.get("type").and_then(Value::as_str).unwrap_or("event").to_owned();
    Event::default().id(id.to_string()).event(name).data(shown(&data))
}

/// Writes an answer of the API. A tool may have found a secret of pudu's own, which a model's words or a sub-agent's steps
/// repeat.
pub(super) fn shown(answer: &Value) -> String {
    scrub::hide_in_talk(&answer.to_string()).into_owned()
}

fn progress(progress: &Progress) -> Value {
    json!({
        "text": progress.text,
        "activity": progress.activity,
        "artifacts": progress.artifacts,
        "todos": progress.todos,
        "usage": progress.usage,
        "outcome": progress.outcome,
    })
}
