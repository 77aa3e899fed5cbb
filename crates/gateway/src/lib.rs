//! The HTTP API, the page, and the platforms' webhooks. Each folder contains the handlers and routes of one resource.
//!
//! A handler gets its inputs from extractors, such as `Caller`, `Json` or one of the caller's threads, and returns a
//! typed response or an `ApiError`.
//!
//! Deliberately absent: business logic. A handler checks its input and passes it to the dispatcher or the client.

mod admin;
mod agent;
mod auth;
mod console;
mod http;
mod local;
mod openapi;
mod page;
mod people;
mod protocol;
mod runs;
mod schedules;
mod threads;

pub use {
    admin::{AUDIT_ENTRIES, DAYS, LISTED_THREADS, MAX_LISTED_THREADS, log_pruned},
    auth::{
        SignIn,
        guard::{Exposed, GatewayToken},
        token,
    },
    local::AnsweringProcess,
    threads::thread,
};

use auth::{Caller, admit, guard};
use axum::{Extension, Router, extract::FromRequestParts, http::request::Parts, middleware};
use http::{
    ApiError, Confirmation, Created, Json, Query, Scrubbed,
    body_limit::{self, MAX_BODY_BYTES},
    cors, failures, paced, serve,
};
use openapi::{RouteAccess, Routes, about, get};
use pudu_agent::Agent;
use pudu_client::Client;
use pudu_config::{HotConfig, Watcher};
use pudu_dispatch::{Shared, bus::STORE_TIMEOUT, connections::Connections};
use pudu_runs::RunManager;
use pudu_store::Db;
use std::{convert::Infallible, sync::Arc, time::Instant};
use threads::uploads::MAX_CONCURRENT_UPLOADS;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// State shared by all handlers.
#[derive(Clone)]
pub struct GatewayState(Arc<Inner>);

impl FromRequestParts<GatewayState> for GatewayState {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, gateway: &Self) -> Result<Self, Infallible> {
        Ok(gateway.clone())
    }
}

struct Inner {
    shared: Arc<Shared>,
    client: Client,
    connections: Arc<Connections>,
    watcher: Arc<Watcher>,
    guard: guard::RequestGuard,
    sign_in: SignIn,
    /// One permit for each request with files.
    uploads: Semaphore,
    /// Failed posts to webhooks.
    failures: failures::Failures,
    started: Instant,
    stop: CancellationToken,
    process: AnsweringProcess,
}

impl GatewayState {
    /// Creates a gateway. Requests that change who may use the bots always require the token. All other routes except
    /// health, the page, links and webhooks may require it.
    pub fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections>,
        watcher: Arc<Watcher>,
        process: AnsweringProcess,
        token: GatewayToken,
        sign_in: SignIn,
        stop: CancellationToken,
    ) -> Self {
        let guard = guard::RequestGuard::new(process.is_local(), token);
        let uploads = Semaphore::new(MAX_CONCURRENT_UPLOADS);
        let (failures, started) = (failures::Failures::default(), Instant::now());
        Self(Arc::new(Inner {
            client: shared.runs.clone().into(),
            shared,
            connections,
            watcher,
            guard,
            sign_in,
            uploads,
            failures,
            started,
            stop,
            process,
        }))
    }

    /// Returns the store with a time limit.
    fn db(&self) -> Db {
        self.0.shared.db.within(STORE_TIMEOUT)
    }

    /// Returns the agent.
    fn agent(&self) -> &Agent {
        &self.0.shared.agent
    }

    /// Returns the run manager.
    fn runs(&self) -> &RunManager {
        &self.0.shared.runs
    }

    /// Returns the agent with the methods of DeerFlow's client, which implement the routes of the same names.
    fn client(&self) -> &Client {
        &self.0.client
    }

    /// Returns the current configuration.
    fn config(&self) -> Arc<HotConfig> {
        self.0.watcher.current()
    }

    /// Serves until `stop`, then lets running requests finish.
    pub async fn serve(self, listener: TcpListener) {
        let gateway = self.clone();
        self.0.shared.tasks.spawn(async move { gateway.delete_left().await });
        let stop = self.0.stop.clone();
        serve::serve(listener, self.router(), stop).await;
    }

    /// Returns the routes below `/api` and, for LangGraph's SDK in DeerFlow's frontend, below `/api/langgraph`.
    fn prefixed(&self) -> Routes {
        let routes = threads::routes()
            .merge(threads::artifact_routes(self))
            .merge(runs::routes(self))
            .merge(protocol::routes())
            .merge(agent::routes())
            .merge(people::routes(self))
            .merge(schedules::routes())
            .merge(http::server_routes())
            .merge(http::unsupported_routes());
        Routes::new("").nest("/api", routes.clone()).nest("/api/langgraph", routes)
    }

    /// Returns the routes for identified callers and for callers on this machine.
    fn guarded(&self) -> Routes {
        self.prefixed()
            .merge(threads::upload_routes(self))
            .merge(threads::command_routes())
            .merge(agent::skill_list_routes())
            .merge(agent::agent_routes(self))
            .merge(admin::channel_list_routes())
            .merge(admin::routes(self))
            .merge(auth::own_routes())
            .admitted(RouteAccess::Known, middleware::from_fn_with_state(self.clone(), admit::check))
    }

    /// Returns the routes that describe the API, unless they are disabled.
    fn description(&self) -> Routes {
        let routes = Routes::new("daemon");
        if self.0.sign_in.config.hides_docs {
            return routes;
        }
        routes
            .at(
                "/docs",
                get(openapi::page, about("Serves a page that lists the operations.").sends(200, "text/html")),
            )
            .at("/openapi.json", get(openapi::document, about("Serves this document.").gives("object")))
    }

    /// Returns the routes that are open to every caller.
    fn open(&self) -> Routes {
        let open = Routes::new("daemon")
            .at("/", get(page::page, about("Serves the page.").sends(200, "text/html").gives_nothing(304)))
            .at(
                "/page/{version}/{*file}",
                get(page::file, about("Serves a file of the page.").sends(200, "*/*")),
            )
            .merge(http::probe_routes())
            .merge(self.description())
            .merge(http::server_routes())
            .behind(middleware::from_fn_with_state(self.clone(), guard::same_site));
        open.merge(auth::open_routes(self)).merge(http::proved_routes())
    }

    fn router(self) -> Router {
        let cors = cors::layer(&self.0.sign_in.config.cors_origins);
        let (router, routes) = self.guarded().merge(self.open()).finish();
        let all = router
            .layer(Extension(Arc::new(openapi::OpenApiDocument::new(routes))))
            .layer(body_limit::layers(MAX_BODY_BYTES))
            .layer(middleware::from_fn(paced::pace))
            .layer(CatchPanicLayer::new())
            .layer(middleware::from_fn(http::errors::shape))
            .with_state(self);
        match cors {
            Some(cors) => all.layer(cors),
            None => all,
        }
    }
}
