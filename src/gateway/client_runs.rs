//! Runs as LangGraph's clients use them: asked for, waited for, followed, stopped, listed.

use super::{
    GatewayState,
    caller::Caller,
    errors::refuse,
    follow_query::{FollowQuery, is_set},
    refusal::{Refusal, answer, body, changed, missing, refused, scrubbed, unavailable},
    run_request::{self, ReadRequest, RunBody},
    run_stream::{self, StreamRequest, last_event},
    thread,
    threads::{own, values},
    wire::{frames::failure, modes::Modes, run},
};
use crate::bus::STORE_TIMEOUT;
use axum::{
    Json,
    extract::{Path, Query, RawQuery, State, rejection::JsonRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::{
    LiveRun, SubmitError,
    base::{RunId, ThreadId},
    store::{CancelAction, ClientThread, RunRow},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// So many runs are listed, unless told otherwise, and at most.
const LISTED: (i64, i64) = (10, 100);

/// A run that was accepted.
struct AcceptedRun {
    thread: ThreadId,
    run: RunId,
    assistant: String,
    modes: Modes,
    cancels: bool,
    live: Option<LiveRun>,
}

impl AcceptedRun {
    fn place(&self) -> String {
        format!("/api/threads/{}/runs/{}", self.thread, self.run)
    }

    fn follow(self, gateway: &GatewayState) -> Response {
        let Self { thread, run, assistant, modes, cancels, .. } = self;
        run_stream::respond(gateway, StreamRequest { thread, run, assistant, modes, after: None, cancels })
    }
}

async fn accept(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    asked: RunBody,
) -> Result<AcceptedRun, Refusal> {
    let ReadRequest { run, modes, cancels } = run_request::read(gateway, caller, thread, asked).await?;
    let (id, assistant) = (run.task.run.clone(), run.assistant.clone());
    match gateway.0.shared.client.submit(run).await {
        Ok(_) => {}
        Err(SubmitError::Busy(other)) => {
            let why = format!(
                "run {other} is at work on the thread; wait for it, or send another multitask_strategy"
            );
            return refused(StatusCode::CONFLICT, &why);
        }
        Err(error) => return changed(Err(error)),
    }
    let live = gateway.0.shared.client.live_run(&id);
    Ok(AcceptedRun { thread: thread.clone(), run: id, assistant, modes, cancels, live })
}

/// Accepts a run on a thread of the caller's.
async fn on_thread(
    gateway: &GatewayState,
    caller: &Caller,
    id: &str,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Result<AcceptedRun, Refusal> {
    let asked = body(posted)?;
    let thread = own(gateway, caller, id).await?;
    accept(gateway, caller, &thread.id, asked).await
}

/// Accepts a run on the thread that its configuration names, or on a new one.
async fn stateless(
    gateway: &GatewayState,
    caller: &Caller,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Result<AcceptedRun, Refusal> {
    let asked = body(posted)?;
    let id = match asked.thread() {
        None => ThreadId::fresh(),
        Some(id) => {
            let id = thread::id(id)?;
            let db = gateway.0.shared.db.within(STORE_TIMEOUT);
            let known = db.client_thread(&id).await.map_err(|error| unavailable(&error))?;
            if known.is_some_and(|known| known.user != caller.user) {
                return missing();
            }
            id
        }
    };
    accept(gateway, caller, &id, asked).await
}

async fn wait(gateway: &GatewayState, accepted: AcceptedRun) -> Result<Response, Refusal> {
    let place = accepted.place();
    if let Some(live) = &accepted.live {
        let stops = accepted.cancels.then(|| run_stream::stops_with_reader(gateway, live.clone()));
        tokio::select! {
            () = live.closed.cancelled() => {}
            () = gateway.0.stop.cancelled() => {
                return refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon stops; the run goes on after that");
            }
        }
        drop(stops);
    }
    let told = outcome(gateway, &accepted.thread, &accepted.run).await?;
    let mut response = scrubbed(&told);
    for (name, value) in
        [(header::CONTENT_LOCATION, place.clone()), (header::LOCATION, format!("{place}/join"))]
    {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// Returns the values of a thread after a run, with the error of one that failed.
async fn outcome(gateway: &GatewayState, thread: &ThreadId, run: &RunId) -> Result<Value, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let row = db.run(run).await.map_err(|error| unavailable(&error))?;
    let Some(thread) = db.client_thread(thread).await.map_err(|error| unavailable(&error))? else {
        return refused(StatusCode::NOT_FOUND, "the thread was deleted");
    };
    let mut told = values(gateway, &thread).await?;
    let failed = row.and_then(|row| row.outcome()).and_then(|outcome| failure(&outcome));
    if let Some((name, message)) = failed {
        told["__error__"] = json!({ "error": name, "message": message });
    }
    Ok(told)
}

/// Begins a run and answers at once.
pub(super) async fn create(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    answer(async { told(&gateway, on_thread(&gateway, &caller, &id, posted).await?).await }.await)
}

/// Likewise, without a thread that is there already.
pub(super) async fn create_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    answer(async { told(&gateway, stateless(&gateway, &caller, posted).await?).await }.await)
}

async fn told(gateway: &GatewayState, accepted: AcceptedRun) -> Result<Response, Refusal> {
    let place = accepted.place();
    let row = row(gateway, &accepted.thread, &accepted.run).await?;
    let mut response = scrubbed(&run::run(&row, &[]));
    if let Ok(value) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::CONTENT_LOCATION, value);
    }
    Ok(response)
}

/// Begins a run and follows it.
pub(super) async fn stream(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    let accepted = on_thread(&gateway, &caller, &id, posted).await;
    answer(accepted.map(|accepted| accepted.follow(&gateway)))
}

/// Likewise, without a thread that is there already.
pub(super) async fn stream_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    let accepted = stateless(&gateway, &caller, posted).await;
    answer(accepted.map(|accepted| accepted.follow(&gateway)))
}

/// Begins a run and answers with the values of its thread at its end.
pub(super) async fn wait_on_thread(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    answer(async { wait(&gateway, on_thread(&gateway, &caller, &id, posted).await?).await }.await)
}

/// Likewise, without a thread that is there already.
pub(super) async fn wait_stateless(
    State(gateway): State<GatewayState>,
    caller: Caller,
    posted: Result<Json<RunBody>, JsonRejection>,
) -> Response {
    answer(async { wait(&gateway, stateless(&gateway, &caller, posted).await?).await }.await)
}

pub(super) async fn row(gateway: &GatewayState, thread: &ThreadId, id: &RunId) -> Result<RunRow, Refusal> {
    let found =
        gateway.0.shared.db.within(STORE_TIMEOUT).run(id).await.map_err(|error| unavailable(&error))?;
    match found.filter(|row| row.thread == *thread) {
        Some(row) => Ok(row),
        None => refused(StatusCode::NOT_FOUND, "there is no such run"),
    }
}

/// Finds a run of a thread of the caller's.
pub(super) async fn own_run(
    gateway: &GatewayState,
    caller: &Caller,
    (thread, id): &(String, String),
) -> Result<(ClientThread, RunRow), Refusal> {
    let thread = own(gateway, caller, thread).await?;
    let row = row(gateway, &thread.id, &id.as_str().into()).await?;
    Ok((thread, row))
}

/// Which runs are listed.
#[derive(Deserialize)]
pub(super) struct RunsQuery {
    limit: Option<i64>,
    offset: Option<i64>,
    status: Option<String>,
}

/// Lists the runs of a thread, newest first.
pub(super) async fn list(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(id): Path<String>,
    Query(asked): Query<RunsQuery>,
) -> Response {
    let listed = async {
        let thread = own(&gateway, &caller, &id).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let limit = asked.limit.unwrap_or(LISTED.0).clamp(1, LISTED.1);
        let rows = db.thread_runs(&thread.id, limit, asked.offset.unwrap_or(0).max(0)).await;
        let rows = rows.map_err(|error| unavailable(&error))?;
        let tokens = db.run_tokens(&thread.id).await.map_err(|error| unavailable(&error))?;
        let wanted =
            rows.iter().filter(|row| asked.status.as_deref().is_none_or(|status| status == run::status(row)));
        Ok(scrubbed(&wanted.map(|row| run::run(row, &tokens)).collect::<Vec<_>>()))
    };
    answer(listed.await)
}

/// Shows a run.
pub(super) async fn show(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
) -> Response {
    let shown = async {
        let (thread, row) = own_run(&gateway, &caller, &ids).await?;
        let db = gateway.0.shared.db.within(STORE_TIMEOUT);
        let tokens = db.run_tokens(&thread.id).await.map_err(|error| unavailable(&error))?;
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
            true => Ok(StatusCode::NO_CONTENT),
            false => refused(StatusCode::CONFLICT, "the run has not ended: cancel it first"),
        }
    };
    answer(deleted.await)
}

/// Waits for a run, and answers with the values of its thread. Those who want a stream get one.
pub(super) async fn join(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(ids): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let wants_stream =
        headers.get(header::ACCEPT).is_some_and(|kind| kind.as_bytes() == b"text/event-stream");
    let joined = async {
        let (thread, row) = own_run(&gateway, &caller, &ids).await?;
        if wants_stream {
            return Ok(rejoin(&gateway, row, Modes { values: true, ..Modes::default() }, &headers, false));
        }
        let live = gateway.0.shared.client.live_run(&row.id);
        let (modes, cancels) = (Modes::default(), false);
        wait(
            &gateway,
            AcceptedRun { thread: thread.id, run: row.id, assistant: row.assistant, modes, cancels, live },
        )
        .await
    };
    answer(joined.await)
}

fn rejoin(gateway: &GatewayState, row: RunRow, modes: Modes, headers: &HeaderMap, cancels: bool) -> Response {
    let assistant = run::assistant(&row.assistant).to_owned();
    let after = last_event(headers);
    run_stream::respond(
        gateway,
        StreamRequest { thread: row.thread, run: row.id, assistant, modes, after, cancels },
    )
}

/// Follows a run from where the reader was, after it was told to stop if that is asked for.
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
        // A page of another site can have a browser get anything.
        if asked.action.is_some() && method != Method::POST {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "a run is stopped by POST");
        }
        let (_, row) = own_run(&gateway, &caller, &ids).await?;
        let modes = match Modes::of_query(&asked.stream_modes) {
            Ok(modes) => {
                modes.or_else(|| stored_modes(&row)).unwrap_or(Modes { values: true, ..Modes::default() })
            }
            Err(why) => return refused(StatusCode::UNPROCESSABLE_ENTITY, &why),
        };
        if let Some(action) = asked.action.as_deref() {
            stop(&gateway, &row, action, asked.waits()).await?;
            if asked.waits() {
                return Ok(StatusCode::NO_CONTENT.into_response());
            }
        }
        Ok(rejoin(&gateway, row, modes, &headers, asked.cancels()))
    };
    answer(followed.await)
}

/// Returns the modes that whoever began a run asked for.
fn stored_modes(row: &RunRow) -> Option<Modes> {
    let request: Value = serde_json::from_str(&row.request).ok()?;
    Modes::read(&request["stream_mode"]).ok()
}

/// How a run is stopped.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct CancelQuery {
    wait: Option<String>,
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
        let wait = is_set(asked.wait.as_ref());
        stop(&gateway, &row, asked.action.as_deref().unwrap_or("interrupt"), wait).await?;
        Ok(if wait { StatusCode::NO_CONTENT } else { StatusCode::ACCEPTED })
    };
    answer(cancelled.await)
}

async fn stop(gateway: &GatewayState, row: &RunRow, action: &str, wait: bool) -> Result<(), Refusal> {
    let Some(action) = CancelAction::parse(action) else {
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "action is neither interrupt nor rollback");
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
        live.closed.cancelled().await;
    }
    Ok(())
}

impl GatewayState {
    /// Has the runs go on that clients asked for and that a death or a stop of the daemon cut.
    pub(crate) async fn resume_runs(&self) {
        let shared = &self.0.shared;
        let rows = match shared.db.unfinished_runs().await {
            Ok(rows) => rows,
            Err(error) => return tracing::error!(%error, "failed to read the runs of clients that go on"),
        };
        for row in rows {
            let Some(task) = run_request::restored(&row) else {
                tracing::error!(run = %row.id, "ended run whose request cannot be read any more");
                let broken = pudu_client::base::Outcome::from(pudu_client::base::FailureCause::Broken);
                shared.db.run_ended(&row.id, &broken, crate::clock::now()).await.ok();
                continue;
            };
            tracing::info!(run = %row.id, thread = %row.thread, "resumed run of a client");
            drop(shared.client.resume_run(task, row.cancelled, shared.extended.clone()));
        }
    }
}
