//! The stream of one run over HTTP: its frames as they arrive, combined where several are available, and a heartbeat
//! when there are none.

use super::view::RunViews;
use crate::{GatewayState, http::ignored::Ignored};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt, StreamExt, stream};
use pudu_base::RunId;
use pudu_dispatch::view::RunView;
use pudu_langgraph::frame::Position;
use pudu_runs::{FrameStream, RunReader, StreamRequest};
use pudu_texts::Language;
use std::{fmt::Write, time::Duration};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Interval of heartbeats on an idle stream.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum length of an unknown id in the frame that reports it, in characters.
const MAX_LOST_ID_CHARS: usize = 100;
/// Maximum size of frames that are sent together, in bytes.
pub(crate) const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Answers with a run's stream, which owns the reader: both end together. `language` is the language of its views.
pub(crate) fn respond(
    gateway: &GatewayState,
    request: StreamRequest,
    reader: RunReader,
    language: Language,
    ignored: &Ignored,
) -> Response {
    let run = format!("/threads/{}/runs/{}", request.thread, request.run);
    let frames = StreamBody::new(gateway, request, reader, language);
    let body = Body::from_stream(stream::unfold(frames, async |mut frames| {
        let chunk = frames.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), frames))
    }));
    let mut headers = stream_headers();
    headers.extend(places(&run, "stream"));
    headers.extend(ignored.header());
    (StatusCode::OK, headers, body).into_response()
}

/// Returns the headers of every stream.
pub(crate) fn stream_headers() -> HeaderMap {
    let fixed = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        // A compressing proxy would hold back the frames until the end.
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    fixed.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}

/// Returns the headers with the URL of a run, and with the URL for requesting the response again. SDKs append the
/// second to their configured API URL.
pub(crate) fn places(run: &str, again: &str) -> HeaderMap {
    let places =
        [(header::CONTENT_LOCATION, format!("/api{run}")), (header::LOCATION, format!("{run}/{again}"))];
    places.into_iter().filter_map(|(name, place)| Some((name, HeaderValue::from_str(&place).ok()?))).collect()
}

/// Parses the position in a request's `Last-Event-ID`. Returns the id itself if it is not a frame id. `-1` is the
/// beginning.
pub(crate) fn last_event(headers: &HeaderMap) -> (Option<Position>, Option<String>) {
    let Some(id) = headers.get("last-event-id").filter(|id| !["", "-1"].iter().any(|none| *id == none))
    else {
        return (None, None);
    };
    let id = String::from_utf8_lossy(id.as_bytes());
    match Position::read(&id) {
        Some(position) => (Some(position), None),
        None => (None, Some(id.chars().take(MAX_LOST_ID_CHARS).collect())),
    }
}

/// A reader of a run's stream.
struct StreamBody {
    run: RunId,
    frames: FrameStream,
    /// Frames of the mode `view`, if requested.
    views: Option<RunViews>,
    /// Whether the first frame, `metadata`, was sent.
    has_begun: bool,
    stop: CancellationToken,
    beat: tokio::time::Interval,
    /// Stops the run with its last reader, if requested.
    _reader: RunReader,
}

impl StreamBody {
    fn new(gateway: &GatewayState, request: StreamRequest, reader: RunReader, language: Language) -> Self {
        let (run, stop) = (request.run.clone(), gateway.0.stop.clone());
        let views =
            request.modes.view.then(|| RunViews::new(gateway, &request.thread, &request.run, language));
        let mut beat = interval(HEARTBEAT_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.reset();
        Self {
            run,
            frames: gateway.0.shared.runs.follow(request),
            views,
            has_begun: false,
            stop,
            beat,
            _reader: reader,
        }
    }

    /// Returns the next piece of the stream; `None` after its end, and when the daemon stops.
    async fn next(&mut self) -> Option<Bytes> {
        let first = tokio::select! {
            biased;
            () = self.stop.cancelled() => return None,
            Some(view) = next_view(&mut self.views), if self.has_begun => {
                self.beat.reset();
                return Some(view_frame(&view).into());
            }
            frames = self.frames.next() => frames,
            _ = self.beat.tick() => return Some(Bytes::from_static(b": heartbeat\n\n")),
        };
        let (mut text, mut next) = (String::new(), first);
        self.has_begun = true;
        while let Some(frames) = next {
            match frames {
                // Writing to a String cannot fail.
                Ok(frames) => {
                    for frame in &frames {
                        if frame.name == "end" {
                            text.push_str(&self.last_views().await);
                        }
                        write!(text, "{frame}").ok();
                    }
                }
                // The client reconnects later and continues.
                Err(error) => tracing::error!(run = %self.run, %error, "failed to read run"),
            }
            next = match text.len() {
                ..MAX_CHUNK_BYTES => self.frames.next().now_or_never().flatten(),
                _ => None,
            };
        }
        self.beat.reset();
        (!text.is_empty()).then(|| text.into())
    }
    /// Returns the remaining frames of the views, which come before the end of the stream.
    async fn last_views(&mut self) -> String {
        let mut text = String::new();
        while let Some(view) = next_view(&mut self.views).await {
            text.push_str(&view_frame(&view));
        }
        text
    }
}

async fn next_view(views: &mut Option<RunViews>) -> Option<RunView> {
    match views {
        Some(views) => views.next().await,
        None => None,
    }
}

fn view_frame(view: &RunView) -> String {
    // A view always serialises as JSON.
    format!("event: view\ndata: {}\n\n", serde_json::to_string(view).unwrap_or_default())
}
