//! The HTTP server: health, the page, the local chats, and the platforms' webhooks.
//!
//! Deliberately absent: any logic. A handler checks its input and hands it to the room, the dispatcher or the
//! client.

mod admit;
mod agents;
mod answers;
mod approvals;
mod artifacts;
mod assist;
mod assistants;
pub mod audit;
mod auth;
mod body_limit;
mod branches;
mod caller;
mod changes;
mod chat;
mod chat_links;
mod client_runs;
mod console;
mod content;
mod cors;
mod created;
mod errors;
mod failures;
mod feedback;
mod file;
mod follow_query;
mod guard;
mod guests;
mod health;
mod ignored;
mod info;
mod input;
mod json;
mod mcp;
mod mcp_edit;
mod memory;
mod messages;
mod models;
mod openapi;
mod options;
mod owned;
mod owned_runs;
mod paced;
mod page;
mod people;
mod profile;
mod query;
mod resources;
mod run_body;
mod run_list;
mod run_readers;
mod run_request;
mod run_stream;
mod scrubbed;
mod serve;
mod skills;
mod slash_commands;
pub mod storage;
mod stream_watch;
mod tasks;
mod temporary;
pub mod thread;
mod thread_edits;
mod thread_facts;
mod thread_routes;
mod thread_state;
mod threads;
pub mod token;
mod unsupported;
mod uploads;
mod urlencoded;
pub mod usage;
mod users;
mod webhook;
mod wrong_value;

pub use {
    auth::SignIn,
    client_runs::cut_runs,
    guard::{Exposed, GatewayToken},
};

use axum::{Extension, Router, middleware};
use body_limit::MAX_BODY_BYTES;
use openapi::{RouteAccess, Routes, delete, get, post, put, says};
use pudu_client::{Client, store::Db};
use pudu_config::{HotConfig, Watcher};
use pudu_dispatch::{Shared, bus::STORE_TIMEOUT, connections::Connections, local::LocalChannel};
use std::{net::SocketAddr, sync::Arc, time::Instant};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// State that handlers share.
#[derive(Clone)]
pub struct GatewayState(Arc<Inner>);

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
    readers: run_readers::RunReaders,
    started: Instant,
    stop: CancellationToken,
}

impl GatewayState {
    /// Makes a gateway that answers at `bound`. Changes of the people who may speak require the token; every route but
    /// health, the page, links and webhooks may require it.
    pub fn new(
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
            readers: run_readers::RunReaders::default(),
            started,
            stop,
        }))
    }

    /// Returns the store, which fails if it does not answer in time.
    fn db(&self) -> Db {
        self.0.shared.db.within(STORE_TIMEOUT)
    }

    /// Returns the agent.
    fn client(&self) -> &Client {
        &self.0.shared.client
    }

    /// Returns the configuration as it is now.
    fn config(&self) -> Arc<HotConfig> {
        self.0.watcher.current()
    }

    /// Serves until `stop`, then lets requests at work finish.
    pub async fn serve(self, listener: TcpListener) {
        let gateway = self.clone();
        self.0.shared.tasks.spawn(async move { gateway.delete_left().await });
        let stop = self.0.stop.clone();
        serve::serve(listener, self.router(), stop).await;
    }

    /// The routes about custom agents, which an operator may switch on.
    fn agents(&self) -> Routes {
        let owner = middleware::from_fn_with_state(self.clone(), admit::owner);
        let writing = Routes::new("agents")
            .at("/api/agents", post(agents::create, says("Makes an agent.").fails(&[409])))
            .at(
                "/api/agents/{name}",
                put(agents::update, says("Changes an agent."))
                    .delete(agents::remove, says("Deletes an agent.").gives_nothing(204)),
            )
            .admitted(RouteAccess::Known, owner);
        Routes::new("agents")
            .at("/api/agents", get(agents::list, says("Lists the custom agents.")))
            .at(
                "/api/agents/check",
                get(agents::check, says("Tells whether a name is available.").fails(&[409, 422])),
            )
            .at("/api/agents/{name}", get(agents::show, says("Shows an agent.").fails(&[422])))
            .merge(writing)
            .behind(middleware::from_fn_with_state(self.clone(), agents::enabled))
    }

    /// The routes of administrators.
    fn operated(&self) -> Routes {
        let of_skills = Routes::new("skills")
            .at(
                "/api/skills/install",
                post(
                    skills::install,
                    says("Installs a skill from a thread's files.").fails(&[403, 404, 409]),
                ),
            )
            .at("/api/skills/custom", get(skills::custom, says("Lists the skills that can be changed.")))
            .at(
                "/api/skills/custom/{name}/history",
                get(skills::history, says("Lists the changes of a skill.")),
            )
            .at(
                "/api/skills/custom/{name}/rollback",
                post(skills::rollback, says("Brings a skill back as it was before a change.").fails(&[409])),
            );
        let of_channels = Routes::new("channels")
            .at(
                "/api/channels/{name}/restart",
                post(info::restart, says("Reconnects an account.").fails(&[422])),
            )
            .at(
                "/api/channels/{name}/people",
                get(people::list, says("Lists the people admitted by a code.")),
            )
            .at(
                "/api/channels/{name}/people/{person}",
                delete(people::forget, says("Removes a person admitted by a code.")),
            );
        Routes::new("administration")
            .at("/api/audit", get(audit::list, says("Lists the agents' actions and the decisions on them.").gives("{deeds: [object]}")))
            .at(
                "/api/usage",
                get(
                    usage::list,
                    says("Lists what everybody spent on models.")
                        .gives("{days: integer, people: [object], rooms: [object], accounts: [object], models: [object], budgets: [object]}"),
                ),
            )
            .at("/api/storage", get(storage::show, says("Lists the stored data of each account.").gives("{retention: object, accounts: [object]}")))
            .at(
                "/api/storage/prune",
                post(
                    storage::prune,
                    says("Deletes the data beyond the limits of `retention`.")
                        .gives("{threads: integer, threads_without_files: integer, bytes: integer, audit_rows: integer}"),
                ),
            )
            .at("/api/users", get(users::list, says("Lists everybody of whom something is stored.").gives("{users: [object]}")))
            .at(
                "/api/users/{user}",
                delete(
                    users::forget,
                    says("Deletes everything of one person.")
                        .gives("{threads: integer, room_messages: integer, room_facts: integer, rooms: any, left: any}")
                        .fails(&[409]),
                ),
            )
            .at(
                "/api/users/{user}/export",
                get(users::export, says("Returns everything of one person as an archive.").sends(200, "application/zip")),
            )
            .at("/api/threads", get(storage::threads, says("Lists the threads of an account, or of all.").gives("{threads: [object]}").fails(&[422])))
            .at(
                "/api/storage/threads/{thread}",
                delete(storage::delete, says("Deletes anybody's thread.").fails(&[409, 422])),
            )
            .at(
                "/api/threads/{thread}/tasks",
                get(
                    tasks::list,
                    says("Lists what the sub-agents of a thread did.")
                        .gives("{events: [object], next: integer|null}")
                        .fails(&[422]),
                ),
            )
            .merge(auth::operator_routes())
            .merge(of_skills)
            .merge(of_channels)
            .admitted(RouteAccess::Admin, middleware::from_fn_with_state(self.clone(), admit::operator))
    }

    /// The routes of the page's chats.
    fn local() -> Routes {
        Routes::new("chat")
            .at(
                "/api/chat/{chat}/events",
                get(chat::events, says("Streams the lines of a chat.").streams().fails(&[422])),
            )
            .at(
                "/api/chat/{chat}/messages",
                post(chat::say, says("Sends a message.").gives_with(202, "Accepted"))
                    .limit(chat::MAX_BODY_BYTES),
            )
            .at(
                "/api/chat/{chat}/press",
                post(chat::press, says("Presses a button below an answer.").gives_with(202, "Accepted")),
            )
            .at(
                "/api/chat/{chat}/files/{line}/{index}",
                get(chat::file, says("Fetches a file of an answer.").sends_file().fails(&[422])),
            )
            .behind(middleware::from_fn(admit::local))
    }

    /// The routes of threads' uploads.
    fn uploads(&self) -> Routes {
        Routes::new("files")
            .at(
                "/api/threads/{thread}/uploads",
                // Files are as large as the configuration says.
                post(uploads::put, says("Adds files to a thread's uploads.")).without_limit(),
            )
            .at(
                "/api/threads/{thread}/uploads/list",
                get(uploads::list, says("Lists the uploads of a thread.").fails(&[422])),
            )
            .at(
                "/api/threads/{thread}/uploads/{name}",
                delete(uploads::remove, says("Deletes an upload.").fails(&[422])),
            )
            .behind(middleware::from_fn_with_state(self.clone(), owned::check))
            .merge(Routes::new("files").at(
                "/api/threads/{thread}/uploads/limits",
                get(uploads::limits, says("Tells the limits of uploads.").fails(&[422])),
            ))
    }

    /// The routes of identified callers and of callers on this machine.
    fn guarded(&self) -> Routes {
        let channels = || {
            let state = "{service_running: boolean, channels: object}";
            get(info::channels, says("Lists the channels and their state.").gives(state))
        };
        let shown = Routes::new("channels").at("/api/channels", channels()).at("/api/channels/", channels());
        Routes::new("skills")
            .at("/api/skills", get(skills::list, says("Lists the skills.")))
            .merge(Routes::new("chat").at(
                "/api/commands",
                get(info::commands, says("Lists the slash commands, followed by the skills.")),
            ))
            .merge(shown)
            .merge(Self::local())
            .merge(self.uploads())
            .merge(auth::own_routes())
            .merge(self.operated())
            .merge(self.agents())
            .merge(self.resources())
            .nest("/api", self.threads())
            .nest("/api/langgraph", self.threads())
            .admitted(RouteAccess::Known, middleware::from_fn_with_state(self.clone(), admit::check))
    }

    /// The routes that describe the API, unless they are switched off.
    fn description(&self) -> Routes {
        let routes = Routes::new("daemon");
        if self.0.sign_in.config.hides_docs {
            return routes;
        }
        routes
            .at(
                "/docs",
                get(openapi::page, says("Serves a page that lists the operations.").sends(200, "text/html")),
            )
            .at("/openapi.json", get(openapi::document, says("Serves this document.").gives("object")))
    }

    /// The routes that are open to every caller.
    fn open(&self) -> Routes {
        let open = Routes::new("daemon")
            .at("/", get(page::page, says("Serves the page.").sends(200, "text/html").gives_nothing(304)))
            .at(
                "/page/{version}/{*file}",
                get(page::file, says("Serves a file of the page.").sends(200, "*/*")),
            )
            .at("/health", get(health::health, says("Reports that the process is alive.")))
            .at(
                "/ready",
                get(
                    health::ready,
                    says("Reports whether the daemon can work.").gives(READY).gives_with(503, READY),
                ),
            )
            .merge(self.description())
            .merge(thread_routes::server_routes())
            .behind(middleware::from_fn_with_state(self.clone(), guard::same_site));
        // Requests with a proof of their own, a secret or a signature, may use any name of this machine.
        let hooks = Routes::new("daemon")
            .at(
                "/api/webhooks/{platform}/{account}",
                post(
                    webhook::take,
                    says("Receives a platform's events.").sends(200, "*/*").fails(&[400, 401, 408, 413, 429]),
                ),
            )
            .at(
                "/files/{token}",
                get(
                    file::linked,
                    says("Fetches a file by a signed link.").sends_file().sends(404, "text/plain"),
                ),
            );
        open.merge(auth::open_routes(self)).merge(hooks)
    }

    fn router(self) -> Router {
        let cors = cors::layer(&self.0.sign_in.config.cors_origins);
        let (router, routes) = self.guarded().merge(self.open()).finish();
        let all = router
            .layer(Extension(Arc::new(openapi::OpenApiDocument::of(routes))))
            .layer(body_limit::layers(MAX_BODY_BYTES))
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

/// Facts of readiness.
const READY: &str = "{ready: boolean, store: boolean, inbox_has_room: boolean, full: [string], model: boolean, draining: boolean, away: [string], channels: object}";
