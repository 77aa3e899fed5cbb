//! Containers: created, started, inspected, listed, stopped, removed.

use super::{Call, World, id, images, locked, refuse};
use crate::{
    aio::{Aio, Place},
    cell::{Cell, Plan},
};
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::{Arc, Mutex},
};

/// Port of an image that serves the all-in-one API.
const PORT: &str = "8080/tcp";

/// A container in any state.
pub(super) struct Container {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) body: Value,
    pub(super) plan: Arc<Plan>,
    cell: Mutex<Option<Cell>>,
    /// PID of the first process on this machine; `None` if it is not running.
    pub(super) pid: Mutex<Option<u32>>,
    api: Mutex<Option<Aio>>,
    /// Held while the container is started or stopped.
    busy: tokio::sync::Mutex<()>,
    ended: Mutex<bool>,
}

impl Container {
    pub(super) fn runs(&self) -> bool {
        locked(&self.cell).as_mut().is_some_and(Cell::runs)
    }

    pub(super) fn processes(&self) -> Vec<String> {
        let Some(pid) = *locked(&self.pid) else { return Vec::new() };
        let Ok(own) = std::fs::read_link(format!("/proc/{pid}/ns/pid")) else { return Vec::new() };
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let here = |entry: &std::fs::DirEntry| {
            std::fs::read_link(entry.path().join("ns/pid")).is_ok_and(|namespace| namespace == own)
        };
        let words = |entry: std::fs::DirEntry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            line.replace('\0', " ").trim().to_owned()
        };
        all.flatten().filter(here).map(words).filter(|line| !line.is_empty()).collect()
    }

    pub(super) fn served(&self) -> Option<Aio> {
        locked(&self.api).clone()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.body["Labels"][name].as_str()
    }

    fn state(&self) -> Value {
        let running = self.runs();
        let status = match (running, *locked(&self.ended)) {
            (true, _) => "running",
            (false, true) => "exited",
            (false, false) => "created",
        };
        json!({
            "Status": status, "Running": running, "Paused": false, "Restarting": false, "OOMKilled": false,
            "Dead": false, "Pid": locked(&self.pid).unwrap_or_default(), "ExitCode": 0, "Error": "",
            "StartedAt": "2026-01-01T00:00:00Z", "FinishedAt": "0001-01-01T00:00:00Z",
        })
    }

    fn ports(&self) -> Value {
        match &*locked(&self.api) {
            Some(api) => json!({PORT: [{"HostIp": "127.0.0.1", "HostPort": api.port().to_string()}]}),
            None => json!({}),
        }
    }
}

/// Finds a container by its name, its ID, or a prefix of the ID.
pub(super) fn find(world: &World, name: &str) -> Result<Arc<Container>, Box<Response>> {
    let containers = locked(&world.containers);
    let by_id = || containers.values().find(|one| name.len() >= 4 && one.id.starts_with(name));
    let found = containers.get(name).or_else(by_id).cloned();
    found.ok_or_else(|| Box::new(refuse(StatusCode::NOT_FOUND, format!("No such container: {name}"))))
}

fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(super) fn create(call: &Call) -> Response {
    let image = call.text("Image");
    if !images::has(&call.world, image) {
        return refuse(StatusCode::NOT_FOUND, format!("No such image: {}", images::tagged(image)));
    }
    let plan = match plan(call) {
        Ok(plan) => plan,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, message),
    };
    let id = id();
    let name = call.query.get("name").cloned().unwrap_or_else(|| format!("sim_{}", id.split_at(8).0));
    let mut containers = locked(&call.world.containers);
    if let Some(other) = containers.get(&name) {
        let text = format!(
            "Conflict. The container name \"/{name}\" is already in use by container \"{}\". You have to remove (or \
             rename) that container to be able to reuse that name.",
            other.id
        );
        return refuse(StatusCode::CONFLICT, text);
    }
    let container = Container {
        id: id.clone(),
        name: name.clone(),
        body: call.body.clone(),
        plan: Arc::new(plan),
        cell: Mutex::default(),
        pid: Mutex::default(),
        api: Mutex::default(),
        busy: tokio::sync::Mutex::default(),
        ended: Mutex::default(),
    };
    containers.insert(name, Arc::new(container));
    (StatusCode::CREATED, Json(json!({"Id": id, "Warnings": []}))).into_response()
}

/// Converts the request to a cell's specification; refuses what the engine would refuse.
fn plan(call: &Call) -> Result<Plan, String> {
    let (body, host) = (&call.body, &call.body["HostConfig"]);
    let mut binds = Vec::new();
    for mount in host["Mounts"].as_array().into_iter().flatten() {
        let (source, target) = (mount["Source"].as_str(), mount["Target"].as_str());
        let (Some("bind"), Some(source), Some(target)) = (mount["Type"].as_str(), source, target) else {
            return Err("invalid mount config: only binds are simulated".to_owned());
        };
        if !Path::new(source).exists() {
            return Err(format!(
                "invalid mount config for type \"bind\": bind source path does not exist: {source}"
            ));
        }
        binds.push((source.to_owned(), target.to_owned(), mount["ReadOnly"].as_bool().unwrap_or_default()));
    }
    for bind in words(&host["Binds"]) {
        let parts: Vec<&str> = bind.split(':').collect();
        if let [source, target, rest @ ..] = parts.as_slice() {
            binds.push(((*source).to_owned(), (*target).to_owned(), rest.contains(&"ro")));
        }
    }
    let serves = call.world.options.serving.contains(&images::tagged(call.text("Image")));
    let mut command: Vec<String> =
        words(&body["Entrypoint"]).into_iter().chain(words(&body["Cmd"])).collect();
    if serves || command.is_empty() {
        command = ["/bin/sh", "-c", "while :; do sleep 86400; done"].map(str::to_owned).into();
    }
    let dropped = words(&host["CapDrop"]).iter().any(|right| right == "ALL");
    Ok(Plan {
        first: false,
        binds,
        command,
        environment: words(&body["Env"]),
        user: call.text("User").to_owned(),
        folder: call.text("WorkingDir").to_owned(),
        network: host["NetworkMode"] != "none",
        read_only: host["ReadonlyRootfs"].as_bool().unwrap_or_default(),
        capable: !dropped,
    })
}

pub(super) async fn start(world: &Arc<World>, name: &str) -> Response {
    let container = match find(world, name) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    let _alone = container.busy.lock().await;
    if container.runs() {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let network = container.body["HostConfig"]["NetworkMode"].as_str().unwrap_or_default();
    if !matches!(network, "" | "default" | "bridge" | "host" | "none")
        && !locked(&world.networks).contains_key(network)
    {
        return refuse(StatusCode::NOT_FOUND, format!("network {network} not found"));
    }
    let cell = match Cell::start(&container.plan).await {
        Ok(cell) => cell,
        Err(error) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let pid = cell.pid;
    *locked(&container.pid) = Some(pid);
    *locked(&container.cell) = Some(cell);
    if let Err(response) = publish(world, &container, pid).await {
        end(world, &container).await;
        return *response;
    }
    StatusCode::NO_CONTENT.into_response()
}

/// Publishes the image's API on the requested port of this machine.
async fn publish(world: &World, container: &Container, pid: u32) -> Result<(), Box<Response>> {
    let image = images::tagged(container.body["Image"].as_str().unwrap_or_default());
    if !world.options.serving.contains(&image) {
        return Ok(());
    }
    let wanted =
        container.body["HostConfig"]["PortBindings"][PORT][0]["HostPort"].as_str().unwrap_or_default();
    let port: u16 = wanted.parse().unwrap_or_default();
    let place = Place::Cell(pid, container.plan.clone());
    match Aio::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), place).await {
        Ok(api) => {
            *locked(&container.api) = Some(api);
            Ok(())
        }
        Err(_) => {
            let text = format!(
                "driver failed programming external connectivity on endpoint {} ({}): Bind for 127.0.0.1:{port} \
                 failed: port is already allocated",
                container.name, container.id
            );
            Err(Box::new(refuse(StatusCode::INTERNAL_SERVER_ERROR, text)))
        }
    }
}

pub(super) fn inspect(world: &World, name: &str) -> Response {
    let container = match find(world, name) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    let body = &container.body;
    Json(json!({
        "Id": container.id, "Name": format!("/{}", container.name), "Created": "2026-01-01T00:00:00Z",
        "Path": container.plan.command.first(), "Args": container.plan.command.get(1..), "State": container.state(),
        "Image": format!("sha256:{:064x}", 7), "RestartCount": 0, "Driver": "overlay2", "Platform": "linux",
        "HostConfig": body["HostConfig"], "Mounts": [], "Config": {
            "Image": body["Image"], "Labels": body["Labels"], "Env": body["Env"], "Cmd": body["Cmd"],
            "Entrypoint": body["Entrypoint"], "User": body["User"], "WorkingDir": body["WorkingDir"], "Tty": false,
        },
        "NetworkSettings": {"Ports": container.ports(), "Networks": {}},
    }))
    .into_response()
}

pub(super) fn list(call: &Call) -> Response {
    let filters: Value =
        call.query.get("filters").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // A filter is a list of values, or an object with them as keys.
    let wanted = |name: &str| -> Vec<String> {
        match &filters[name] {
            Value::Object(map) => map.keys().cloned().collect(),
            list => words(list),
        }
    };
    let (labels, states) = (wanted("label"), wanted("status"));
    let all: Vec<Arc<Container>> = locked(&call.world.containers).values().cloned().collect();
    let fits = |container: &&Arc<Container>| {
        let state = container.state();
        let shown = call.flag("all") || !states.is_empty() || container.runs();
        let has = |wanted: &String| match wanted.split_once('=') {
            Some((name, value)) => container.label(name) == Some(value),
            None => container.label(wanted).is_some(),
        };
        shown
            && labels.iter().all(has)
            && (states.is_empty() || states.iter().any(|wanted| state["Status"] == wanted.as_str()))
    };
    let listed: BTreeMap<String, Value> = all
        .iter()
        .filter(fits)
        .map(|container| {
            let state = container.state();
            let entry = json!({
                "Id": container.id, "Names": [format!("/{}", container.name)], "Image": container.body["Image"],
                "ImageID": format!("sha256:{:064x}", 7), "Command": container.plan.command.join(" "),
                "Created": 1_767_225_600, "Ports": [], "Labels": container.body["Labels"], "State": state["Status"],
                "Status": "Up", "HostConfig": {"NetworkMode": "default"}, "NetworkSettings": {"Networks": {}},
                "Mounts": [],
            });
            (container.name.clone(), entry)
        })
        .collect();
    Json(listed.into_values().collect::<Vec<_>>()).into_response()
}

pub(super) async fn kill(world: &Arc<World>, name: &str) -> Response {
    let container = match find(world, name) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    if !container.runs() {
        return refuse(
            StatusCode::CONFLICT,
            format!("cannot kill container: {name}: container is not running"),
        );
    }
    end(world, &container).await;
    StatusCode::NO_CONTENT.into_response()
}

/// Stops a container, and removes it if requested.
pub(super) async fn end(world: &World, container: &Container) {
    let cell = locked(&container.cell).take();
    if let Some(mut cell) = cell {
        cell.end().await;
    }
    *locked(&container.pid) = None;
    *locked(&container.ended) = true;
    locked(&container.api).take();
    if container.body["HostConfig"]["AutoRemove"] == true {
        locked(&world.containers).remove(&container.name);
    }
}

pub(super) async fn remove(call: &Call, name: &str) -> Response {
    let container = match find(&call.world, name) {
        Ok(container) => container,
        Err(response) => return *response,
    };
    if container.runs() && !call.flag("force") {
        let text = format!(
            "cannot remove container \"/{name}\": container is running: stop the container before removing or force \
             remove"
        );
        return refuse(StatusCode::CONFLICT, text);
    }
    end(&call.world, &container).await;
    locked(&call.world.containers).remove(&container.name);
    StatusCode::NO_CONTENT.into_response()
}
