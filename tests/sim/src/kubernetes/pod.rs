//! A Pod on the simulated node: from its specification to its processes.

use super::{State, World};
use crate::cell::{Cell, Plan};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Minimum time to start a container.
const START: Duration = Duration::from_millis(20);
/// Address of all Pods.
const ADDRESS: &str = "10.1.0.7";

/// A Pod.
#[derive(Debug)]
pub(super) struct Pod {
    /// Its representation in the API.
    pub(super) shown: Value,
    pub(super) pid: Option<u32>,
    pub(super) plan: Arc<Plan>,
    cell: Option<Cell>,
    scratch: Vec<Folder>,
}

/// A folder of an `emptyDir`, removed with its Pod.
#[derive(Debug)]
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

impl Pod {
    pub(super) fn new(shown: Value) -> Self {
        Self { shown, pid: None, plan: Arc::default(), cell: None, scratch: Vec::new() }
    }

    /// Ends its processes.
    pub(super) fn end(&mut self) {
        (self.cell, self.pid) = (None, None);
    }
}

/// Reason why a Pod does not run, from the node or from the scheduler.
enum Held {
    Scheduler(String),
    Node(&'static str, String),
}

/// Starts a Pod, or reports the reason in its status.
pub(super) async fn start(world: Arc<World>, key: (String, String)) {
    tokio::time::sleep(START).await;
    let planned = {
        let state = world.state();
        let Some(pod) = state.pods.get(&key) else { return };
        plan(&state, &key.0, &pod.shown)
    };
    let (plan, scratch) = match planned {
        Ok(planned) => planned,
        Err(held) => return world.change(&key, |pod| pod.shown["status"] = held.status(&pod.shown)),
    };
    let cell = Cell::start(&plan).await;
    let mut fresh = None;
    world.change(&key, |pod| match cell {
        Ok(cell) => {
            pod.pid = Some(cell.pid);
            pod.plan = Arc::new(plan);
            pod.cell = Some(cell);
            pod.scratch = scratch;
            pod.shown["status"] = running(&pod.shown);
        }
        Err(error) => fresh = Some(error.to_string()),
    });
    if let Some(error) = fresh {
        let held = Held::Node("RunContainerError", error);
        world.change(&key, |pod| pod.shown["status"] = held.status(&pod.shown));
    }
}

impl Held {
    fn status(&self, pod: &Value) -> Value {
        match self {
            Self::Scheduler(why) => json!({
                "phase": "Pending", "qosClass": "Burstable",
                "conditions": [condition("PodScheduled", false, "Unschedulable", why)],
            }),
            Self::Node(reason, why) => {
                let state = json!({"waiting": {"reason": reason, "message": why}});
                json!({
                    "phase": "Pending", "qosClass": "Burstable", "hostIP": "10.0.0.1",
                    "conditions": [
                        condition("PodScheduled", true, "", ""),
                        condition("Ready", false, "ContainersNotReady", "containers with unready status: [sandbox]"),
                    ],
                    "containerStatuses": [container(pod, false, &state)],
                })
            }
        }
    }
}

fn running(pod: &Value) -> Value {
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let conditions =
        ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(|kind| condition(kind, true, "", ""));
    json!({
        "phase": "Running", "qosClass": "Burstable", "hostIP": "10.0.0.1", "podIP": ADDRESS,
        "podIPs": [{"ip": ADDRESS}], "startTime": "2026-01-01T00:00:00Z",
        "conditions": conditions,
        "containerStatuses": [container(pod, true, &state)],
    })
}

fn condition(kind: &str, holds: bool, reason: &str, message: &str) -> Value {
    let mut condition = json!({"type": kind, "status": if holds { "True" } else { "False" }});
    if !reason.is_empty() {
        (condition["reason"], condition["message"]) = (json!(reason), json!(message));
    }
    condition
}

fn container(pod: &Value, ready: bool, state: &Value) -> Value {
    let made = &pod["spec"]["containers"][0];
    json!({
        "name": made["name"], "image": made["image"], "imageID": "", "ready": ready, "started": ready,
        "restartCount": 0, "state": state, "lastState": {},
    })
}

/// Returns the specification of a Pod's container.
fn plan(state: &State, namespace: &str, pod: &Value) -> Result<(Plan, Vec<Folder>), Held> {
    let spec = &pod["spec"];
    let made = &spec["containers"][0];
    let (volumes, scratch) = volumes(state, spec)?;
    let image = word(&made["image"]);
    if state.missing_images.contains(image) {
        let why = format!("Back-off pulling image \"{image}\"");
        return Err(Held::Node("ImagePullBackOff", why));
    }
    let mut binds = Vec::new();
    for mount in list(&made["volumeMounts"]) {
        let Some(root) = volumes.get(word(&mount["name"])) else { continue };
        let inner = root.join(word(&mount["subPath"]));
        if std::fs::create_dir_all(&inner).is_err() {
            return Err(Held::Node(
                "CreateContainerConfigError",
                format!("failed to prepare subPath for volumeMount {mount}"),
            ));
        }
        let read_only = mount["readOnly"].as_bool().unwrap_or_default();
        binds.push((inner.to_string_lossy().into_owned(), word(&mount["mountPath"]).to_owned(), read_only));
    }
    let environment =
        list(&made["env"]).iter().map(|one| format!("{}={}", word(&one["name"]), word(&one["value"])));
    let context = |key: &str| match &made["securityContext"][key] {
        Value::Null => spec["securityContext"][key].clone(),
        value => value.clone(),
    };
    let user = context("runAsUser").as_u64().unwrap_or_default();
    let group = context("runAsGroup").as_u64().unwrap_or(user);
    let plan = Plan {
        binds,
        command: list(&made["command"])
            .iter()
            .chain(list(&made["args"]))
            .map(|part| word(part).to_owned())
            .collect(),
        environment: environment.collect(),
        user: format!("{user}:{group}"),
        folder: word(&made["workingDir"]).to_owned(),
        network: !is_cut_off(state, namespace, &pod["metadata"]["labels"]),
        read_only: context("readOnlyRootFilesystem").as_bool().unwrap_or_default(),
        first: true,
        ..Plan::default()
    };
    Ok((plan, scratch))
}

/// Finds a Pod's volumes on this machine.
fn volumes(state: &State, spec: &Value) -> Result<(HashMap<String, PathBuf>, Vec<Folder>), Held> {
    let (mut found, mut scratch) = (HashMap::new(), Vec::new());
    for volume in list(&spec["volumes"]) {
        let path = if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            let missing = || {
                Held::Scheduler(format!(
                    "0/1 nodes are available: persistentvolumeclaim \"{claim}\" not found."
                ))
            };
            state.claims.get(claim).cloned().ok_or_else(missing)?
        } else if let Some(path) = volume["hostPath"]["path"].as_str() {
            let kind = word(&volume["hostPath"]["type"]);
            if kind == "Directory" && !Path::new(path).is_dir() {
                let why = format!(
                    "MountVolume.SetUp failed for volume {}: hostPath type check failed: {path} is not a directory",
                    volume["name"]
                );
                return Err(Held::Node("ContainerCreating", why));
            }
            PathBuf::from(path)
        } else {
            let path = std::env::temp_dir().join(format!("pudu-sim-empty-{:016x}", fastrand::u64(..)));
            let made = std::fs::create_dir(&path).and_then(|()| open_to_all(&path));
            made.map_err(|error| Held::Node("ContainerCreating", error.to_string()))?;
            scratch.push(Folder(path.clone()));
            path
        };
        found.insert(word(&volume["name"]).to_owned(), path);
    }
    Ok((found, scratch))
}

fn open_to_all(path: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o1777))
}

/// Returns whether a policy without rules selects these labels for egress.
fn is_cut_off(state: &State, namespace: &str, labels: &Value) -> bool {
    state.policies.iter().any(|((at, _), policy)| {
        let spec = &policy["spec"];
        let wanted = spec["podSelector"]["matchLabels"].as_object();
        let selected = wanted.is_none_or(|wanted| wanted.iter().all(|(name, value)| labels[name] == *value));
        let egress = list(&spec["policyTypes"]).iter().any(|kind| kind == "Egress");
        at == namespace && selected && egress && list(&spec["egress"]).is_empty()
    })
}

/// Returns the command lines of a container's processes except the first.
pub(super) fn processes(first: u32) -> Vec<String> {
    let space = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let own = space(&first.to_string());
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    let inside = pids.filter(|pid| own.is_some() && *pid != first.to_string() && space(pid) == own);
    let line = |pid: String| std::fs::read(format!("/proc/{pid}/cmdline")).ok();
    let words = |line: Vec<u8>| String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    inside.filter_map(line).map(words).filter(|line| !line.is_empty()).collect()
}

pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
