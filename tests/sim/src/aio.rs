//! A simulated all-in-one sandbox: its HTTP API for commands and files, faithful to its published description in paths,
//! shapes and the lifecycle of commands. Commands really run.
//!
//! Deliberately absent: the browser, the notebooks, the desktop, and terminals (`/v1/shell`).

mod bash;
mod files;

use crate::{
    cell::{Cell, Plan},
    http::Server,
};
use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, StatusCode},
    response::{IntoResponse, Response},
};
use bash::Session;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::process::Command;

/// Home of the image's user; concatenated, because no such user exists here.
const HOME: &str = concat!("/ho", "me/gem");
/// Maximum size of a request, in bytes.
const BODY: usize = 64 << 20;

/// Where commands run and files are stored.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In a container, as the user of the image.
    Cell(u32, Arc<Plan>),
    /// On this machine, in a folder: for manual use and for other clients.
    Here(PathBuf),
}

/// A running API. It stops with its last handle.
#[derive(Clone, Debug)]
pub struct Aio {
    world: Arc<World>,
    server: Arc<Server>,
}

#[derive(Debug)]
struct World {
    place: Place,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    asked: Mutex<Vec<(String, Value)>>,
    troubles: Mutex<Vec<(String, u16, String)>>,
    silent: Mutex<bool>,
}

impl Aio {
    /// Starts one whose commands run on this machine, in a folder, on a free loopback port.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start(folder: PathBuf) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Place::Here(folder)).await
    }

    /// Starts one on a loopback port.
    ///
    /// # Errors
    /// When the port is not available.
    pub async fn start_on(port: u16, folder: PathBuf) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Place::Here(folder)).await
    }

    pub(crate) async fn bind(address: SocketAddr, place: Place) -> io::Result<Self> {
        let world = Arc::new(World {
            place,
            sessions: Mutex::default(),
            asked: Mutex::default(),
            troubles: Mutex::default(),
            silent: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(world.clone());
        let server = Server::start(address, router).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Returns the address of the API.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// Returns all requests, in order: the path and the body.
    #[must_use]
    pub fn asked(&self) -> Vec<(String, Value)> {
        locked(&self.world.asked).clone()
    }

    /// Answers the next request for a path with this status and body.
    pub fn fail(&self, path: &str, status: u16, body: &str) {
        locked(&self.world.troubles).push((path.to_owned(), status, body.to_owned()));
    }

    /// Closes all further connections without a response.
    pub fn fall_silent(&self) {
        *locked(&self.world.silent) = true;
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        locked(&self.world.sessions).len()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    /// Returns a command that starts a process there.
    fn command(&self, words: &[&str], environment: &[String], folder: &str) -> Command {
        match self {
            Self::Cell(pid, plan) => {
                let mut all = vec![format!("HOME={HOME}"), "USER=gem".to_owned()];
                all.extend(plan.environment.iter().chain(environment).cloned());
                let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
                Cell::command(*pid, plan, &all, "1000:1000", folder, &words)
            }
            Self::Here(home) => {
                let mut command = Command::new(words.first().copied().unwrap_or_default());
                command.args(words.iter().skip(1)).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home);
                command.envs(environment.iter().filter_map(|pair| pair.split_once('=')));
                command.current_dir(if folder.is_empty() { home.as_path() } else { folder.as_ref() });
                command.stdin(std::process::Stdio::null());
                command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
                command
            }
        }
    }
}

/// A response of the API: whether it succeeded, and its data.
fn told(data: impl Into<Value>) -> Response {
    let data: Value = data.into();
    Json(json!({"success": true, "message": "Operation successful", "data": data, "hint": null}))
        .into_response()
}

fn not_done(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"success": false, "message": message, "data": null, "hint": null}))).into_response()
}

/// The framework's response to a body of the wrong shape.
fn invalid(field: &str) -> Response {
    let detail = json!([{"loc": ["body", field], "msg": "Field required", "type": "missing"}]);
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"detail": detail}))).into_response()
}

async fn serve(State(world): State<Arc<World>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body = to_bytes(body, BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    locked(&world.asked).push((path.clone(), body.clone()));
    if *locked(&world.silent) {
        return crate::http::cut();
    }
    let trouble = {
        let mut troubles = locked(&world.troubles);
        troubles.iter().position(|(at, ..)| *at == path).map(|at| troubles.remove(at))
    };
    if let Some((_, status, body)) = trouble {
        return (StatusCode::from_u16(status).unwrap_or_default(), body).into_response();
    }
    let query: HashMap<String, String> =
        url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    match (parts.method.as_str(), path.as_str()) {
        ("GET", "/v1/sandbox") => about(),
        ("GET", "/v1/file/download") => files::download(&world.place, query.get("path")).await,
        ("POST", "/v1/file/read") => files::read(&world.place, &body).await,
        ("POST", "/v1/file/write") => files::write(&world.place, &body).await,
        ("POST", "/v1/file/list") => files::list(&world.place, &body).await,
        ("GET", "/v1/bash/sessions") => bash::sessions(&world),
        ("POST", "/v1/bash/sessions/create") => bash::create(&world, &body),
        ("POST", "/v1/bash/exec") => bash::exec(&world, &body).await,
        ("POST", "/v1/bash/output") => bash::output(&world, &body).await,
        ("POST", "/v1/bash/kill") => bash::kill(&world, &body).await,
        ("POST", path) => {
            match path.strip_prefix("/v1/bash/sessions/").and_then(|rest| rest.strip_suffix("/close")) {
                Some(session) => bash::close(&world, session),
                None => not_found(),
            }
        }
        _ => not_found(),
    }
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, Json(json!({"detail": "Not Found"}))).into_response()
}

/// This response has no `data`: its fields are at the top.
fn about() -> Response {
    let system = json!({
        "os": "linux", "os_version": "22.04", "arch": "x86_64", "user": "gem", "home_dir": HOME,
        "workspace": HOME, "timezone": "UTC", "occupied_ports": ["8080"],
    });
    let detail = json!({"system": system, "runtime": {"python": [], "nodejs": []}, "utils": []});
    Json(json!({
        "success": true, "message": "Sandbox context", "data": null, "hint": null, "home_dir": HOME,
        "workspace": HOME, "version": "1.0.0", "detail": detail,
    }))
    .into_response()
}
