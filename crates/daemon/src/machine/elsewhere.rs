//! Creates the engines for sandboxes in a cluster or behind a provisioner.

use pudu_base::Network;
#[cfg(feature = "kubernetes")]
use pudu_config::{HomeVolume, KubernetesConfig};
use pudu_config::{ProvisionerConfig, SandboxConfig};
use pudu_containers as containers;
use pudu_sandbox::{CommandLimits, Folders, Mount};

/// The configuration of such sandboxes; when it changes, they are recreated.
#[derive(Clone, PartialEq)]
pub(super) struct RemoteSettings {
    network: Network,
    environment: Vec<(String, String)>,
    mounts: Vec<Mount>,
    limits: CommandLimits,
}

impl RemoteSettings {
    pub(super) fn from_config(sandbox: &SandboxConfig) -> Self {
        let SandboxConfig { network, environment, mounts, limits, .. } = sandbox.clone();
        Self { network, environment, mounts, limits }
    }
}

/// Returns the engine that calls a provisioner.
pub(super) fn provisioner(
    provisioner: &ProvisionerConfig,
    folders: &Folders,
    wanted: RemoteSettings,
) -> containers::ProvisionerEngine {
    let ProvisionerConfig { url, key, shared } = provisioner.clone();
    containers::ProvisionerEngine::new(containers::provisioner::ProvisionerSettings {
        url,
        key,
        shared,
        folders: folders.clone(),
        mounts: wanted.mounts,
        environment: wanted.environment,
        most: wanted.limits.disk,
    })
}

/// Describes briefly where a provisioner's sandboxes run, and how files get there.
pub(super) fn describe_provisioner(provisioner: &ProvisionerConfig) -> String {
    let files = if provisioner.shared { "shared folders" } else { "files are copied" };
    let host = provisioner.url.host_str().unwrap_or_default();
    let port = provisioner.url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("sandboxes of the provisioner at {host}{port}; {files}; the provisioner controls the network")
}

/// Returns the engine that creates Pods.
#[cfg(feature = "kubernetes")]
pub(super) fn kubernetes(
    kubernetes: &KubernetesConfig,
    folders: &Folders,
    wanted: RemoteSettings,
) -> containers::KubernetesEngine {
    use containers::kubernetes::{PodSettings, Volume, owner};
    let KubernetesConfig { kubeconfig, context, namespace, home, prefix, image, pull_secret, run_as } =
        kubernetes.clone();
    let volume = match home {
        HomeVolume::Claim(claim) => Volume::Claim(claim),
        HomeVolume::Host(path) => Volume::Host(path),
    };
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let user = folders.owner().or_else(|| run_as.map(|user| (user, user))).unwrap_or(own);
    containers::KubernetesEngine::new(PodSettings {
        kubeconfig,
        context,
        namespace,
        prefix,
        owner: owner(&volume, folders.home()),
        home: folders.home().to_owned(),
        volume,
        image,
        pull_secret,
        user,
        network: wanted.network,
        environment: wanted.environment,
        mounts: wanted.mounts,
        limits: wanted.limits,
    })
}
