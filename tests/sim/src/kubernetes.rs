//! A simulated Kubernetes API server with one node: namespaces, Pods that are made, scheduled, watched, entered by exec
//! and taken away, and network policies, true to the published API in paths, shapes, refusals and the protocol of
//! execs. What runs in a Pod really runs, in namespaces of its own.
//!
//! Deliberately absent: other resources, patching, admission but for the fields that a Pod must have, limits of memory
//! and processors, and enforcing policies: a Pod whose labels a policy selects for egress simply has no network.

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

/// The token that the API server takes.
pub const TOKEN: &str = "kubernetes-simulated-token-0123456789";
/// The version that it says it has.
pub const VERSION: &str = "v1.35.0";
/// So many changes are kept for a watcher that is slow.
const CHANGES: usize = 256;

/// A request that came.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The method and the path.
    pub what: String,
    /// The query string, decoded by nobody.
    pub query: String,
    /// The body; null if there was none.
    pub body: Value,
}

/// A running API server with its node. It ends with its last handle.
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
    /// Cancelled to cut all execs that are open.
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
    /// Starts one on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts one at an address.
    ///
    /// # Errors
    /// When it cannot be had.
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

    /// Whether the node's containers can be made: it has to be root's, and the kernel has to give namespaces. Says so
    /// where not; panics where root has to have them and has not.
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

    /// The address of the API server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// A kubeconfig that leads to it, for a namespace.
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

    /// Makes a claim whose volume is a folder of this machine.
    pub fn claim(&self, name: &str, folder: PathBuf) {
        self.state().claims.insert(name.to_owned(), folder);
    }

    /// From now on an image cannot be had.
    pub fn without_image(&self, image: &str) {
        self.state().missing_images.insert(image.to_owned());
    }

    /// Everything that was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Answers the next request whose method and path begin so with a status and a message.
    pub fn fail(&self, what: &str, status: u16, message: &str) {
        self.state().troubles.push((what.to_owned(), status, message.to_owned()));
    }

    /// The Pods that there are, as the API shows them.
    #[must_use]
    pub fn pods(&self) -> Vec<Value> {
        self.state().pods.values().map(|pod| pod.shown.clone()).collect()
    }

    /// The network policies that there are.
    #[must_use]
    pub fn policies(&self) -> Vec<Value> {
        self.state().policies.values().cloned().collect()
    }

    /// The processes that run in a Pod besides its first: their command lines.
    #[must_use]
    pub fn processes(&self, name: &str) -> Vec<String> {
        let state = self.state();
        let pod = state.pods.iter().find(|((_, pod), _)| pod == name).map(|(_, pod)| pod);
        pod.and_then(|pod| pod.pid).map(pod::processes).unwrap_or_default()
    }

    /// Evicts a Pod, as a node does that runs out of something: it stays, and has failed.
    pub fn evict(&self, name: &str) {
        self.end_all(name, "Evicted", "The node was low on resource: memory.");
    }

    /// Takes a Pod away as `kubectl delete --force` does.
    pub fn remove(&self, name: &str) {
        let keys: Vec<_> = self.state().pods.keys().filter(|(_, pod)| pod == name).cloned().collect();
        for key in keys {
            self.world.forget(&key);
        }
    }

    /// Cuts the connections of all execs that are open; what they started goes on.
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

    /// Changes a Pod, and tells who watches.
    fn change(&self, key: &(String, String), change: impl FnOnce(&mut Pod)) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let Some(pod) = state.pods.get_mut(key) else { return };
        change(pod);
        pod.shown["metadata"]["resourceVersion"] = json!(version.to_string());
        // Nobody has to watch.
        self.changes.send(("MODIFIED".to_owned(), pod.shown.clone())).ok();
    }

    /// Takes a Pod out of the book; its processes end with it.
    fn forget(&self, key: &(String, String)) {
        let mut state = self.state();
        state.version += 1;
        let Some(mut pod) = state.pods.remove(key) else { return };
        pod.end();
        self.changes.send(("DELETED".to_owned(), pod.shown)).ok();
    }
}
