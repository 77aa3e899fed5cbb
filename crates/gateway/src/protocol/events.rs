//! The stream of a thread's events. It has no end: later runs of the thread follow on the same stream.

use crate::{
    ApiError, Caller, GatewayState, Json,
    runs::stream::{HEARTBEAT_INTERVAL, MAX_CHUNK_BYTES, stream_headers},
    threads::owned::{ThreadPath, readable},
};
use axum::{
    body::{Body, Bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, StreamExt, stream};
use pudu_base::ThreadId;
use pudu_langgraph::protocol::{EventFilter, MAX_NUMBER};
use pudu_runs::{ThreadEventStream, ThreadEventsRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{fmt::Write, io};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The wanted events.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsBody {
    /// `values`, `updates`, `checkpoints`, `messages`, `tools`, `custom`, `lifecycle`, `input` and `tasks`, or
    /// `custom:<name>`.
    channels: Vec<String>,
    /// Namespaces whose events are wanted, with those below; all if it is missing.
    namespaces: Option<Vec<Vec<String>>>,
    /// Maximum depth below a namespace.
    depth: Option<usize>,
    /// Number of the last event that the client has.
    since: Option<u64>,
}

/// Streams the events of a thread. A thread that does not exist yet has events once the caller's first run creates it.
pub(crate) async fn stream(
    gateway: GatewayState,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    Json(body): Json<EventsBody>,
) -> Result<Response, ApiError> {
    let EventsBody { channels, namespaces, depth, since } = body;
    let filter =
        EventFilter::new(&channels, namespaces.unwrap_or_default(), depth).map_err(ApiError::invalid)?;
    if since.is_some_and(|since| since > MAX_NUMBER) {
        return Err(ApiError::invalid("since must be the `seq` of an event"));
    }
    let only_of = match gateway.db().client_thread(&thread).await? {
        Some(_) => readable(&gateway, &caller, &thread).await.map(|_| None)?,
        None => Some(caller.user.clone()),
    };
    let events =
        gateway.runs().follow_thread(ThreadEventsRequest { thread: thread.clone(), filter, since, only_of });
    let mut beat = interval(HEARTBEAT_INTERVAL);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.reset();
    let events = ThreadEventBody { thread, events, failed: false, stop: gateway.0.stop.clone(), beat };
    let body = Body::from_stream(stream::unfold(events, async |mut events| {
        let chunk = events.next().await?;
        Some((chunk, events))
    }));
    Ok((StatusCode::OK, stream_headers(), body).into_response())
}

/// A reader of a thread's events.
struct ThreadEventBody {
    thread: ThreadId,
    events: ThreadEventStream,
    /// Whether the events can no longer be read.
    failed: bool,
    stop: CancellationToken,
    beat: Interval,
}

impl ThreadEventBody {
    /// Returns the next piece of the stream. An error breaks the connection: Python's SDK takes an orderly end for the
    /// end of the run, and reconnects after a broken one.
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        let broken = || Some(Err(io::ErrorKind::ConnectionAborted.into()));
        if self.failed {
            return broken();
        }
        let first = tokio::select! {
            biased;
            () = self.stop.cancelled() => return broken(),
            events = self.events.next() => events,
            _ = self.beat.tick() => return Some(Ok(Bytes::from_static(b": heartbeat\n\n"))),
        };
        let (mut text, mut next) = (String::new(), first);
        while let Some(events) = next {
            match events {
                // Writing to a String cannot fail.
                Ok(events) => events.iter().for_each(|event| write!(text, "{event}").unwrap_or_default()),
                Err(error) => {
                    tracing::error!(thread = %self.thread, %error, "failed to read events of thread");
                    self.failed = true;
                }
            }
            next = match text.len() {
                ..MAX_CHUNK_BYTES if !self.failed => self.events.next().now_or_never().flatten(),
                _ => None,
            };
        }
        self.beat.reset();
        match text.is_empty() {
            true => broken(),
            false => Some(Ok(text.into())),
        }
    }
}
