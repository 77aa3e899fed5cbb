//! Settings of containers on a Docker engine.

use pudu_base::Network;
use pudu_sandbox::CommandLimits;
use std::path::{Path, PathBuf};

/// How commands are started in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecMethod {
    /// Over the HTTP API of the image.
    Aio,
    /// By the engine, which works with any image that has a shell.
    Exec,
}

/// Settings of containers.
#[derive(Clone, Debug, PartialEq)]
pub struct DockerSettings {
    /// Address of the engine, such as `unix:///var/run/docker.sock` or `tcp://host:port`.
    pub host: String,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem`, for an engine with TLS.
    pub certificates: Option<PathBuf>,
    /// Image for containers.
    pub image: String,
    /// How commands are started.
    pub api: ExecMethod,
    /// First port on this machine to publish the image's API on; `None` lets the engine choose.
    pub port: Option<u16>,
    /// Address to publish the API on.
    pub bind: String,
    /// Name or address by which the daemon reaches the API.
    pub reach: String,
    /// Prefix of the containers' names.
    pub prefix: String,
    /// Environment variables for commands, in addition to the defaults.
    pub environment: Vec<(String, String)>,
    /// Network access of containers; never [`Network::Proxy`].
    pub network: Network,
    /// Resource limits of a container.
    pub limits: CommandLimits,
    /// Number of CPUs that a container may use; unlimited if `None`.
    pub cpus: Option<f64>,
    /// The daemon's home.
    pub home: PathBuf,
    /// The home as the engine sees it, if the daemon runs in a container.
    pub host_home: Option<PathBuf>,
    /// User and group of commands, which own the threads' files. In the all-in-one image, commands always run as
    /// [`GEM`].
    pub owner: (u32, u32),
}

/// User and group of the all-in-one image.
pub const GEM: (u32, u32) = (1000, 1000);

impl DockerSettings {
    /// Translates a path from the daemon's view to the engine's.
    pub(super) fn engine_path(&self, path: &Path) -> PathBuf {
        match (&self.host_home, path.strip_prefix(&self.home)) {
            (Some(host), Ok(rest)) if rest.as_os_str().is_empty() => host.clone(),
            (Some(host), Ok(rest)) => host.join(rest),
            _ => path.to_owned(),
        }
    }
}
