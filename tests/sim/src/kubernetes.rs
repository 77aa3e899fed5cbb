//! A simulated Kubernetes API server with one node: namespaces, Pods that are created, scheduled, watched, used by exec
//! and deleted, and network policies, faithful to the published API in paths, shapes, errors and the exec protocol.
//! Commands in a Pod really run, in separate namespaces.
//!
//! Deliberately absent: other resources, patching, admission except for required fields, limits of memory and
//! processors, and the details of policies: a Pod whose labels a policy selects for egress simply has no network.

mod exec;
mod pod;
mod routes;
mod status;

use crate::{cell::Cell, http::Server};
use pod::Pod;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Token that the API server accepts.
pub const TOKEN: &str = "kubernetes-simulated-token-0123456789";
/// Its reported version.
pub const VERSION: &str = "v1.35.0";
/// Number of changes stored for a slow watcher.
const CHANGES: usize = 256;

/// A received request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The method and the path.
    pub what: String,
    /// The query string, not decoded.
    pub query: String,
    /// The body; null if there was none.
    pub body: Value,
}

/// A running API server with its node. It stops with its last handle.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    world: Arc<World>,
    server: Arc<Server>,
}

#[derive(Debug)]
struct World {
    state: Mutex<State>,
    changes: broadcast::Sender<(String, Value)>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Cancelled to cut all open execs.
    cut: Mutex<CancellationToken>,
}

#[derive(Debug, Default)]
struct State {
    namespaces: BTreeSet<String>,
    pods: BTreeMap<(String, String), Pod>,
    policies: BTreeMap<(String, String), Value>,
    claims: HashMap<String, PathBuf>,
    missing_images: BTreeSet<String>,
    asked: Vec<Asked>,
    troubles: Vec<(String, u16, String)>,
    version: u64,
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Kubernetes {
    /// Starts one on a free loopback port.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start() -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts one at an address.
    ///
    /// # Errors
    /// When the address is not available.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let state = State {
            namespaces: ["default", "kube-system", "pudu"].map(str::to_owned).into(),
            ..State::default()
        };
        let world = Arc::new(World {
            state: Mutex::new(state),
            changes: broadcast::Sender::new(CHANGES),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            cut: Mutex::default(),
        });
        let server = Server::start(address, routes::router(&world)).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Returns whether the node's containers can be created: this requires root and namespaces of the kernel. Prints a
    /// note if not, and panics if root lacks them.
    pub async fn possible() -> bool {
        if !crate::cell::is_root() {
            println!("skipped: only root can play the node");
            return false;
        }
        let plan = crate::cell::Plan {
            command: ["/bin/sh", "-c", "sleep 60"].map(str::to_owned).into(),
            ..Default::default()
        };
        let possible = Cell::start(&plan).await.is_ok();
        assert!(
            possible || std::env::var_os("PUDU_REQUIRE_SANDBOX").is_none(),
            "there are no namespaces here"
        );
        if !possible {
            println!("skipped: there are no namespaces here");
        }
        possible
    }

    /// Returns the address of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns a kubeconfig for a namespace.
    #[must_use]
    pub fn kubeconfig(&self, namespace: &str) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sim",
            "clusters": [{"name": "sim", "cluster": {"server": self.url()}}],
            "users": [{"name": "sim", "user": {"token": TOKEN}}],
            "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim", "namespace": namespace}}],
        })
        .to_string()
    }

    /// Creates a claim whose volume is a folder of this machine.
    pub fn claim(&self, name: &str, folder: PathBuf) {
        self.state().claims.insert(name.to_owned(), folder);
    }

    /// Makes an image unavailable from now on.
    pub fn without_image(&self, image: &str) {
        self.state().missing_images.insert(image.to_owned());
    }

    /// Returns all requests, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Answers the next request with this prefix of method and path with a status and a message.
    pub fn fail(&self, what: &str, status: u16, message: &str) {
        self.state().troubles.push((what.to_owned(), status, message.to_owned()));
    }

    /// Returns the existing Pods, as in the API.
    #[must_use]
    pub fn pods(&self) -> Vec<Value> {
        self.state().pods.values().map(|pod| pod.shown.clone()).collect()
    }

    /// Returns the existing network policies.
    #[must_use]
    pub fn policies(&self) -> Vec<Value> {
        self.state().policies.values().cloned().collect()
    }

    /// Returns the command lines of a Pod's processes except the first.
    #[must_use]
    pub fn processes(&self, name: &str) -> Vec<String> {
        let state = self.state();
        let pod = state.pods.iter().find(|((_, pod), _)| pod == name).map(|(_, pod)| pod);
        pod.and_then(|pod| pod.pid).map(pod::processes).unwrap_or_default()
    }

    /// Evicts a Pod, like a node without resources: it stays, and has failed.
    pub fn evict(&self, name: &str) {
        self.end_all(name, "Evicted", "The node was low on resource: memory.");
    }

    /// Deletes a Pod like `kubectl delete --force`.
    pub fn remove(&self, name: &str) {
        let keys: Vec<_> = self.state().pods.keys().filter(|(_, pod)| pod == name).cloned().collect();
        for key in keys {
            self.world.forget(&key);
        }
    }

    /// Cuts the connections of all open execs; their processes continue.
    pub fn cut_execs(&self) {
        let next = CancellationToken::new();
        std::mem::replace(&mut *self.world.cut.lock().unwrap_or_else(PoisonError::into_inner), next).cancel();
    }

    fn end_all(&self, name: &str, reason: &str, message: &str) {
        let keys: Vec<_> = self.state().pods.keys().filter(|(_, pod)| pod == name).cloned().collect();
        for key in keys {
            self.world.change(&key, |pod| {
                pod.end();
                pod.shown["status"] = json!({"phase": "Failed", "reason": reason, "message": message});
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.world.state()
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) -> CancellationToken {
        self.cut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes a Pod, and notifies watchers.
    fn change(&self, key: &(String, String), change: impl FnOnce(&mut Pod)) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let Some(pod) = state.pods.get_mut(key) else { return };
        change(pod);
        pod.shown["metadata"]["resourceVersion"] = json!(version.to_string());
        // There may be no watcher.
        self.changes.send(("MODIFIED".to_owned(), pod.shown.clone())).ok();
    }

    /// Removes a Pod; its processes end with it.
    fn forget(&self, key: &(String, String)) {
        let mut state = self.state();
        state.version += 1;
        let Some(mut pod) = state.pods.remove(key) else { return };
        pod.end();
        self.changes.send(("DELETED".to_owned(), pod.shown)).ok();
    }
}
