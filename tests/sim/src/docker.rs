//! A simulated Docker engine: the part of its HTTP API that makes containers, runs commands in them and takes them
//! away, true to the published specification in paths, versions, shapes, refusals and the framing of output.
//! Containers really run: see [`crate::cell`] for what they have and what they do not.
//!
//! Deliberately absent: volumes, building, swarm, logs, terminals, and limits of memory and processors, which are
//! only remembered.

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

/// The newest version of the API that it speaks, and the oldest.
const VERSIONS: (u32, u32) = (50, 24);
/// The largest request that is read.
const BODY: usize = 16 << 20;

/// What the engine is, and what it has when it starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Images that it has.
    pub images: Vec<String>,
    /// Images that its registry has.
    pub registry: Vec<String>,
    /// Images that serve the all-in-one API.
    pub serving: Vec<String>,
    /// What `docker info` says of its security.
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

/// A request that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The method and the path without its version, such as `POST /containers/create`.
    pub what: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

/// What a request is answered with instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A status and an error's message.
    Refuse(u16, String),
    /// A success with this very body.
    Garbage(String),
    /// The connection closes.
    Cut,
}

/// A simulated engine. It ends with its last handle, and its containers with it.
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
    /// Starts one on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(options: Options) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await
    }

    /// Starts one at an address of loopback.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn bind(address: SocketAddr, options: Options) -> io::Result<Self> {
        let (world, router) = Self::world(options);
        let server = Server::start(address, router).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Starts one on a socket in the file system, as engines are by default.
    ///
    /// # Errors
    /// When the socket cannot be made.
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

    /// The address to give as `DOCKER_HOST`.
    #[must_use]
    pub fn host(&self) -> String {
        format!("tcp://{}", self.server.address())
    }

    /// Everything that was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        locked(&self.world.asked).clone()
    }

    /// Answers the next request whose method and path begin so with trouble.
    pub fn fail(&self, what: &str, trouble: Trouble) {
        locked(&self.world.troubles).push((what.to_owned(), trouble));
    }

    /// The names of the containers that run, sorted.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        let all: Vec<_> = locked(&self.world.containers).values().cloned().collect();
        let mut names: Vec<String> =
            all.into_iter().filter(|one| one.runs()).map(|one| one.name.clone()).collect();
        names.sort();
        names
    }

    /// Ends a container's first process, as a crash would.
    pub async fn crash(&self, name: &str) {
        let found = locked(&self.world.containers).get(name).cloned();
        if let Some(container) = found {
            containers::end(&self.world, &container).await;
        }
    }

    /// The API that a container serves, if it does.
    #[must_use]
    pub fn api(&self, name: &str) -> Option<Aio> {
        let found = locked(&self.world.containers).get(name).cloned();
        found.and_then(|container| container.served())
    }

    /// What a container's processes are, by their command lines; its first process and what the engine itself starts
    /// there are among them.
    #[must_use]
    pub fn processes(&self, name: &str) -> Vec<String> {
        let found = locked(&self.world.containers).get(name).cloned();
        found.map(|container| container.processes()).unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the engine says what it does not do.
fn refuse(status: StatusCode, message: impl Into<String>) -> Response {
    (status, Json(json!({"message": message.into()}))).into_response()
}

fn id() -> String {
    format!("{:032x}{:032x}", fastrand::u128(..), fastrand::u128(..))
}

/// A request as the parts look at it.
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

/// Takes the version off a path; a version that the engine does not speak is refused.
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
