//! A simulated Docker engine: the part of its HTTP API that creates containers, runs commands in them and removes them,
//! faithful to the published specification in paths, versions, shapes, errors and the framing of output. Containers
//! really run: see [`crate::cell`] for their abilities and limits.
//!
//! Deliberately absent: volumes, builds, swarm, logs, terminals, and limits of memory and processors, which are only
//! recorded.

mod containers;
mod execs;
mod images;
mod networks;

use crate::{
    Aio,
    http::{Server, cut},
};
use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, StatusCode},
    response::{IntoResponse, Response},
};
use containers::Container;
use execs::Exec;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Newest and oldest supported version of the API.
const VERSIONS: (u32, u32) = (50, 24);
/// Maximum size of a request, in bytes.
const BODY: usize = 16 << 20;

/// Options of the engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Local images.
    pub images: Vec<String>,
    /// Images in the registry.
    pub registry: Vec<String>,
    /// Images that serve the all-in-one API.
    pub serving: Vec<String>,
    /// Security options in `docker info`.
    pub security: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Self {
            images: words(&["debian:12", "all-in-one-sandbox:latest"]),
            registry: words(&["alpine:3"]),
            serving: words(&["all-in-one-sandbox:latest"]),
            security: words(&["name=seccomp,profile=builtin", "name=cgroupns"]),
        }
    }
}

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The method and the path without its version, such as `POST /containers/create`.
    pub what: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A status and an error's message.
    Refuse(u16, String),
    /// A success with this body.
    Garbage(String),
    /// The connection closes.
    Cut,
}

/// A simulated engine. It stops with its last handle, together with its containers.
#[derive(Clone)]
pub struct Docker {
    world: Arc<World>,
    server: Arc<Server>,
}

struct World {
    options: Options,
    images: Mutex<Vec<String>>,
    containers: Mutex<HashMap<String, Arc<Container>>>,
    execs: Mutex<HashMap<String, Arc<Exec>>>,
    networks: Mutex<BTreeMap<String, Value>>,
    asked: Mutex<Vec<Asked>>,
    troubles: Mutex<Vec<(String, Trouble)>>,
}

impl Docker {
    /// Starts one on a free loopback port.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start(options: Options) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await
    }

    /// Starts one at a loopback address.
    ///
    /// # Errors
    /// When the port is not available.
    pub async fn bind(address: SocketAddr, options: Options) -> io::Result<Self> {
        let (world, router) = Self::world(options);
        let server = Server::start(address, router).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Starts one on a socket in the file system, the default of engines.
    ///
    /// # Errors
    /// When the socket cannot be created.
    pub fn start_at(socket: &Path, options: Options) -> io::Result<Self> {
        let (world, router) = Self::world(options);
        let server = Server::start_at(socket, router)?;
        Ok(Self { world, server: Arc::new(server) })
    }

    fn world(options: Options) -> (Arc<World>, Router) {
        let world = Arc::new(World {
            images: Mutex::new(options.images.clone()),
            options,
            containers: Mutex::default(),
            execs: Mutex::default(),
            networks: Mutex::default(),
            asked: Mutex::default(),
            troubles: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(world.clone());
        (world, router)
    }

    /// Returns the address for `DOCKER_HOST`.
    #[must_use]
    pub fn host(&self) -> String {
        format!("tcp://{}", self.server.address())
    }

    /// Returns all requests, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.world.asked).clone()
    }

    /// Makes the next request with this prefix of method and path fail.
    pub fn fail(&self, what: &str, trouble: Trouble) {
        locked(&self.world.troubles).push((what.to_owned(), trouble));
    }

    /// Returns the names of the running containers, sorted.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let all: Vec<_> = locked(&self.world.containers).values().cloned().collect();
        let mut names: Vec<String> =
            all.into_iter().filter(|one| one.runs()).map(|one| one.name.clone()).collect();
        names.sort();
        names
    }

    /// Ends a container's first process, like a crash.
    pub async fn crash(&self, name: &str) {
        let found = locked(&self.world.containers).get(name).cloned();
        if let Some(container) = found {
            containers::end(&self.world, &container).await;
        }
    }

    /// Returns the API that a container serves, if any.
    #[must_use]
    pub fn api(&self, name: &str) -> Option<Aio> {
        let found = locked(&self.world.containers).get(name).cloned();
        found.and_then(|container| container.served())
    }

    /// Returns the command lines of a container's processes, including its first process and those started by the
    /// engine.
    #[must_use]
    pub fn processes(&self, name: &str) -> Vec<String> {
        let found = locked(&self.world.containers).get(name).cloned();
        found.map(|container| container.processes()).unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the engine's error for an unsupported request.
fn refuse(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({"message": message.into()}))).into_response()
}

fn id() -> String {
    format!("{:032x}{:032x}", fastrand::u128(..), fastrand::u128(..))
}

/// A parsed request.
struct Call {
    world: Arc<World>,
    query: BTreeMap<String, String>,
    body: Value,
}

impl Call {
    fn flag(&self, name: &str) -> bool {
        matches!(self.query.get(name).map(String::as_str), Some("1" | "true" | "True"))
    }

    fn text(&self, key: &str) -> &str {
        self.body.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

async fn serve(State(world): State<Arc<World>>, mut request: Request<Body>) -> Response {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, body) = request.into_parts();
    let path = match unversioned(parts.uri.path()) {
        Ok(path) => path.to_owned(),
        Err(message) => return refuse(StatusCode::BAD_REQUEST, message),
    };
    let body = to_bytes(body, BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let query: BTreeMap<String, String> =
        url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let what = format!("{} {path}", parts.method);
    locked(&world.asked).push(Asked { what: what.clone(), query: query.clone(), body: body.clone() });
    let trouble = {
        let mut troubles = locked(&world.troubles);
        troubles.iter().position(|(at, _)| what.starts_with(at)).map(|at| troubles.remove(at).1)
    };
    match trouble {
        Some(Trouble::Cut) => return cut(),
        Some(Trouble::Garbage(body)) => return body.into_response(),
        Some(Trouble::Refuse(status, message)) => {
            return refuse(StatusCode::from_u16(status).unwrap_or_default(), message);
        }
        None => {}
    }
    let call = Call { world, query, body };
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    match (parts.method.as_str(), steps.as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => ping(),
        ("GET", ["version"]) => version(),
        ("GET", ["info"]) => info(&call.world),
        ("POST", ["images", "create"]) => images::pull(&call),
        ("GET", ["images", name @ .., "json"]) => images::inspect(&call.world, &name.join("/")),
        ("GET", ["networks", name]) => networks::inspect(&call.world, name),
        ("POST", ["networks", "create"]) => networks::create(&call),
        ("GET", ["containers", "json"]) => containers::list(&call),
        ("POST", ["containers", "create"]) => containers::create(&call),
        ("GET", ["containers", name, "json"]) => containers::inspect(&call.world, name),
        ("POST", ["containers", name, "start"]) => containers::start(&call.world, name).await,
        ("POST", ["containers", name, "kill" | "stop"]) => containers::kill(&call.world, name).await,
        ("DELETE", ["containers", name]) => containers::remove(&call, name).await,
        ("POST", ["containers", name, "exec"]) => execs::create(&call, name),
        ("POST", ["exec", id, "start"]) => execs::start(&call, id, upgrade, &parts.headers),
        ("GET", ["exec", id, "json"]) => execs::inspect(&call.world, id),
        _ => refuse(StatusCode::NOT_FOUND, "page not found"),
    }
}

/// Removes the version from a path; an unsupported version is refused.
fn unversioned(path: &str) -> Result<&str, String> {
    let Some((version, rest)) = path.strip_prefix("/v1.").and_then(|rest| rest.split_once('/')) else {
        return Ok(path);
    };
    let (newest, oldest) = VERSIONS;
    match version.parse::<u32>() {
        Ok(version) if version > newest => {
            Err(format!("client version 1.{version} is too new. Maximum supported API version is 1.{newest}"))
        }
        Ok(version) if version < oldest => Err(format!(
            "client version 1.{version} is too old. Minimum supported API version is 1.{oldest}, please upgrade your \
             client to a newer version"
        )),
        _ => Ok(path.split_at(path.len() - rest.len() - 1).1),
    }
}

fn ping() -> Response {
    let version = format!("1.{}", VERSIONS.0);
    let headers = [
        ("api-version", version.as_str()),
        ("docker-experimental", "false"),
        ("ostype", "linux"),
        ("server", "Docker/28.2.2 (linux)"),
    ];
    (headers, "OK").into_response()
}

fn version() -> Response {
    Json(json!({
        "Platform": {"Name": "pudu-sim"}, "Version": "28.2.2", "ApiVersion": format!("1.{}", VERSIONS.0),
        "MinAPIVersion": format!("1.{}", VERSIONS.1), "GitCommit": "45873be", "GoVersion": "go1.24.3", "Os": "linux",
        "Arch": "amd64", "KernelVersion": "6.1.0", "BuildTime": "2025-05-30T12:07:36.000000000+00:00",
    }))
    .into_response()
}

fn info(world: &World) -> Response {
    let all: Vec<_> = locked(&world.containers).values().cloned().collect();
    let running = all.iter().filter(|container| container.runs()).count();
    Json(json!({
        "ID": "pudu-sim", "Containers": all.len(), "ContainersRunning": running, "ServerVersion": "28.2.2",
        "OSType": "linux", "Architecture": "x86_64", "NCPU": 2, "MemTotal": 4_294_967_296_u64, "Driver": "overlay2",
        "CgroupVersion": "2", "SecurityOptions": world.options.security, "Name": "pudu-sim",
    }))
    .into_response()
}
