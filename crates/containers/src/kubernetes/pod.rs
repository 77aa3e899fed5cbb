//! Builds the specification of a thread's Pod, and the network policy.

use super::{PodSettings, Volume};
use crate::{BoxId, Order, engine::fingerprint};
use k8s_openapi::api::{core::v1::Pod, networking::v1::NetworkPolicy};
use pudu_base::Network;
use pudu_sandbox::Mount;
use serde_json::{Value, json};
use std::path::Path;

/// Name of the container for commands.
pub(crate) const CONTAINER: &str = "sandbox";
/// Label with a Pod's owner.
pub(crate) const OWNER: &str = "pudu.dev/owner";
/// Label with the ID of a Pod's sandbox.
pub(crate) const SANDBOX: &str = "pudu.dev/sandbox";
/// Label with a Pod's network access, which the policy selects by.
const NETWORK: &str = "pudu.dev/network";
/// Annotation with a fingerprint of a Pod's specification.
pub(crate) const MADE_TO: &str = "pudu.dev/made-to";
/// Environment variable of the first process. It is checked before processes are killed, to make sure that they are in
/// a sandbox.
pub(crate) const MARK: &str = "PUDU_SANDBOX";
/// Maximum size of `/tmp`, as in sandboxes on this machine.
const TMP: &str = "512Mi";

/// Script that idles and reaps orphaned processes.
const IDLE: &str = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done";

/// Returns the name of a Pod.
pub(crate) fn name(settings: &PodSettings, id: &BoxId) -> String {
    format!("{}-{id}", settings.prefix)
}

/// Returns the Pod for a sandbox, with a fingerprint of its specification as an annotation.
pub(crate) fn pod(settings: &PodSettings, order: &Order) -> Result<Pod, String> {
    let mounts: Vec<Mount> =
        order.mounts.iter().filter(|mount| !settings.mounts.contains(mount)).cloned().collect();
    let mut places = VolumeMounts::new(settings);
    for mount in &mounts {
        places.own(mount)?;
    }
    for mount in &settings.mounts {
        places.node(mount);
    }
    places.scratch();
    let spec = spec(settings, &places);
    let made_to = fingerprint(&spec.to_string());
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name(settings, &order.id),
            "labels": {
                "app.kubernetes.io/name": "pudu",
                "app.kubernetes.io/component": "sandbox",
                OWNER: settings.owner,
                SANDBOX: order.id.as_str(),
                NETWORK: network_label(settings.network),
            },
            "annotations": {MADE_TO: made_to, "pudu.dev/thread": order.folder.thread.as_str()},
        },
        "spec": spec,
    });
    serde_json::from_value(pod).map_err(|error| format!("cannot encode the Pod: {error}"))
}

fn spec(settings: &PodSettings, places: &VolumeMounts<'_>) -> Value {
    let (user, group) = settings.user;
    let environment: Vec<Value> = environment(settings)
        .into_iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let mut spec = json!({
        "restartPolicy": "Always",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "hostNetwork": false,
        "terminationGracePeriodSeconds": 2,
        // There is no `fsGroup`, because it would change the group of the whole home, and the mounted folders already
        // belong to the user.
        "securityContext": {
            "runAsUser": user,
            "runAsGroup": group,
            "runAsNonRoot": user != 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": CONTAINER,
            "image": settings.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", IDLE],
            "workingDir": "/",
            "env": environment,
            "resources": {
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {
                    "memory": settings.limits.memory.to_string(),
                    "ephemeral-storage": settings.limits.disk.to_string(),
                },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "privileged": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": places.mounts,
        }],
        "volumes": places.volumes,
    });
    if let Some(secret) = &settings.pull_secret {
        spec["imagePullSecrets"] = json!([{"name": secret}]);
    }
    if settings.network == Network::None {
        // No name server is reachable.
        spec["dnsPolicy"] = json!("None");
        spec["dnsConfig"] = json!({"nameservers": ["127.0.0.1"]});
    }
    spec
}

fn environment(settings: &PodSettings) -> Vec<(&str, &str)> {
    let usual = [
        (MARK, "1"),
        ("HOME", "/mnt/user-data/workspace"),
        ("USER", "agent"),
        ("LOGNAME", "agent"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
    ];
    let more = settings.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    usual.into_iter().chain(more).collect()
}

/// Volumes and their mounts.
struct VolumeMounts<'s> {
    settings: &'s PodSettings,
    volumes: Vec<Value>,
    mounts: Vec<Value>,
}

impl<'s> VolumeMounts<'s> {
    fn new(settings: &'s PodSettings) -> Self {
        let mut volumes = Vec::new();
        if let Volume::Claim(claim) = &settings.volume {
            volumes.push(json!({"name": "home", "persistentVolumeClaim": {"claimName": claim}}));
        }
        Self { settings, volumes, mounts: Vec::new() }
    }

    /// Mounts a folder from the home.
    fn own(&mut self, mount: &Mount) -> Result<(), String> {
        let Ok(inner) = mount.host.strip_prefix(&self.settings.home) else {
            let (host, home, at) = (mount.host.display(), self.settings.home.display(), &mount.agent);
            if at == pudu_sandbox::ROOT {
                return Err(format!("cannot mount {host} at {at}: it is outside of pudu's home {home}"));
            }
            tracing::warn!(%host, %home, at, "skipped mount: Pods can only mount folders in pudu's home");
            return Ok(());
        };
        let inner = inner.to_string_lossy();
        match &self.settings.volume {
            Volume::Claim(_) => self.mounts.push(json!({
                "name": "home", "mountPath": mount.agent, "subPath": inner, "readOnly": mount.read_only,
            })),
            Volume::Host(home) => self.host(&Path::new(home).join(&*inner), mount),
        }
        Ok(())
    }

    /// Mounts a folder of the node, as configured by the operator.
    fn node(&mut self, mount: &Mount) {
        self.host(&mount.host, mount);
    }

    fn host(&mut self, path: &Path, mount: &Mount) {
        let name = format!("host-{}", self.volumes.len());
        self.volumes.push(json!({"name": name, "hostPath": {"path": path, "type": "Directory"}}));
        self.mounts.push(json!({"name": name, "mountPath": mount.agent, "readOnly": mount.read_only}));
    }

    fn scratch(&mut self) {
        self.volumes.push(json!({"name": "tmp", "emptyDir": {"sizeLimit": TMP}}));
        self.mounts.push(json!({"name": "tmp", "mountPath": "/tmp"}));
    }
}

/// Returns the policy for all sandboxes with this network access. It denies all incoming connections, and allows either
/// all outgoing connections or none.
pub(crate) fn policy(network: Network) -> Result<NetworkPolicy, String> {
    let kinds = if network == Network::Full { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": format!("pudu-sandbox-network-{}", network_label(network)),
            "labels": {"app.kubernetes.io/name": "pudu", "app.kubernetes.io/component": "sandbox"},
        },
        "spec": {"podSelector": {"matchLabels": {NETWORK: network_label(network)}}, "policyTypes": kinds},
    });
    serde_json::from_value(policy).map_err(|error| format!("cannot encode the network policy: {error}"))
}

fn network_label(network: Network) -> &'static str {
    if network == Network::Full { "full" } else { "none" }
}
