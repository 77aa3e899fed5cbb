//! A simulated provisioner: DeerFlow's REST service in front of a cluster, faithful in paths, shapes, errors and
//! idempotency. Each sandbox is a real container with a simulated all-in-one API at its address.
//!
//! Deliberately absent: the cluster itself. `/mnt/user-data` is a folder of this machine, as with `THREADS_HOST_PATH`.

use crate::{
    aio::{Aio, Place},
    cell::{Cell, Plan},
    http::Server,
};
use axum::{
    Json, Router,
    body::to_bytes,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// Key that it accepts.
pub const KEY: &str = "provisioner-simulated-key-0123456789";
/// The user of the image.
const USER: u32 = 1000;
/// Maximum size of a request, in bytes.
const BODY: usize = 1 << 20;
/// Number of readiness checks that fail while a sandbox starts.
const STARTING: usize = 2;

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The method and the path.
    pub what: String,
    /// Key in the request.
    pub key: Option<String>,
    /// The body; null if there was none.
    pub body: Value,
}

/// A running provisioner. It stops with its last handle, together with its sandboxes.
#[derive(Clone, Debug)]
pub struct Provisioner {
    world: Arc<World>,
    server: Arc<Server>,
}

#[derive(Debug)]
struct World {
    state: Mutex<Book>,
    /// The folder that holds `users/…/threads/…`.
    home: PathBuf,
    /// Source of `/mnt/skills`.
    skills: Option<PathBuf>,
    /// Serializes the creation of sandboxes.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Book {
    boxes: BTreeMap<String, Sandbox>,
    asked: Vec<Asked>,
    troubles: Vec<(String, u16, String)>,
}

#[derive(Debug)]
struct Sandbox {
    thread: String,
    status: String,
    url: String,
    aio: Option<Aio>,
    _cell: Option<Cell>,
}

impl Provisioner {
    /// Starts one on a free loopback port, with threads' folders below a home, and skills.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start(home: PathBuf, skills: Option<PathBuf>) -> io::Result<Self> {
        let world =
            Arc::new(World { state: Mutex::default(), home, skills, making: tokio::sync::Mutex::default() });
        let router = Router::new().fallback(serve).with_state(Arc::downgrade(&world));
        let server = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), router).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns all requests, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.world.book().asked.clone()
    }

    /// Answers the next request with this prefix of method and path with this status and body; 0 closes the connection.
    pub fn fail(&self, what: &str, status: u16, body: &str) {
        self.world.book().troubles.push((what.to_owned(), status, body.to_owned()));
    }

    /// Returns the existing sandboxes: names, threads, and states.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<(String, String, String)> {
        let book = self.world.book();
        book.boxes.iter().map(|(id, one)| (id.clone(), one.thread.clone(), one.status.clone())).collect()
    }

    /// Adds a sandbox of another client.
    pub fn add_foreign(&self, id: &str) {
        let one = Sandbox {
            thread: "somebody-elses".to_owned(),
            status: "Running".to_owned(),
            url: "http://127.0.0.1:9".to_owned(),
            aio: None,
            _cell: None,
        };
        self.world.book().boxes.insert(id.to_owned(), one);
    }

    /// Ends a sandbox's container and sets its status; the sandbox stays registered.
    pub fn end(&self, id: &str, status: &str) {
        if let Some(one) = self.world.book().boxes.get_mut(id) {
            one.status = status.to_owned();
            one.aio.iter().for_each(Aio::fall_silent);
            one._cell = None;
        }
    }

    /// Returns the API of a sandbox.
    #[must_use]
    pub fn aio(&self, id: &str) -> Option<Aio> {
        self.world.book().boxes.get(id).and_then(|one| one.aio.clone())
    }
}

impl World {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(State(world): State<Weak<World>>, request: Request) -> Response {
    let Some(world) = world.upgrade() else { return crate::http::cut() };
    let what = format!("{} {}", request.method(), request.uri().path());
    let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
    let body = to_bytes(request.into_body(), BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let trouble = {
        let mut book = world.book();
        book.asked.push(Asked { what: what.clone(), key: key.clone(), body: body.clone() });
        let at = book.troubles.iter().position(|(begin, ..)| what.starts_with(begin.as_str()));
        at.map(|at| book.troubles.remove(at))
    };
    match trouble {
        Some((_, 0, _)) => return crate::http::cut(),
        Some((_, status, body)) => {
            return (StatusCode::from_u16(status).unwrap_or_default(), body).into_response();
        }
        None => {}
    }
    if what == "GET /health" {
        return Json(json!({"status": "ok"})).into_response();
    }
    if key.as_deref() != Some(KEY) {
        return detail(401, &json!("Invalid or missing API key"));
    }
    let (method, path) = what.split_once(' ').unwrap_or_default();
    match (method, path.trim_start_matches("/api/sandboxes").trim_start_matches('/')) {
        _ if !path.starts_with("/api/sandboxes") => detail(404, &json!("Not Found")),
        ("POST", "") => make(&world, &body).await,
        ("GET", "") => {
            let book = world.book();
            let all: Vec<Value> = book.boxes.iter().map(|(id, one)| shown(id, one)).collect();
            Json(json!({"count": all.len(), "sandboxes": all})).into_response()
        }
        ("GET", id) => match world.book().boxes.get(id) {
            Some(one) => Json(shown(id, one)).into_response(),
            None => detail(404, &json!(format!("Sandbox '{id}' not found"))),
        },
        ("DELETE", id) => {
            world.book().boxes.remove(id);
            Json(json!({"ok": true, "sandbox_id": id})).into_response()
        }
        _ => detail(405, &json!("Method Not Allowed")),
    }
}

fn shown(id: &str, one: &Sandbox) -> Value {
    json!({"sandbox_id": id, "sandbox_url": one.url, "status": one.status})
}

fn detail(status: u16, detail: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap_or_default(), Json(json!({"detail": detail}))).into_response()
}

async fn make(world: &World, body: &Value) -> Response {
    for field in ["sandbox_id", "thread_id"] {
        if !body[field].is_string() {
            return detail(
                422,
                &json!([{"loc": ["body", field], "msg": "Field required", "type": "missing"}]),
            );
        }
    }
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (id, thread) = (text("sandbox_id"), text("thread_id"));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if thread.is_empty() || !thread.chars().all(plain) {
        let wrong = "String should match pattern '^[A-Za-z0-9_\\-]+$'";
        return detail(
            422,
            &json!([{"loc": ["body", "thread_id"], "msg": wrong, "type": "string_pattern_mismatch"}]),
        );
    }
    let _one = world.making.lock().await;
    if let Some(one) = world.book().boxes.get(&id) {
        return Json(shown(&id, one)).into_response();
    }
    match start(world, &thread, body).await {
        Ok(one) => {
            // The Pod was just created; the next request finds it running.
            let mut answer = shown(&id, &one);
            answer["status"] = json!("Pending");
            world.book().boxes.insert(id, one);
            Json(answer).into_response()
        }
        Err(error) => detail(500, &json!(format!("Pod creation failed: {error}"))),
    }
}

async fn start(world: &World, thread: &str, body: &Value) -> io::Result<Sandbox> {
    let user = body["user_id"].as_str().unwrap_or("default");
    let folder = world.home.join("users").join(user).join("threads").join(thread).join("user-data");
    if !folder.is_dir() {
        std::fs::create_dir_all(&folder)?;
        // Without root, the test's user replaces the image's.
        std::os::unix::fs::chown(&folder, Some(USER), Some(USER)).ok();
    }
    let bind = |from: &Path, to: &str, read_only: bool| {
        (from.to_string_lossy().into_owned(), to.to_owned(), read_only)
    };
    let mut binds = vec![bind(&folder, "/mnt/user-data", false)];
    binds.extend(world.skills.iter().map(|skills| bind(skills, "/mnt/skills", true)));
    for mount in body["extra_mounts"].as_array().into_iter().flatten() {
        let word = |field: &str| mount[field].as_str().unwrap_or_default();
        binds.push(bind(Path::new(word("host_path")), word("container_path"), mount["read_only"] == true));
    }
    let plan = Plan {
        binds,
        command: ["/bin/sh", "-c", "while :; do sleep 2000000 & wait $!; done"].map(str::to_owned).into(),
        network: true,
        first: true,
        ..Plan::default()
    };
    let cell = Cell::start(&plan).await?;
    let place = Place::Cell(cell.pid, Arc::new(plan));
    let aio = Aio::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), place).await?;
    for _ in 0..STARTING {
        aio.fail("/v1/sandbox", 503, "");
    }
    let url = aio.url();
    let status = "Running".to_owned();
    Ok(Sandbox { thread: thread.to_owned(), status, url, aio: Some(aio), _cell: Some(cell) })
}
