//! A simulated web: search and page providers, faithful to their public documentation in paths, keys, shapes and
//! errors, and a site that represents the public internet.
//!
//! The providers share one loopback server, each with its own path, so that an address can be configured per tool. The
//! site listens on 127.0.0.2, which a client has to treat as the public internet; the server on 127.0.0.1 must not be
//! reachable from outside. Deliberately absent: prices, and rate limits other than planned ones.

mod engines;
mod site;

use crate::http::Server;
use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
    response::{AppendHeaders, IntoResponse, Response},
};
use serde_json::Value;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

/// Key that every provider accepts.
pub const KEY: &str = "web-simulated-key-0123456789";

/// Maximum size of a request, in bytes.
const BODY: usize = 1024 * 1024;

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method and the path, such as `POST /tavily/search`.
    pub what: String,
    /// The query string, not decoded.
    pub query: String,
    /// The body, as text.
    pub body: String,
}

#[derive(Default)]
struct World {
    asked: Mutex<Vec<Asked>>,
    /// Planned failures by path.
    troubles: Mutex<Vec<(String, u16, Option<u64>)>>,
}

/// A simulated web. It stops with its last handle.
#[derive(Clone)]
pub struct Web {
    world: Arc<World>,
    engines: Arc<Server>,
    site: Arc<Server>,
}

impl Web {
    /// Starts one.
    ///
    /// # Errors
    /// When no ports are available.
    pub async fn start() -> io::Result<Self> {
        let world = Arc::new(World::default());
        let inside = Router::new().fallback(engines).with_state(world.clone());
        let engines = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), inside).await?;
        let port = engines.address().port();
        let outside = Router::new().fallback(pages).with_state((world.clone(), port));
        let site = Server::start(SocketAddr::from(([127, 0, 0, 2], 0)), outside).await?;
        Ok(Self { world, engines: Arc::new(engines), site: Arc::new(site) })
    }

    /// Returns the `base_url` of a provider: `tavily`, `jina`, `firecrawl`, `searxng`, `brave`, `serper`, `exa` or
    /// `ddg`.
    #[must_use]
    pub fn provider(&self, name: &str) -> String {
        format!("http://{}/{name}", self.engines.address())
    }

    /// Returns the address of a page of the site.
    #[must_use]
    pub fn page(&self, path: &str) -> String {
        format!("http://{}{path}", self.site.address())
    }

    /// Returns the internal address, which must not be reachable from outside.
    #[must_use]
    pub fn inside(&self) -> String {
        format!("http://{}/secret", self.engines.address())
    }

    /// Makes the next request for a path fail with a status and a retry delay.
    pub fn fail(&self, path: &str, status: u16, retry_after: Option<u64>) {
        locked(&self.world.troubles).push((path.to_owned(), status, retry_after));
    }

    /// Returns all requests, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.world.asked).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A parsed request.
struct Visit {
    path: String,
    query: String,
    headers: HeaderMap,
    body: String,
}

impl Visit {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    fn parameter(&self, name: &str) -> String {
        let pairs = url::form_urlencoded::parse(self.query.as_bytes());
        pairs.into_owned().find(|(key, _)| key == name).map(|(_, value)| value).unwrap_or_default()
    }
}

/// Records a request, and returns its planned failure.
async fn visit(world: &World, request: Request) -> Result<Visit, Response> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY).await.unwrap_or_default();
    let visit = Visit {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    locked(&world.asked).push(Asked {
        what: format!("{} {}", head.method, visit.path),
        query: visit.query.clone(),
        body: visit.body.clone(),
    });
    let mut troubles = locked(&world.troubles);
    let Some(at) = troubles.iter().position(|(path, ..)| *path == visit.path) else { return Ok(visit) };
    let (_, status, wait) = troubles.remove(at);
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let wait = wait.map_or_else(Vec::new, |wait| vec![("retry-after", wait.to_string())]);
    Err((status, AppendHeaders(wait)).into_response())
}

async fn engines(State(world): State<Arc<World>>, request: Request) -> Response {
    let get = request.method() == Method::GET;
    match visit(&world, request).await {
        Ok(visit) => engines::answer(&visit, get),
        Err(response) => response,
    }
}

async fn pages(State((world, port)): State<(Arc<World>, u16)>, request: Request) -> Response {
    match visit(&world, request).await {
        Ok(visit) => site::answer(&visit, port),
        Err(response) => response,
    }
}
