//! The HTTP API, the page, and the platforms' webhooks. Each folder has the handlers and the routes of one resource.
//!
//! A handler takes its inputs by extractors, such as `Caller`, `Json` or a thread of the caller's, and returns its
//! answer as a type, or an `ApiError`.
//!
//! Deliberately absent: any logic. A handler checks its input and hands it to the dispatcher or the client.

mod admin;
mod agent;
mod auth;
mod console;
mod http;
mod openapi;
mod page;
mod people;
mod runs;
mod threads;

pub use {
    admin::{audit, storage, usage},
    auth::{
        SignIn,
        guard::{Exposed, GatewayToken},
        token,
    },
    runs::control::resume_runs,
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
use pudu_client::{Client, store::Db};
use pudu_config::{HotConfig, Watcher};
use pudu_dispatch::{Shared, bus::STORE_TIMEOUT, connections::Connections};
use runs::readers::RunReaders;
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Instant};
use threads::uploads::MAX_CONCURRENT_UPLOADS;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// State that handlers share.
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
    connections: Arc<Connections>,
    watcher: Arc<Watcher>,
    guard: guard::RequestGuard,
    sign_in: SignIn,
    /// One permit a request with files.
    uploads: Semaphore,
    /// Failed posts to webhooks.
    failures: failures::Failures,
    readers: RunReaders,
    started: Instant,
    stop: CancellationToken,
}

impl GatewayState {
    /// Makes a gateway that answers at `bound`. Changes of the people who may speak require the token; every route but
    /// health, the page, links and webhooks may require it.
    pub fn new(
        shared: Arc<Shared>,
        connections: Arc<Connections>,
        watcher: Arc<Watcher>,
        bound: SocketAddr,
        token: GatewayToken,
        sign_in: SignIn,
        stop: CancellationToken,
    ) -> Self {
        let guard = guard::RequestGuard::new(bound, token);
        let uploads = Semaphore::new(MAX_CONCURRENT_UPLOADS);
        let (failures, started) = (failures::Failures::default(), Instant::now());
        Self(Arc::new(Inner {
            shared,
            connections,
            watcher,
            guard,
            sign_in,
            uploads,
            failures,
            readers: RunReaders::default(),
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

    /// The routes that answer below `/api` and below `/api/langgraph`, where DeerFlow's frontend asks with LangGraph's SDK.
    fn prefixed(&self) -> Routes {
        let routes = threads::routes()
            .merge(threads::artifact_routes(self))
            .merge(runs::routes(self))
            .merge(agent::routes())
            .merge(people::routes(self))
            .merge(http::server_routes())
            .merge(http::unsupported_routes());
        Routes::new("").nest("/api", routes.clone()).nest("/api/langgraph", routes)
    }

    /// The routes of identified callers and of callers on this machine.
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

    /// The routes that describe the API, unless they are switched off.
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

    /// The routes that are open to every caller.
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
