//! Sandboxes created by a provisioner or in a cluster.

use super::reader::Section;
use secrecy::{ExposeSecret, SecretString};
use std::path::PathBuf;
use url::Url;

/// Address and settings of a provisioner.
#[derive(Clone, Debug)]
pub struct ProvisionerConfig {
    /// Its address.
    pub url: Url,
    /// Its key.
    pub key: Option<SecretString>,
    /// Whether its sandboxes mount the folders of this machine.
    pub shared: bool,
}

/// Settings of Pods.
#[derive(Clone, Debug, PartialEq)]
pub struct KubernetesConfig {
    /// Path of the kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The context in it.
    pub context: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The volume with pudu's home in the cluster.
    pub home: HomeVolume,
    /// Prefix of the Pods' names.
    pub prefix: String,
    /// The image.
    pub image: String,
    /// The secret for pulling the image.
    pub pull_secret: Option<String>,
    /// The user id of commands, if not pudu's own.
    pub run_as: Option<u32>,
}

/// Volume with pudu's home in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum HomeVolume {
    /// A persistent volume claim.
    Claim(String),
    /// A folder of the nodes.
    Host(String),
}

/// Default image: it has a shell, Python, and the other tools that a Pod needs.
const IMAGE: &str = "python:3.13-slim";
/// Maximum length of a prefix, in bytes. The name of a Pod is also its host name, which must be shorter than a
/// container's name.
const MAX_POD_PREFIX_BYTES: usize = 40;
const NO_HOME: &str = "write `home: claim NAME` for the claim that it is on, or `home: host PATH` for the folder that nodes have it in";

impl PartialEq for ProvisionerConfig {
    fn eq(&self, other: &Self) -> bool {
        let open = |provisioner: &Self| provisioner.key.as_ref().map(|key| key.expose_secret().to_owned());
        self.url == other.url && self.shared == other.shared && open(self) == open(other)
    }
}

/// Reads the settings of the provisioner. Returns `None` if there is none.
pub(super) fn provisioner(section: &Section<'_>, wanted: bool) -> Option<ProvisionerConfig> {
    settings! { section =>
        /// URL of DeerFlow's provisioner; with it AioSandboxProvider gets sandboxes from the provisioner instead of an
        /// engine.
        url as "provisioner_url" = url().eg("http://provisioner:8002").optional("none");
    }
    let needed = section.clone().needed(wanted && url.is_some());
    settings! { needed =>
        /// PROVISIONER_API_KEY of the provisioner.
        key as "provisioner_api_key" = secret().eg("$PROVISIONER_API_KEY").optional("none");
        /// Whether the provisioner's sandboxes mount the folders of this machine; otherwise pudu copies files both ways.
        shared as "thread_data_mounts" = flag().or(false);
    }
    if let Some(url) = &url
        && (!url.username().is_empty() || url.password().is_some())
    {
        let help = "put the key into provisioner_api_key, which is sent in a header";
        section.refuse("provisioner_url", "a user name or password in a URL appears in logs", help);
    }
    Some(ProvisionerConfig { url: url?, key, shared })
}

/// Reads the settings of Pods. Returns `None` if the volume with the home is not set.
pub(super) fn kubernetes(section: &Section<'_>, wanted: bool) -> Option<KubernetesConfig> {
    let inner =
        section.section("kubernetes").about("Cluster for Pods (`use: pudu.sandbox:KubernetesProvider`).");
    settings! { inner =>
        /// Volume that holds pudu's home in the cluster: `claim NAME` for a claim, `host PATH` for a folder of the nodes.
        home = text().eg("claim pudu-home").optional("none");
        /// Path of the kubeconfig.
        kubeconfig = text().eg("/etc/pudu/kubeconfig")
            .optional("`KUBECONFIG`, `~/.kube/config`, or the Pod's own account").map(PathBuf::from);
        /// Context in the kubeconfig.
        context = text().eg("production").optional("the current context");
        /// Namespace of the Pods.
        namespace = text().eg("pudu-sandboxes").optional("the namespace of the context");
        /// User id of commands if pudu is root; otherwise it is pudu's own.
        run_as = number(1..=u32::MAX).eg("65533").optional("same as for commands on this machine");
        /// Secret for pulling the image.
        pull_secret = text().eg("registry").optional("none");
    }
    let home = match home.as_deref().map(str::trim).map(parse) {
        Some(Some(home)) => home,
        Some(None) => {
            inner.refuse("home", "this is neither a claim nor a folder of the nodes", NO_HOME);
            return None;
        }
        None => {
            if wanted {
                section.refuse(
                    "kubernetes",
                    "the location of pudu's home in the cluster is missing",
                    NO_HOME,
                );
            }
            return None;
        }
    };
    if !wanted {
        return None;
    }
    let image = image(section, IMAGE);
    let prefix = prefix(section);
    Some(KubernetesConfig { kubeconfig, context, namespace, home, prefix, image, pull_secret, run_as })
}

/// Returns the prefix of names. A Pod's name allows fewer characters than a container's.
fn prefix(section: &Section<'_>) -> String {
    let prefix = container_prefix(section);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if prefix.len() > MAX_POD_PREFIX_BYTES || !prefix.chars().all(plain) || prefix.starts_with('-') {
        let what = format!("\"{prefix}-…\" is not a valid Pod name");
        section.refuse(
            "container_prefix",
            what,
            format!("use up to {MAX_POD_PREFIX_BYTES} lower-case letters, digits and `-`"),
        );
    }
    prefix
}

fn parse(text: &str) -> Option<HomeVolume> {
    match text.split_once(' ').map(|(kind, name)| (kind, name.trim()))? {
        ("claim", name) if !name.contains([' ', '/']) => Some(HomeVolume::Claim(name.to_owned())),
        ("host", path) if path.starts_with('/') => Some(HomeVolume::Host(path.to_owned())),
        _ => None,
    }
}

/// Reads the image of sandboxes.
pub(super) fn image(section: &Section<'_>, usual: &str) -> String {
    settings! { section =>
        /// Image of containers (`use: deerflow.community.aio_sandbox:AioSandboxProvider`): DeerFlow's all-in-one image, or any
        /// image with a shell. The default of Pods is python:3.13-slim.
        image = text().eg("enterprise-public-cn-beijing.cr.volces.com/vefaas-public/all-in-one-sandbox:latest")
            .or(usual.to_owned());
    }
    image
}

/// Reads the prefix of containers' names.
pub(super) fn container_prefix(section: &Section<'_>) -> String {
    settings! { section =>
        /// Prefix of the names of containers.
        prefix as "container_prefix" = text().eg("deer-flow-sandbox").or("deer-flow-sandbox".to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if !prefix.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !prefix.chars().all(plain)
        || prefix.len() > 64
    {
        let what = format!("\"{prefix}-…\" is not a valid container name");
        section.refuse("container_prefix", what, "use at most 64 letters, digits, `_`, `.` and `-`");
    }
    prefix
}
