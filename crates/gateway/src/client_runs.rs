//! Runs as LangGraph's clients use them: asked for, waited for, followed, stopped.

use super::{
    GatewayState,
    caller::Caller,
    errors::refuse,
    follow_query::FollowQuery,
    ignored::Ignored,
    json::{BodyRejection, Json},
    owned::{own, own_if_there},
    owned_runs::{own_run, readable_run, row},
    refusal::{Refusal, answer, body, changed, refused, scrubbed, unavailable, wrong},
    run_body::{RunBody, busy},
    run_readers::RunReader,
    run_request::{self, ReadRequest},
    run_stream::{self, last_event},
    thread,
    threads::values,
};
use crate::query::Query;
use axum::{
    body::{Body, Bytes},
    extract::{Path, RawQuery, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use pudu_client::{
    LiveRun, MAX_RESUMES, StreamRequest, SubmitError, UnfinishedRun,
    base::{RunId, ThreadId},
    net::scrub,
    store::{CancelAction, RunRow, StoreError},
    wire::{failure::failure, modes::Modes, run},
};
use pudu_dispatch::{Shared, bus::STORE_TIMEOUT};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A run that was accepted.
struct AcceptedRun {
    thread: ThreadId,
    run: RunId,
    assistant: String,
    modes: Modes,
    live: Option<LiveRun>,
    reader: RunReader,
    ignored: Ignored,
}

impl AcceptedRun {
    fn places(&self, again: &str) -> HeaderMap {
        let mut places = run_stream::places(&format!("/threads/{}/runs/{}", self.thread, self.run), again);
        places.extend(self.ignored.header());
        places
    }

    fn follow(self, gateway: &GatewayState) -> Response {
        let Self { thread, run, assistant, modes, reader, ignored, .. } = self;
        let request = StreamRequest { thread, run, assistant, modes, after: None, lost: None };
        run_stream::respond(gateway, request, reader, &ignored)
    }
}

async fn accept(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    (asked, follows, own_thread): (RunBody, bool, bool),
) -> Result<AcceptedRun, Refusal> {
    let read = run_request::read(gateway, caller, thread, (asked, own_thread)).await?;
    let ReadRequest { run, modes, cancels, ignored } = read;
    let (id, assistant) = (run.task.run.clone(), run.assistant.clone());
    // Before it is accepted: its reader may go away meanwhile.
    let reader = RunReader::join(gateway, &id, cancels && follows);
    if run.deletes_thread {
        gateway.delete_after(thread.clone(), id.clone());
    }
    match gateway.0.shared.client.submit(run).await {
        Ok(_) => {}
        Err(SubmitError::Busy(other)) => return busy(&other),
        Err(error) => return changed(Err(error)),
    }
    let live = gateway.0.shared.client.live_run(&id);
    Ok(AcceptedRun { thread: thread.clone(), run: id, assistant, modes, live, reader, ignored })
}

/// Finds the thread of a run: one of the caller's, or if it may be so a new one.
async fn place(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
    may_be_new: bool,
) -> Result<ThreadId, Refusal> {
    let id = thread::id(id)?;
    match may_be_new {
        true => own_if_there(gateway, caller, &id).await.map(|_| id),
        false => own(gateway, caller, id.as_str()).await.map(|thread| thread.id),
    }
}

/// Accepts a run on a thread of the caller's, who `follows` it or not.
async fn on_thread(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
    posted: Result<Json<RunBody>, BodyRejection>,
    follows: bool,
) -> Result<AcceptedRun, Refusal> {
    let asked = body(posted)?;
    let thread = place(gateway, caller, id, asked.may_begin_thread(false)).await?;
    accept(gateway, caller, &thread, (asked, follows, false)).await
}

/// Accepts a run on the thread that its configuration names, or on a new one, of a caller who `follows` it or not.
async fn stateless(
    gateway: &GatewayState,
    caller: &Caller,
    posted: Result<Json<RunBody>, BodyRejection>,
    follows: bool,
) -> Result<AcceptedRun, Refusal> {
    let asked = body(posted)?;
    let (thread, own_thread) = match asked.thread()? {
        None => (gateway.0.shared.client.new_thread(), true),
        Some(id) => (place(gateway, caller, id, asked.may_begin_thread(true)).await?, false),
    };
    accept(gateway, caller, &thread, (asked, follows, own_thread)).await
}

/// Answers with the values of a thread at the end of a run: the headers at once, so that a client that is cut off knows where
/// to come back, then line breaks, so that no proxy takes the silence for an end.
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

/// Waits for a run, and writes the values of its thread. An error cuts the answer: the client comes back.
async fn waited(gateway: &GatewayState, accepted: &AcceptedRun) -> Result<String, &'static str> {
    if let Some(live) = &accepted.live {
        ended(gateway, live).await.map_err(|_| "the daemon stops; the run goes on after that")?;
    }
    let told = outcome(gateway, &accepted.thread, &accepted.run).await;
    told.map(|told| scrub::hide_in_talk(&told).into_owned()).map_err(|_| "the store does not answer just now")
}

/// Waits until a run is over.
async fn ended(gateway: &GatewayState, live: &LiveRun) -> Result<(), Refusal> {
    tokio::select! {
        () = live.closed.cancelled() => Ok(()),
        () = gateway.0.stop.cancelled() => {
            refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops; the run goes on after that")
        }
    }
}

/// Writes the values of a thread after a run, with the error of one that failed.
async fn outcome(gateway: &GatewayState, thread: &ThreadId, run: &RunId) -> Result<String, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let row = db.run(run).await.map_err(|error| unavailable(&error))?;
    let Some(thread) = db.client_thread(thread).await.map_err(|error| unavailable(&error))? else {
        return refused(StatusCode::NOT_FOUND, "the thread was deleted");
    };
    let values = values(gateway, &thread).await?;
    let failed = row.and_then(|row| row.outcome()).and_then(|outcome| failure(&outcome));
    let Some((name, message)) = failed else { return Ok(values.get().to_owned()) };
    let mut told: Value = serde_json::from_str(values.get()).unwrap_or_default();
    told["__error__"] = json!({ "error": name, "message": message });
    Ok(told.to_string())
}

/// Begins a run and answers at once.
pub(super) async fn create(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    answer(async { told(&gateway, on_thread(&gateway, &caller, &id, posted, false).await?).await }.await)
}

/// Likewise, without a thread that is there already.
pub(super) async fn create_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    answer(async { told(&gateway, stateless(&gateway, &caller, posted, false).await?).await }.await)
}

async fn told(gateway: &GatewayState, accepted: AcceptedRun) -> Result<Response, Refusal> {
    let row = row(gateway, &accepted.thread, &accepted.run).await?;
    Ok((accepted.places("join"), scrubbed(&run::run(&row, &[]))).into_response())
}

/// Begins a run and follows it.
pub(super) async fn stream(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    let accepted = on_thread(&gateway, &caller, &id, posted, true).await;
    answer(accepted.map(|accepted| accepted.follow(&gateway)))
}

/// Likewise, without a thread that is there already.
pub(super) async fn stream_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    let accepted = stateless(&gateway, &caller, posted, true).await;
    answer(accepted.map(|accepted| accepted.follow(&gateway)))
}

/// Begins a run and answers with the values of its thread at its end.
pub(super) async fn wait_on_thread(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    let accepted = on_thread(&gateway, &caller, &id, posted, true).await;
    answer(accepted.map(|accepted| wait(&gateway, accepted)))
}

/// Likewise, without a thread that is there already.
pub(super) async fn wait_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, BodyRejection>,
) -> Response {
    let accepted = stateless(&gateway, &caller, posted, true).await;
    answer(accepted.map(|accepted| wait(&gateway, accepted)))
}

/// Shows a run.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    let shown = async {
        let (thread, row) = readable_run(&gateway, &caller, &ids).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let tokens = db.run_tokens(&thread.id, Some(&row.id)).await;
        let tokens = tokens.map_err(|error| unavailable(&error))?;
        Ok(scrubbed(&run::run(&row, &tokens)))
    };
    answer(shown.await)
}

/// Forgets a run that has ended.
pub(super) async fn delete(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    let deleted = async {
        let (thread, row) = own_run(&gateway, &caller, &ids).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        match db.delete_run(&thread.id, &row.id).await.map_err(|error| unavailable(&error))? {
            true => {
                gateway.0.shared.client.forget_changes(&thread.id, &row.id).await;
                Ok(StatusCode::NO_CONTENT)
            }
            false => refused(
                StatusCode::CONFLICT,
                "the run has not ended, or its answer is not delivered: cancel it first",
            ),
        }
    };
    answer(deleted.await)
}

/// Waits for a run, and answers with the values of its thread. Clients that want a stream get one.
pub(super) async fn join(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let wants_stream =
        headers.get(header::ACCEPT).is_some_and(|kind| kind.as_bytes() == b"text/event-stream");
    let joined = async {
        let cancels = FollowQuery::read(query.as_deref());
        let cancels = cancels.or_else(|why| wrong(&why))?.cancels;
        let (thread, row) = match cancels {
            true => own_run(&gateway, &caller, &ids).await?,
            false => readable_run(&gateway, &caller, &ids).await?,
        };
        if wants_stream {
            let modes = (Modes { values: true, ..Modes::default() }, Ignored::default());
            return rejoin(&gateway, row, modes, &headers, cancels);
        }
        let live = gateway.0.shared.client.live_run(&row.id);
        let (modes, reader) = (Modes::default(), RunReader::join(&gateway, &row.id, cancels));
        let (thread, run, assistant) = (thread.id, row.id, row.assistant);
        let ignored = Ignored::default();
        Ok(wait(&gateway, AcceptedRun { thread, run, assistant, modes, live, reader, ignored }))
    };
    answer(joined.await)
}

fn rejoin(
    gateway: &GatewayState,
    row: RunRow,
    (modes, ignored): (Modes, Ignored),
    headers: &HeaderMap,
    cancels: bool,
) -> Result<Response, Refusal> {
    let assistant = run::assistant(&row.assistant).to_owned();
    let ((after, lost), reader) = (last_event(headers), RunReader::join(gateway, &row.id, cancels));
    let (thread, run) = (row.thread, row.id);
    let request = StreamRequest { thread, run, assistant, modes, after, lost };
    Ok(run_stream::respond(gateway, request, reader, &ignored))
}

/// Follows a run from the reader's position, after stopping it if that is requested.
pub(super) async fn follow(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    method: Method,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let followed = async {
        let asked = FollowQuery::read(query.as_deref());
        let asked = asked.or_else(|why| wrong(&why))?;
        // A page of another site can have a browser get anything.
        if asked.action.is_some() && method != Method::POST {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "a run is stopped by POST");
        }
        let (_, row) = match asked.stops() {
            true => own_run(&gateway, &caller, &ids).await?,
            false => readable_run(&gateway, &caller, &ids).await?,
        };
        let mut unknown = Vec::new();
        let modes = match Modes::from_query(&asked.stream_modes, &mut unknown) {
            Ok(modes) => {
                modes.or_else(|| stored_modes(&row)).unwrap_or(Modes { values: true, ..Modes::default() })
            }
            Err(why) => return wrong(&why),
        };
        if let Some(action) = asked.action.as_deref() {
            stop(&gateway, &row, action, asked.waits).await?;
            if asked.waits {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
        }
        let ignored = Ignored::of_run(unknown, Vec::new());
        rejoin(&gateway, row, (modes, ignored), &headers, asked.cancels)
    };
    answer(followed.await)
}

/// Returns the modes that the creator of a run asked for.
fn stored_modes(row: &RunRow) -> Option<Modes> {
    let request: Value = serde_json::from_str(&row.request).ok()?;
    Modes::read(&request["stream_mode"], &mut Vec::new()).ok()
}

/// How a run is stopped.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub(super) struct CancelQuery {
    wait: Option<bool>,
    action: Option<String>,
}

/// Stops a run.
pub(super) async fn cancel(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    Query(asked): Query<CancelQuery>,
) -> Response {
    let cancelled = async {
        let (_, row) = own_run(&gateway, &caller, &ids).await?;
        let wait = asked.wait.unwrap_or(false);
        stop(&gateway, &row, asked.action.as_deref().unwrap_or("interrupt"), wait).await?;
        Ok(if wait { StatusCode::NO_CONTENT } else { StatusCode::ACCEPTED })
    };
    answer(cancelled.await)
}

async fn stop(gateway: &GatewayState, row: &RunRow, action: &str, wait: bool) -> Result<(), Refusal> {
    let Some(action) = CancelAction::parse(action) else {
        return wrong("action is neither interrupt nor rollback");
    };
    let live = gateway.0.shared.client.live_run(&row.id).filter(|live| !live.closed.is_cancelled());
    let Some(live) = live else {
        let status = run::status(row);
        if status == "interrupted" {
            return Ok(());
        }
        let why = format!("Run {} is not cancellable (status: {status})", row.id);
        return Err(Box::new(refuse(StatusCode::CONFLICT, &why)));
    };
    gateway.0.shared.client.stop(&live, action).await.map_err(|error| unavailable(&error))?;
    if wait {
        ended(gateway, &live).await?;
    }
    Ok(())
}

/// Resumes the runs that clients asked for. Runs whose request cannot be read, that crashed the daemon too often, or that
/// an embedding program asked for, end.
pub async fn resume_runs(shared: &Shared, unfinished: Vec<UnfinishedRun>) -> Result<(), StoreError> {
    for run in unfinished {
        let task = run_request::restored(&run.row).filter(|_| run.row.resumed < MAX_RESUMES);
        let (id, thread) = (run.row.id.clone(), run.row.thread.clone());
        match task {
            Some(task) => {
                shared.client.resume(task, run, shared.extended.clone()).await?;
                tracing::info!(run = %id, %thread, "resumed run of a client");
            }
            None => {
                tracing::error!(run = %id, %thread, resumed = run.row.resumed, "ended run that cannot be resumed");
                shared.client.give_up_run(&id).await?;
            }
        }
    }
    Ok(())
}
