//! Runs as LangGraph's clients use them: create, wait, follow, stop.

use super::{
    body::{RunBody, busy},
    follow_query::FollowQuery,
    owned::{OwnRun, ReadableRun, row},
    request::{self, ReadRequest},
    stream::{self as run_stream, last_event},
};
use crate::{
    ApiError, Caller, GatewayState, Json, Query, Scrubbed,
    http::{ignored::Ignored, language::PreferredLanguage},
    openapi::{Described, RequestParts},
    threads::{
        owned::{check_owner, own, own_if_there, path_parameter},
        thread,
    },
};
use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, FromRequestParts, RawQuery, Request},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use pudu_base::{RunId, ThreadId};
use pudu_langgraph::{failure::failure, modes::Modes, run};
use pudu_net::scrub;
use pudu_runs::{LiveRun, RunReader, StreamRequest, SubmitError};
use pudu_store::{CancelAction, RunRow};
use pudu_texts::Language;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// A run that was accepted.
pub(crate) struct AcceptedRun {
    thread: ThreadId,
    pub(crate) run: RunId,
    assistant: String,
    modes: Modes,
    live: Option<LiveRun>,
    reader: RunReader,
    pub(crate) ignored: Ignored,
}

impl AcceptedRun {
    fn places(&self, again: &str) -> HeaderMap {
        let mut places = run_stream::places(&format!("/threads/{}/runs/{}", self.thread, self.run), again);
        places.extend(self.ignored.header());
        places
    }

    fn follow(self, gateway: &GatewayState, language: Language) -> Response {
        let Self { thread, run, assistant, modes, reader, ignored, .. } = self;
        let request = StreamRequest { thread, run, assistant, modes, after: None, lost: None };
        run_stream::respond(gateway, request, reader, language, &ignored)
    }
}

/// A request for a run: on the thread in the path, on the one named in its configuration, or on a new one.
pub(crate) struct RequestedRun {
    thread: ThreadId,
    /// Whether the thread is created for the run.
    is_new_thread: bool,
    body: RunBody,
}

impl RequestedRun {
    /// Creates the request for a run on a thread of the caller, which may not exist yet.
    pub(crate) fn on(thread: ThreadId, body: RunBody) -> Self {
        Self { thread, is_new_thread: false, body }
    }
}

impl Described for RequestedRun {
    fn describe(schemas: &mut SchemaGenerator, parts: &mut RequestParts) {
        Json::<RunBody>::describe(schemas, parts);
    }
}

impl FromRequest<GatewayState> for RequestedRun {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &GatewayState) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, gateway).await?;
        let in_path = path_parameter(&mut parts, gateway, "thread").await?;
        let Json(body) = Json::<RunBody>::from_request(Request::from_parts(parts, body), gateway).await?;
        let requested = in_path.as_deref().map_or_else(|| body.thread(), |id| Ok(Some(id)))?;
        let Some(id) = requested else {
            return Ok(Self { thread: gateway.agent().new_thread(), is_new_thread: true, body });
        };
        let thread = thread::id(id)?;
        match body.may_begin_thread(in_path.is_none()) {
            true => drop(own_if_there(gateway, &caller, &thread).await?),
            false => drop(own(gateway, &caller, &thread).await?),
        }
        Ok(Self { thread, is_new_thread: false, body })
    }
}

/// Accepts a run of a caller. `follows` is whether the caller waits for the run or reads its stream.
pub(crate) async fn accept(
    gateway: &GatewayState,
    caller: &Caller,
    requested: RequestedRun,
    follows: bool,
) -> Result<AcceptedRun, ApiError> {
    let RequestedRun { thread, is_new_thread, body } = requested;
    let read = request::read(gateway, caller, &thread, body, is_new_thread).await?;
    let ReadRequest { run, modes, cancels, ignored } = read;
    let (id, assistant) = (run.task.run.clone(), run.assistant.clone());
    let stops_unless = (cancels && follows).then(|| gateway.0.stop.clone());
    let reader = gateway.runs().join_readers(&run.readers, &id, stops_unless);
    if run.deletes_thread {
        gateway.delete_after(thread.clone(), run.readers.clone());
    }
    match gateway.runs().submit(run).await {
        Ok(_) => {}
        Err(SubmitError::Busy(other)) => return Err(busy(&other)),
        Err(error) => return Err(error.into()),
    }
    let live = gateway.runs().live_run(&id);
    Ok(AcceptedRun { thread, run: id, assistant, modes, live, reader, ignored })
}

/// Answers with the values of a thread after a run. The headers are sent at once, so that a client that loses the
/// connection knows where to resume. Line breaks follow until the run ends, so that proxies do not time out.
fn wait(gateway: &GatewayState, accepted: AcceptedRun) -> Response {
    let places = accepted.places("join");
    let waited = stream::unfold(Some((gateway.clone(), accepted)), |waiting| async move {
        let (gateway, accepted) = waiting?;
        tokio::select! {
            told = waited(&gateway, &accepted) => Some((told.map(Bytes::from), None)),
            () = tokio::time::sleep(run_stream::HEARTBEAT_INTERVAL) => {
                Some((Ok(Bytes::from_static(b"\n")), Some((gateway, accepted))))
            }
        }
    });
    let mut response = Body::from_stream(waited).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().extend(places);
    response
}

/// Waits for a run, and renders the values of its thread. An error aborts the response, so that the client retries.
async fn waited(gateway: &GatewayState, accepted: &AcceptedRun) -> Result<String, &'static str> {
    if let Some(live) = &accepted.live {
        ended(gateway, live)
            .await
            .map_err(|_| "the daemon is shutting down; the run resumes after the restart")?;
    }
    let result = outcome(gateway, &accepted.thread, &accepted.run).await;
    result
        .map(|result| scrub::hide_in_talk(&result).into_owned())
        .map_err(|_| "the database does not respond at the moment")
}

/// Waits until a run has ended.
async fn ended(gateway: &GatewayState, live: &LiveRun) -> Result<(), ApiError> {
    tokio::select! {
        () = live.closed.cancelled() => Ok(()),
        () = gateway.0.stop.cancelled() => {
            Err(ApiError::unavailable("the daemon is shutting down; the run resumes after the restart"))
        }
    }
}

/// Renders the values of a thread after a run, with the error if it failed.
async fn outcome(gateway: &GatewayState, thread: &ThreadId, run: &RunId) -> Result<String, ApiError> {
    let db = gateway.db();
    let row = db.run(run).await?;
    let Some(thread) = db.client_thread(thread).await? else {
        return Err(ApiError::not_found("the thread was deleted"));
    };
    let values = gateway.client().values(&thread).await?;
    let failed = row.and_then(|row| row.outcome()).and_then(|outcome| failure(&outcome));
    let Some((name, message)) = failed else { return Ok(values.get().to_owned()) };
    let mut body: Value = serde_json::from_str(values.get()).unwrap_or_default();
    body["__error__"] = json!({ "error": name, "message": message });
    Ok(body.to_string())
}

/// Starts a run and returns at once.
pub(crate) async fn create(
    gateway: GatewayState,
    caller: Caller,
    requested: RequestedRun,
) -> Result<(HeaderMap, Scrubbed<Value>), ApiError> {
    let accepted = accept(&gateway, &caller, requested, false).await?;
    let row = row(&gateway, &accepted.thread, &accepted.run).await?;
    Ok((accepted.places("join"), Scrubbed(run::run(&row, &[]))))
}

/// Starts a run and streams it.
pub(crate) async fn stream(
    gateway: GatewayState,
    caller: Caller,
    PreferredLanguage(language): PreferredLanguage,
    requested: RequestedRun,
) -> Result<Response, ApiError> {
    Ok(accept(&gateway, &caller, requested, true).await?.follow(&gateway, language))
}

/// Starts a run, waits for it, and answers with the values of its thread.
pub(crate) async fn wait_for_end(
    gateway: GatewayState,
    caller: Caller,
    requested: RequestedRun,
) -> Result<Response, ApiError> {
    let accepted = accept(&gateway, &caller, requested, true).await?;
    Ok(wait(&gateway, accepted))
}

/// Shows a run.
pub(crate) async fn show(
    gateway: GatewayState,
    ReadableRun { thread, row }: ReadableRun,
) -> Result<Scrubbed<Value>, ApiError> {
    let tokens = gateway.db().run_tokens(&thread.id, Some(&row.id)).await?;
    Ok(Scrubbed(run::run(&row, &tokens)))
}

/// Deletes a run that has ended.
pub(crate) async fn delete(
    gateway: GatewayState,
    OwnRun { thread, row }: OwnRun,
) -> Result<StatusCode, ApiError> {
    if !gateway.db().delete_run(&thread.id, &row.id).await? {
        let why = "the run is still running, or its answer is not delivered yet: cancel it first";
        return Err(ApiError::conflict(why));
    }
    gateway.agent().forget_changes(&thread.id, &row.id).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Waits for a run, and answers with the values of its thread, or with a stream if the client wants one.
pub(crate) async fn join(
    gateway: GatewayState,
    caller: Caller,
    run: Result<ReadableRun, ApiError>,
    RawQuery(query): RawQuery,
    PreferredLanguage(language): PreferredLanguage,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let cancels = FollowQuery::read(query.as_deref()).map_err(ApiError::invalid)?.cancels;
    let ReadableRun { thread, row } = run?;
    if cancels {
        check_owner(&caller, &thread)?;
    }
    if headers.get(header::ACCEPT).is_some_and(|kind| kind.as_bytes() == b"text/event-stream") {
        let (modes, ignored) = (Modes { values: true, ..Modes::default() }, Ignored::default());
        let followed = FollowRequest { row, modes, ignored, cancels, language };
        return Ok(rejoin(&gateway, followed, &headers));
    }
    let live = gateway.runs().live_run(&row.id);
    let (modes, reader) = (Modes::default(), join_run(&gateway, &row.id, cancels));
    let (thread, run, assistant) = (thread.id, row.id, row.assistant);
    let ignored = Ignored::default();
    Ok(wait(&gateway, AcceptedRun { thread, run, assistant, modes, live, reader, ignored }))
}

/// Adds a reader of a run. If any reader `cancels`, the run stops when its last reader disconnects.
fn join_run(gateway: &GatewayState, run: &RunId, cancels: bool) -> RunReader {
    gateway.runs().read_run(run, cancels.then(|| gateway.0.stop.clone()))
}

/// A request to follow a run.
struct FollowRequest {
    row: RunRow,
    modes: Modes,
    ignored: Ignored,
    /// Whether the run stops when its reader disconnects.
    cancels: bool,
    language: Language,
}

fn rejoin(gateway: &GatewayState, followed: FollowRequest, headers: &HeaderMap) -> Response {
    let FollowRequest { row, modes, ignored, cancels, language } = followed;
    let assistant = run::assistant(&row.assistant).to_owned();
    let ((after, lost), reader) = (last_event(headers), join_run(gateway, &row.id, cancels));
    let (thread, run) = (row.thread, row.id);
    let request = StreamRequest { thread, run, assistant, modes, after, lost };
    run_stream::respond(gateway, request, reader, language, &ignored)
}

/// Follows a run from the reader's position. Stops the run first if requested.
pub(crate) async fn follow(
    gateway: GatewayState,
    caller: Caller,
    run: Result<ReadableRun, ApiError>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let follow = FollowQuery::read(query.as_deref()).map_err(ApiError::invalid)?;
    // A page of another site can make a browser send GET requests.
    if follow.action.is_some() && method != Method::POST {
        return Err(ApiError::wrong_method("send POST to stop a run"));
    }
    let ReadableRun { thread, row } = run?;
    if follow.stops() {
        check_owner(&caller, &thread)?;
    }
    let mut unknown = Vec::new();
    let modes = Modes::from_query(&follow.stream_modes, &mut unknown).map_err(ApiError::invalid)?;
    let modes = modes.or_else(|| stored_modes(&row)).unwrap_or(Modes { values: true, ..Modes::default() });
    if let Some(action) = follow.action.as_deref() {
        stop(&gateway, &row, action, follow.waits).await?;
        if follow.waits {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let ignored = Ignored::of_run(unknown, Vec::new());
    let PreferredLanguage(language) = PreferredLanguage::from_headers(&gateway, &headers);
    let followed = FollowRequest { row, modes, ignored, cancels: follow.cancels, language };
    Ok(rejoin(&gateway, followed, &headers))
}

/// Returns the modes that the creator of a run requested.
fn stored_modes(row: &RunRow) -> Option<Modes> {
    let request: Value = serde_json::from_str(&row.request).ok()?;
    Modes::read(&request["stream_mode"], &mut Vec::new()).ok()
}

/// How a run is stopped.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub(crate) struct CancelQuery {
    wait: Option<bool>,
    action: Option<String>,
}

/// Stops a run.
pub(crate) async fn cancel(
    gateway: GatewayState,
    Query(asked): Query<CancelQuery>,
    OwnRun { row, .. }: OwnRun,
) -> Result<StatusCode, ApiError> {
    let wait = asked.wait.unwrap_or(false);
    stop(&gateway, &row, asked.action.as_deref().unwrap_or("interrupt"), wait).await?;
    Ok(if wait { StatusCode::NO_CONTENT } else { StatusCode::ACCEPTED })
}

async fn stop(gateway: &GatewayState, row: &RunRow, action: &str, wait: bool) -> Result<(), ApiError> {
    let Some(action) = CancelAction::parse(action) else {
        return Err(ApiError::invalid("action must be `interrupt` or `rollback`"));
    };
    let live = gateway.runs().live_run(&row.id).filter(|live| !live.closed.is_cancelled());
    let Some(live) = live else {
        let status = run::status(row);
        if status == "interrupted" {
            return Ok(());
        }
        let why = format!("Run {} is not cancellable (status: {status})", row.id);
        return Err(ApiError::conflict(why));
    };
    gateway.runs().stop(&live, action).await?;
    if wait {
        ended(gateway, &live).await?;
    }
    Ok(())
}
