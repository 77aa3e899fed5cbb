//! Sandboxes in containers: their engine, image and lifetime.

#[cfg(feature = "kubernetes")]
use super::elsewhere::KubernetesConfig;
use super::{
    Start,
    elsewhere::{ProvisionerConfig, container_prefix, image},
    reader::Section,
};
use pudu_base::Network;
use pudu_containers::ExecMethod;
use pudu_sandbox::CommandLimits;
use std::{path::PathBuf, time::Duration};

/// Backend of sandboxes for commands. A change needs a restart, because it affects the owner of threads' files.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SandboxBackend {
    /// On this machine, confined by the kernel.
    #[default]
    Local,
    /// In containers of an engine.
    Docker(DockerConfig),
    /// In sandboxes of a provisioner.
    Provisioner(ProvisionerConfig),
    /// In Pods of a cluster.
    #[cfg(feature = "kubernetes")]
    Kubernetes(Box<KubernetesConfig>),
}

/// A container engine, and the settings of its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DockerConfig {
    /// The engine's address.
    pub host: String,
    /// Folder of its certificates.
    pub certificates: Option<PathBuf>,
    /// The image.
    pub image: String,
    /// Method of running commands in a container.
    pub api: ExecMethod,
    /// First host port for the image's API; chosen by the engine if `None`.
    pub port: Option<u16>,
    /// Host address for the image's API.
    pub bind: String,
    /// Host name or address at which the API is reached.
    pub reach: String,
    /// Prefix of the containers' names.
    pub prefix: String,
    /// Path of the home folder as the engine sees it, if different.
    pub host_home: Option<PathBuf>,
}

settings! {
    /// Limits of the number and idle time of containers.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Keep(section) {
        /// Idle time after which a container is removed, in seconds; 0 keeps the container.
        idle_timeout: Duration = seconds(0.0).eg("600").or(Self::default().idle_timeout);
        /// Maximum number of containers; if all are in use, one more is created temporarily.
        replicas: usize = number(1..=1000).eg("3").or(Self::default().replicas);
        /// Maximum number of processors of each container.
        cpus: Option<f64> = decimal(0.01..=1024.0).eg("2").optional("all");
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(600), replicas: 3, cpus: None }
    }
}

/// DeerFlow's image.
const IMAGE: &str = "enterprise-public-cn-beijing.cr.volces.com/vefaas-public/all-in-one-sandbox:latest";
const SOCKET: &str = "unix:///var/run/docker.sock";
const APIS: &[(&str, ExecMethod)] = &[("aio", ExecMethod::Aio), ("exec", ExecMethod::Exec)];
/// Keys that only apply to containers.
pub(super) const KEYS: &[&str] =
    &["api", "container_prefix", "cpus", "docker_host", "idle_timeout", "image", "port", "replicas"];

impl SandboxBackend {
    /// Returns whether commands run in the all-in-one image, which contains a whole desktop.
    pub(super) fn is_aio(&self) -> bool {
        matches!(self, Self::Docker(DockerConfig { api: ExecMethod::Aio, .. }))
    }

    /// Returns the default network access of commands. The all-in-one image has an API on the network.
    pub(super) fn network(&self) -> Network {
        match self {
            // The provisioner does not report the network that its sandboxes have.
            Self::Provisioner(_) => Network::Full,
            _ if self.is_aio() => Network::Full,
            _ => Network::None,
        }
    }

    /// Returns the default resource limits of a command, or of a whole container.
    pub(super) fn limits(&self) -> CommandLimits {
        if self.is_aio() { CommandLimits::DESKTOP } else { CommandLimits::COMMAND }
    }

    /// Refuses settings that this provider does not support.
    pub(super) fn check(&self, section: &Section<'_>, network: Network) {
        let docker = match self {
            Self::Docker(docker) => docker,
            Self::Provisioner(_) if network != Network::Full => {
                let what = "this has no effect: the provisioner controls the network of its sandboxes";
                section.warn(
                    "network",
                    what,
                    "restrict them by a NetworkPolicy of the cluster, and set `network: full`",
                );
                return;
            }
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(_) if network == Network::Proxy => {
                let what = "Pods do not support the proxy for allowed domains";
                section.refuse(
                    "network",
                    what,
                    "set `network: none`, or `full` with a NetworkPolicy of your own",
                );
                return;
            }
            _ => return,
        };
        match (network, docker.api) {
            (Network::Proxy, _) => section.refuse(
                "network",
                "containers do not support the proxy for allowed domains",
                "set `network: none` or `network: full`, or use deerflow.sandbox.local:LocalSandboxProvider",
            ),
            (Network::None, ExecMethod::Aio) => section.refuse(
                "network",
                "pudu reaches the all-in-one image over the network",
                "set `network: full`, or use an image with a shell and `api: exec`",
            ),
            _ => {}
        }
    }
}

/// Reads the container engine and the settings of its containers.
pub(super) fn docker(section: &Section<'_>, start: &Start) -> DockerConfig {
    let env = |name: &str| start.env.get(name).filter(|value| !value.is_empty());
    let image = image(section, IMAGE);
    settings! { section =>
        /// Way to run commands in a container: aio by the HTTP API of the all-in-one image; exec by the engine, in any image
        /// with a shell.
        api = choice(APIS).or_described(usual(&image), "aio for the all-in-one image, else exec");
        /// Address of the container engine: unix:///path/of/the/socket or tcp://host:port.
        host as "docker_host" = text().eg(SOCKET)
            .or_described(env("DOCKER_HOST").unwrap_or(SOCKET).to_owned(), &format!("`DOCKER_HOST`, or {SOCKET}"));
    }
    if !["unix://", "tcp://", "http://", "https://"].iter().any(|scheme| host.starts_with(scheme)) {
        let what = format!("\"{host}\" is not the address of a supported engine");
        section.refuse("docker_host", what, "write unix:///path/of/the/socket or tcp://host:port");
    }
    let prefix = container_prefix(section);
    settings! { section =>
        /// First port of this machine for the image's API; without it the engine chooses free ones.
        port = number(1..=65535_u16).eg("8080").optional("any free port");
    }
    let verified = env("DOCKER_TLS_VERIFY").is_some() || host.starts_with("https://");
    let reach = env("DEER_FLOW_SANDBOX_HOST").unwrap_or("127.0.0.1").to_owned();
    let near = matches!(reach.as_str(), "localhost" | "127.0.0.1" | "::1");
    let bind = env("DEER_FLOW_SANDBOX_BIND_HOST").unwrap_or(if near { "127.0.0.1" } else { "0.0.0.0" });
    DockerConfig {
        certificates: env("DOCKER_CERT_PATH").filter(|_| verified).map(|path| start.dir.join(path)),
        image,
        api,
        port,
        bind: bind.to_owned(),
        reach,
        prefix,
        host_home: env("DEER_FLOW_HOST_BASE_DIR").map(PathBuf::from),
        host,
    }
}

/// Returns the method for an image: the HTTP API for DeerFlow's image and its base image.
fn usual(image: &str) -> ExecMethod {
    match image.contains("all-in-one-sandbox") || image.contains("agent-infra/sandbox") {
        true => ExecMethod::Aio,
        false => ExecMethod::Exec,
    }
}

/// Reads the limits of containers.
pub(super) fn keep(section: &Section<'_>, provider: &SandboxBackend) -> Keep {
    match provider {
        SandboxBackend::Local => Keep::default(),
        _ => Keep::read(section),
    }
}
