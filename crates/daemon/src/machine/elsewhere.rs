//! Engines for sandboxes that others make.

use pudu_client::{
    base::Network,
    containers,
    sandbox::{CommandLimits, Folders, Mount},
};
#[cfg(feature = "kubernetes")]
use pudu_config::{HomeVolume, KubernetesConfig};
use pudu_config::{ProvisionerConfig, SandboxConfig};

/// The part of the configuration that such sandboxes are made of; when it changes, so do they.
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

/// Returns the engine that asks a provisioner.
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

/// Returns in a few words the place of a provisioner's sandboxes, and how files come there.
pub(super) fn describe_provisioner(provisioner: &ProvisionerConfig) -> String {
    let files = if provisioner.shared { "folders are shared" } else { "files are carried" };
    let host = provisioner.url.host_str().unwrap_or_default();
    let port = provisioner.url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("sandboxes of the provisioner at {host}{port}; {files}; the network is theirs")
}

/// Returns the engine that makes Pods.
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
