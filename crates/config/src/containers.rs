//! Sandboxes that are containers: which engine makes them, of what, and for how long.

#[cfg(feature = "kubernetes")]
use super::elsewhere::KubernetesConfig;
use super::{
    Start,
    elsewhere::{ProvisionerConfig, container_prefix, image},
    reader::Section,
};
use pudu_client::{base::Network, containers::ExecMethod, sandbox::CommandLimits};
use std::{path::PathBuf, time::Duration};

/// Sandboxes of commands. A change needs a restart: it decides the owner of threads' files.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SandboxBackend {
    /// On this machine, confined by its kernel.
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
    /// Folder of the certificates for it.
    pub certificates: Option<PathBuf>,
    /// The image.
    pub image: String,
    /// How commands come into a container.
    pub api: ExecMethod,
    /// The first port that the image's API is published on; the engine chooses if none.
    pub port: Option<u16>,
    /// The address that it is published on.
    pub bind: String,
    /// The name or address under which it is reached.
    pub reach: String,
    /// Prefix of the containers' names.
    pub prefix: String,
    /// The home as the engine sees it, if that is elsewhere.
    pub host_home: Option<PathBuf>,
}

settings! {
    /// How long containers are kept, and how many.
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
/// Keys that only containers have.
pub(super) const KEYS: &[&str] =
    &["api", "container_prefix", "cpus", "docker_host", "idle_timeout", "image", "port", "replicas"];

impl SandboxBackend {
    /// Whether commands run in the all-in-one image, which is a whole desktop.
    pub(super) fn is_aio(&self) -> bool {
        matches!(self, Self::Docker(DockerConfig { api: ExecMethod::Aio, .. }))
    }

    /// Returns the default network access of commands. The all-in-one image is spoken to over the network.
    pub(super) fn network(&self) -> Network {
        match self {
            // The provisioner does not report the real network.
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
                let what = "this has no effect: the provisioner decides what its sandboxes reach";
                section.warn(
                    "network",
                    what,
                    "let a NetworkPolicy of the cluster hold them, and set `network: full`",
                );
                return;
            }
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(_) if network == Network::Proxy => {
                let what = "Pods have no proxy for some domains";
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
                "containers have no proxy for some domains",
                "set `network: none` or `network: full`, or use deerflow.sandbox.local:LocalSandboxProvider",
            ),
            (Network::None, ExecMethod::Aio) => section.refuse(
                "network",
                "the all-in-one image is spoken to over the network",
                "set `network: full`, or take an image with a shell and `api: exec`",
            ),
            _ => {}
        }
    }
}

/// Reads which engine makes containers of what.
pub(super) fn docker(section: &Section<'_>, start: &Start) -> DockerConfig {
    let env = |name: &str| start.env.get(name).filter(|value| !value.is_empty());
    let image = image(section, IMAGE);
    settings! { section =>
        /// Way to run commands in a container: aio by the HTTP API of the all-in-one image; exec by the engine, in any image
        /// with a shell.
        api = choice(APIS).or_told(usual(&image), "aio for the all-in-one image, else exec");
        /// Address of the container engine: unix:///path/of/the/socket or tcp://host:port.
        host as "docker_host" = text().eg(SOCKET)
            .or_told(env("DOCKER_HOST").unwrap_or(SOCKET).to_owned(), &format!("`DOCKER_HOST`, or {SOCKET}"));
    }
    if !["unix://", "tcp://", "http://", "https://"].iter().any(|scheme| host.starts_with(scheme)) {
        let what = format!("\"{host}\" is no address of an engine that pudu can speak to");
        section.refuse("docker_host", what, "write unix:///path/of/the/socket or tcp://host:port");
    }
    let prefix = container_prefix(section);
    settings! { section =>
        /// First port of this machine for the image's API; without it the engine chooses free ones.
        port = number(1..=65535_u16).eg("8080").optional("one that is free");
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

/// DeerFlow's own image, and the one that it was made of.
fn usual(image: &str) -> ExecMethod {
    match image.contains("all-in-one-sandbox") || image.contains("agent-infra/sandbox") {
        true => ExecMethod::Aio,
        false => ExecMethod::Exec,
    }
}

/// Reads how long they are kept.
pub(super) fn keep(section: &Section<'_>, provider: &SandboxBackend) -> Keep {
    match provider {
        SandboxBackend::Local => Keep::default(),
        _ => Keep::read(section),
    }
}
