//! The HTTP server: health, the page, the local chats, and the platforms' webhooks.
//!
//! Deliberately absent: any logic. A handler checks its input and hands it to the room, the dispatcher or the
//! client.

mod admit;
mod agents;
mod artifacts;
mod assist;
mod assistants;
pub(crate) mod audit;
mod auth;
mod branches;
mod caller;
mod chat;
mod chat_links;
mod client_runs;
mod content;
mod cors;
mod errors;
mod failures;
mod feedback;
mod file;
mod follow_query;
mod guard;
mod guests;
mod health;
mod info;
mod mcp;
mod mcp_edit;
mod memory;
mod messages;
mod models;
mod options;
mod owned;
mod paced;
mod page;
mod people;
mod profile;
mod refusal;
mod resources;
mod run_request;
mod run_stream;
mod runs;
mod serve;
mod skills;
pub(crate) mod storage;
mod stream_watch;
mod tasks;
pub(crate) mod thread;
mod thread_facts;
mod thread_state;
mod threads;
pub(crate) mod token;
mod unsupported;
mod uploads;
pub(crate) mod usage;
mod users;
mod webhook;
mod wire;

pub(crate) use {auth::SignIn, guard::GatewayToken};

use crate::{config::Watcher, connections::Connections, dispatch::Shared, local::LocalChannel};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{delete, get, post, put},
};
use std::{net::SocketAddr, sync::Arc, time::Instant};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// Maximum size of a request body, in bytes, except where files are uploaded.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A JSON answer and its status.
type JsonReply = (axum::http::StatusCode, axum::Json<serde_json::Value>);

/// State that handlers share.
#[derive(Clone)]
pub(crate) struct GatewayState(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    local: Arc<LocalChannel>,
    connections: Arc<Connections>,
    watcher: Arc<Watcher>,
    guard: guard::RequestGuard,
    sign_in: SignIn,
    /// One permit a request with files.
    uploads: Semaphore,
    /// Failed posts to webhooks.
    failures: failures::Failures,
    started: Instant,
    stop: CancellationToken,
}

impl GatewayState {
    /// Makes a gateway that answers at `bound`. What changes who may speak asks for the token; all
    /// but health, the page, links and webhooks may.
    pub(crate) fn new(
        shared: Arc<Shared>,
        local: Arc<LocalChannel>,
        lines: Arc<Connections>,
        watcher: Arc<Watcher>,
        bound: SocketAddr,
        (token, sign_in): (GatewayToken, SignIn),
        stop: CancellationToken,
    ) -> Self {
        let guard = guard::RequestGuard::new(bound, token);
        let uploads = Semaphore::new(uploads::MAX_CONCURRENT_UPLOADS);
        let (failures, started) = (failures::Failures::default(), Instant::now());
        Self(Arc::new(Inner {
            shared,
            local,
            connections: lines,
            watcher,
            guard,
            sign_in,
            uploads,
            failures,
            started,
            stop,
        }))
    }

    /// Serves until `stop`, then lets requests at work finish.
    pub(crate) async fn serve(self, listener: TcpListener) {
        let stop = self.0.stop.clone();
        serve::serve(listener, self.router(), stop).await;
    }

    /// The routes about custom agents, which an operator may switch on.
    fn agents(&self) -> Router<Self> {
        let operator = || middleware::from_fn_with_state(self.clone(), admit::operator);
        let writing = Router::new()
            .route("/api/agents", post(agents::create))
            .route("/api/agents/{name}", put(agents::update).delete(agents::remove))
            .route_layer(operator());
        Router::new()
            .route("/api/agents", get(agents::list))
            .route("/api/agents/check", get(agents::check))
            .route("/api/agents/{name}", get(agents::show))
            .merge(writing)
            .route_layer(middleware::from_fn_with_state(self.clone(), agents::enabled))
    }

    /// The routes of LangGraph's clients about threads and their runs.
    fn threads() -> Router<Self> {
        let posted = |handler: axum::routing::MethodRouter<Self>| {
            handler.layer(DefaultBodyLimit::max(chat::MAX_BODY_BYTES))
        };
        Router::new()
            .route("/threads", post(threads::create))
            .route("/threads/search", post(threads::search))
            .route("/threads/count", post(threads::count))
            .route("/threads/{thread}", get(threads::show).patch(threads::patch).delete(threads::delete))
            .route(
                "/threads/{thread}/state",
                posted(get(thread_state::state).post(thread_state::update_state)),
            )
            .route("/threads/{thread}/state/checkpoint", post(thread_state::state_of_checkpoint))
            .route("/threads/{thread}/state/{checkpoint}", get(thread_state::state_at))
            .route("/threads/{thread}/history", post(thread_state::history))
            .route("/threads/{thread}/copy", post(thread_state::copy))
            .route("/threads/{thread}/runs", posted(get(client_runs::list).post(client_runs::create)))
            .route("/threads/{thread}/runs/stream", posted(post(client_runs::stream)))
            .route("/threads/{thread}/runs/wait", posted(post(client_runs::wait_on_thread)))
            .route("/threads/{thread}/runs/{run}", get(client_runs::show).delete(client_runs::delete))
            .route("/threads/{thread}/runs/{run}/join", get(client_runs::join))
            .route("/threads/{thread}/runs/{run}/stream", get(client_runs::follow).post(client_runs::follow))
            .route("/threads/{thread}/runs/{run}/cancel", post(client_runs::cancel))
            .route("/threads/{thread}/branches", post(branches::branch))
            .route("/threads/{thread}/runs/regenerate/prepare", post(branches::regenerate))
            .route("/threads/{thread}/runs/edit-regenerate/prepare", post(branches::edit))
            .route("/threads/{thread}/token-usage", get(thread_facts::tokens))
            .route(
                "/threads/{thread}/goal",
                get(thread_facts::show_goal).put(thread_facts::set_goal).delete(thread_facts::clear_goal),
            )
            .route("/threads/{thread}/compact", post(thread_facts::compact))
            .route("/threads/{thread}/runs/{run}/workspace-changes", get(thread_facts::workspace_changes))
            .route("/threads/{thread}/messages", get(messages::list))
            .route("/threads/{thread}/messages/page", get(messages::page))
            .route("/threads/{thread}/runs/{run}/messages", get(messages::of_run))
            .route("/threads/{thread}/runs/{run}/events", get(messages::events))
            .route(
                "/threads/{thread}/runs/{run}/feedback",
                get(feedback::list).put(feedback::put).post(feedback::put).delete(feedback::delete),
            )
            .route("/threads/{thread}/runs/{run}/feedback/stats", get(feedback::stats))
            .route("/threads/{thread}/runs/{run}/feedback/{feedback}", delete(feedback::delete_one))
            .route("/runs/{run}/messages", get(messages::of_stateless_run))
            .route("/runs", posted(post(client_runs::create_stateless)))
            .route("/runs/stream", posted(post(client_runs::stream_stateless)))
            .route("/runs/wait", posted(post(client_runs::wait_stateless)))
    }

    fn router(self) -> Router {
        let operated = Router::new()
            .route("/api/channels/{name}/restart", post(info::restart))
            .route("/api/channels/{name}/people", get(people::list))
            .route("/api/channels/{name}/people/{person}", delete(people::forget))
            .route("/api/audit", get(audit::list))
            .route("/api/usage", get(usage::list))
            .route("/api/storage", get(storage::show))
            .route("/api/storage/prune", post(storage::prune))
            .route("/api/users", get(users::list))
            .route("/api/users/{user}", delete(users::forget))
            .route("/api/users/{user}/export", get(users::export))
            .merge(auth::operator_routes())
            .route("/api/threads", get(storage::threads))
            .route("/api/storage/threads/{thread}", delete(storage::delete))
            .route("/api/threads/{thread}/tasks", get(tasks::list))
            .route("/api/skills/install", post(skills::install))
            .route("/api/skills/custom", get(skills::custom))
            .route("/api/skills/custom/{name}/history", get(skills::history))
            .route("/api/skills/custom/{name}/rollback", post(skills::rollback))
            .route_layer(middleware::from_fn_with_state(self.clone(), admit::operator));
        let agents = self.agents();
        // Files are as large as the configuration says.
        let files = post(uploads::put).layer(DefaultBodyLimit::disable());
        let said = post(chat::say).layer(DefaultBodyLimit::max(chat::MAX_BODY_BYTES));
        let local = Router::new()
            .route("/api/chat/{chat}/events", get(chat::events))
            .route("/api/chat/{chat}/messages", said)
            .route("/api/chat/{chat}/press", post(chat::press))
            .route("/api/chat/{chat}/files/{line}/{index}", get(chat::file))
            .route("/api/active-runs", get(runs::list))
            .route("/api/active-runs/{run}/events", get(runs::events))
            .route_layer(middleware::from_fn(admit::local));
        let of_threads = Router::new()
            .route("/api/threads/{thread}/uploads", files)
            .route("/api/threads/{thread}/uploads/list", get(uploads::list))
            .route("/api/threads/{thread}/uploads/{name}", delete(uploads::remove))
            .route_layer(middleware::from_fn_with_state(self.clone(), owned::check));
        let guarded = Router::new()
            .route("/api/commands", get(info::commands))
            .route("/api/skills", get(skills::list))
            .route("/api/channels", get(info::channels))
            .route("/api/channels/", get(info::channels))
            .route("/api/threads/{thread}/uploads/limits", get(uploads::limits))
            .merge(local)
            .merge(of_threads)
            .merge(auth::own_routes())
            .merge(operated)
            .merge(agents)
            .merge(self.resources())
            .nest("/api", Self::threads())
            .nest("/api/langgraph", Self::threads())
            .route_layer(middleware::from_fn_with_state(self.clone(), admit::check));
        let open = Router::new()
            .route("/", get(page::page))
            .route("/health", get(health::health))
            .route("/ready", get(health::ready))
            .route_layer(middleware::from_fn_with_state(self.clone(), guard::same_site));
        // What brings its own proof, a secret or a signature, may come by any name of this machine.
        let hooks = Router::new()
            .route("/api/webhooks/{platform}/{account}", post(webhook::take))
            .route("/files/{token}", get(file::linked));
        let cors = cors::layer(&self.0.sign_in.config.cors_origins);
        let all = guarded
            .merge(open)
            .merge(auth::open_routes(&self))
            .merge(hooks)
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(middleware::from_fn(paced::pace))
            .layer(CatchPanicLayer::new())
            .layer(middleware::from_fn(errors::shape))
            .with_state(self);
        match cors {
            Some(cors) => all.layer(cors),
            None => all,
        }
    }
}
