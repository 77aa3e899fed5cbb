//! Sandboxes as Pods in a cluster: one per thread, from any image with a shell. Commands use exec through the API
//! server, so Pods need not be reachable over the network. The thread's folder is on the volume with pudu's home, so
//! files are accessed on this machine.
//!
//! Deliberately absent: Services, port forwarding, operators and watches. A single small role is enough.

mod connect;
mod exec;
mod pod;
mod shell;
mod stage;
mod trouble;

use crate::{BoxId, ContainerEngine, Order, Pair};
use connect::Cluster;
use exec::ExecTarget;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use pudu_base::{BoxFuture, Network, Sandbox, SandboxError};
use pudu_sandbox::{CommandLimits, Mount};
use shell::PodShell;
use stage::PodStage;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::OnceCell, time::Instant};
use tokio_util::task::TaskTracker;
use trouble::ClusterError;

/// Timeout for the start of a Pod, including an image pull.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Interval between checks of a starting Pod.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Timeout for the deletion of a Pod.
const DELETE_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of one of our short scripts.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Script that checks the prerequisites of commands.
const PROBE: &str = "\
    [ -d /mnt/user-data/workspace ] || exit 41; \
    [ -w /mnt/user-data/workspace ] || exit 42; \
    for tool in grep head tr; do command -v $tool >/dev/null || exit 43; done";

/// Settings of Pods.
#[derive(Clone, Debug)]
pub struct PodSettings {
    /// Path of the kubeconfig. The default is `KUBECONFIG`, `~/.kube/config` or the Pod's service account.
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig. The default is the current one.
    pub context: Option<String>,
    /// Namespace. The default is the context's.
    pub namespace: Option<String>,
    /// Prefix of the Pods' names.
    pub prefix: String,
    /// Owner of the Pods, which is unique and stable across restarts.
    pub owner: String,
    /// pudu's home on this machine.
    pub home: PathBuf,
    /// Volume in the cluster that contains the home.
    pub volume: Volume,
    /// Image, which must have a shell, `grep`, `head` and `tr`.
    pub image: String,
    /// Name of the Kubernetes Secret for pulling the image.
    pub pull_secret: Option<String>,
    /// User and group of commands.
    pub user: (u32, u32),
    /// Network access of commands.
    pub network: Network,
    /// Environment variables for commands, in addition to the defaults.
    pub environment: Vec<(String, String)>,
    /// Folders of the nodes that are mounted in all sandboxes.
    pub mounts: Vec<Mount>,
    /// Resource limits of a command.
    pub limits: CommandLimits,
}

/// Volume that contains pudu's home in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A claim whose root is the home.
    Claim(String),
    /// A folder on every node that is the home.
    Host(String),
}

impl Volume {
    /// Returns the volume's part of the key that identifies the owner. It must never change, because running Pods would
    /// be orphaned.
    fn key(&self) -> String {
        let (kind, name) = match self {
            Self::Claim(name) => ("Claim", name),
            Self::Host(path) => ("Host", path),
        };
        let mut key = format!("{kind}(\"");
        for c in name.chars() {
            match c {
                '"' | '\\' => key.extend(['\\', c]),
                '\n' => key.push_str("\\n"),
                '\r' => key.push_str("\\r"),
                '\t' => key.push_str("\\t"),
                c => key.push(c),
            }
        }
        key.push_str("\")");
        key
    }
}

/// Returns the owner of a home's Pods. The same volume and path identify the same home, regardless of where its daemon
/// runs.
#[must_use]
pub fn owner(volume: &Volume, home: &Path) -> String {
    crate::engine::fingerprint(&format!("{} {}", volume.key(), home.display()))
}

/// An engine that creates Pods.
#[derive(Clone)]
pub struct KubernetesEngine(Arc<Inner>);

struct Inner {
    settings: PodSettings,
    cluster: OnceCell<Cluster>,
    /// Set once the network policy exists.
    policy: OnceCell<()>,
    /// Tasks that kill abandoned commands.
    tasks: TaskTracker,
    /// Serializes the replacement of lost Pods.
    again: tokio::sync::Mutex<()>,
}

impl KubernetesEngine {
    /// Creates an engine. The cluster is not contacted until the first Pod is needed.
    #[must_use]
    pub fn new(settings: PodSettings) -> Self {
        Self(Arc::new(Inner {
            settings,
            cluster: OnceCell::new(),
            policy: OnceCell::new(),
            tasks: TaskTracker::new(),
            again: tokio::sync::Mutex::default(),
        }))
    }

    /// Returns the cluster's address and version.
    ///
    /// # Errors
    /// When no cluster is configured, or the request fails.
    pub async fn version(&self) -> Result<String, SandboxError> {
        let cluster = self.cluster().await?;
        Ok(cluster.version().await?)
    }

    async fn cluster(&self) -> Result<&Cluster, ClusterError> {
        self.0.cluster.get_or_try_init(|| connect::connect(&self.0.settings)).await
    }

    pub(crate) fn limits(&self) -> CommandLimits {
        self.0.settings.limits
    }

    pub(crate) fn tasks(&self) -> TaskTracker {
        self.0.tasks.clone()
    }

    /// Recreates a thread's Pod if it is gone. Returns whether it was.
    pub(crate) async fn again(&self, order: &Order) -> Result<bool, ClusterError> {
        let _one = self.0.again.lock().await;
        if self.runs(&order.id).await? {
            return Ok(false);
        }
        tracing::warn!(thread = order.folder.thread.as_str(), "recreating lost Pod");
        self.ensure(order).await?;
        Ok(true)
    }

    /// Returns whether a Pod was killed for exceeding its memory limit.
    pub(crate) async fn out_of_memory(&self, id: &BoxId) -> bool {
        self.find(id).await.ok().flatten().is_some_and(|pod| stage::out_of_memory(&pod))
    }

    async fn find(&self, id: &BoxId) -> Result<Option<Pod>, ClusterError> {
        let cluster = self.cluster().await?;
        connect::with_timeout(cluster.pods.get_opt(&pod::name(&self.0.settings, id))).await
    }

    async fn runs(&self, id: &BoxId) -> Result<bool, ClusterError> {
        Ok(self.find(id).await?.is_some_and(|pod| matches!(stage::pod_stage(&pod), PodStage::Running)))
    }

    /// Ensures that the Pod exists and is running.
    async fn ensure(&self, order: &Order) -> Result<(), ClusterError> {
        self.guard().await?;
        let wanted = pod::pod(&self.0.settings, order).map_err(ClusterError::Refused)?;
        let deadline = Instant::now() + START_TIMEOUT;
        let cluster = self.cluster().await?;
        loop {
            let why = match self.find(&order.id).await? {
                None => {
                    match connect::with_timeout(cluster.pods.create(&PostParams::default(), &wanted)).await {
                        // Another call created it concurrently.
                        Ok(_) | Err(ClusterError::Exists(_)) => "it was just created".to_owned(),
                        Err(trouble) => return Err(trouble),
                    }
                }
                Some(found) => {
                    self.is_ours(&found)?;
                    match stage::pod_stage(&found) {
                        PodStage::Running if spec_fingerprint(&found) == spec_fingerprint(&wanted) => {
                            return Ok(());
                        }
                        PodStage::Waiting(why) if spec_fingerprint(&found) == spec_fingerprint(&wanted) => {
                            why
                        }
                        PodStage::Failed(why)
                            if spec_fingerprint(&found) == spec_fingerprint(&wanted)
                                && !stage::is_over(&found) =>
                        {
                            self.take_away(&order.id).await.ok();
                            return Err(ClusterError::Refused(why));
                        }
                        PodStage::Leaving => "the previous Pod is still being deleted".to_owned(),
                        // The Pod has another specification or can no longer run.
                        _ => {
                            self.take_away(&order.id).await?;
                            continue;
                        }
                    }
                }
            };
            if Instant::now() >= deadline {
                let name = wanted.name_any();
                return Err(ClusterError::Refused(format!(
                    "the Pod {name} is not running after {} s: {why}; see `kubectl describe pod {name}`",
                    START_TIMEOUT.as_secs()
                )));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Creates the network policy, once.
    async fn guard(&self) -> Result<(), ClusterError> {
        let put = || async {
            let policy = pod::policy(self.0.settings.network).map_err(ClusterError::Refused)?;
            let cluster = self.cluster().await?;
            match connect::with_timeout(cluster.policies.create(&PostParams::default(), &policy)).await {
                Ok(_) | Err(ClusterError::Exists(_)) => Ok(()),
                Err(trouble) => Err(trouble),
            }
        };
        self.0.policy.get_or_try_init(put).await.map(drop)
    }

    fn is_ours(&self, pod: &Pod) -> Result<(), ClusterError> {
        if pod.labels().get(pod::OWNER) == Some(&self.0.settings.owner) {
            return Ok(());
        }
        Err(ClusterError::Refused(format!(
            "the Pod {} belongs to another owner; give this pudu its own namespace or \
             sandbox.container_prefix",
            pod.name_any()
        )))
    }

    /// Deletes a Pod and waits until it is gone.
    async fn take_away(&self, id: &BoxId) -> Result<(), ClusterError> {
        let deadline = Instant::now() + DELETE_TIMEOUT;
        self.delete(id).await?;
        while self.find(id).await?.is_some() {
            if Instant::now() >= deadline {
                return Err(ClusterError::timed_out("a Pod was not deleted"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn delete(&self, id: &BoxId) -> Result<(), ClusterError> {
        let cluster = self.cluster().await?;
        let name = pod::name(&self.0.settings, id);
        match connect::with_timeout(cluster.pods.delete(&name, &DeleteParams::default())).await {
            Ok(_) | Err(ClusterError::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }

    async fn open(&self, order: &Order) -> Result<PodShell, ClusterError> {
        self.ensure(order).await?;
        let cluster = self.cluster().await?;
        let pod = pod::name(&self.0.settings, &order.id);
        let target = ExecTarget { pods: cluster.pods.clone(), pod, container: pod::CONTAINER };
        let probed = target.call(PROBE, &[], 4096, PROBE_TIMEOUT).await?;
        self.verdict(probed.code)?;
        let shell = PodShell::new(self.clone(), order.clone(), target);
        shell.clear().await?;
        Ok(shell)
    }

    /// Maps the exit code of [`PROBE`] to an error.
    fn verdict(&self, code: i32) -> Result<(), ClusterError> {
        let settings = &self.0.settings;
        let home = settings.home.display();
        let volume = match &settings.volume {
            Volume::Claim(claim) => format!("the claim {claim} (sandbox.kubernetes.home)"),
            Volume::Host(path) => format!("the nodes' folder {path} (sandbox.kubernetes.home)"),
        };
        match code {
            0 => Ok(()),
            41 => Err(ClusterError::Refused(format!(
                "{volume} does not contain pudu's home {home}: files created here are missing there"
            ))),
            42 => Err(ClusterError::Refused(format!(
                "user {} cannot write to the thread's folder on {volume}; run pudu as the user in \
                 sandbox.kubernetes.run_as_user",
                settings.user.0
            ))),
            43 => Err(ClusterError::Refused(format!(
                "the image {} has no grep, head or tr; set sandbox.image to one with these programs",
                settings.image
            ))),
            code => Err(ClusterError::Refused(format!(
                "a shell in the image {} fails with exit code {code}; set sandbox.image to one with a shell",
                settings.image
            ))),
        }
    }
}

/// Returns the fingerprint of a Pod's specification.
fn spec_fingerprint(pod: &Pod) -> Option<&String> {
    pod.annotations().get(pod::MADE_TO)
}

impl ContainerEngine for KubernetesEngine {
    fn start<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async move {
            let shell = Arc::new(self.open(order).await?);
            Ok(Arc::new(Pair::new(shell, order.files.clone())) as Arc<dyn Sandbox>)
        })
    }

    fn alive<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.runs(id).await.unwrap_or(false) })
    }

    fn stop<'a>(&'a self, id: &'a BoxId) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move { Ok(self.delete(id).await?) })
    }

    fn running(&self) -> BoxFuture<'_, Result<Vec<BoxId>, SandboxError>> {
        Box::pin(async move {
            let ours = ListParams::default().labels(&format!("{}={}", pod::OWNER, self.0.settings.owner));
            let cluster = self.cluster().await?;
            let pods = connect::with_timeout(cluster.pods.list(&ours)).await?;
            let running = pods
                .iter()
                .filter(|pod| matches!(stage::pod_stage(pod), PodStage::Running | PodStage::Waiting(_)));
            Ok(running.filter_map(|pod| pod.labels().get(pod::SANDBOX)).map(BoxId::new).collect())
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.0.tasks.close();
            self.0.tasks.wait().await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Running Pods have these labels. With another owner, they would be left running forever.
    #[test]
    fn a_home_keeps_its_owner() {
        let cases = [
            (Volume::Claim("pudu-home".into()), "/var/lib/pudu", "1e099423b1466c88"),
            (Volume::Host("/srv/pudu".into()), "/srv/pudu", "5e73d7cb020cb3da"),
            (Volume::Host("/srv/büro \"a\\b\"\t".into()), "/data", "2d13f6062ce59a38"),
        ];
        for (volume, home, expect) in cases {
            assert_eq!(owner(&volume, Path::new(home)), expect, "{volume:?}");
            assert_eq!(
                volume.key(),
                format!("{volume:?}"),
                "as it was written before it had an encoding of its own"
            );
        }
    }
}
