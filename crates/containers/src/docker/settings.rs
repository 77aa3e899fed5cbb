//! How containers are to be made.

use pudu_base::Network;
use pudu_sandbox::CommandLimits;
use std::path::{Path, PathBuf};

/// How commands come into a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecMethod {
    /// By the HTTP API that the image serves.
    Aio,
    /// By the engine: any image with a shell will do.
    Exec,
}

/// How containers are to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct DockerSettings {
    /// The engine: `unix:///var/run/docker.sock`, `tcp://host:port`.
    pub host: String,
    /// The folder of `ca.pem`, `cert.pem` and `key.pem`, for an engine that wants them.
    pub certificates: Option<PathBuf>,
    /// Image of containers.
    pub image: String,
    /// How commands come into it.
    pub api: ExecMethod,
    /// The first port of this machine that the image's API is published on; the engine chooses if none.
    pub port: Option<u16>,
    /// The address that it is published on.
    pub bind: String,
    /// The name or address under which the daemon reaches it.
    pub reach: String,
    /// Prefix of the containers' names.
    pub prefix: String,
    /// Environment variables of commands, besides the usual.
    pub environment: Vec<(String, String)>,
    /// Network access of containers; never [`Network::Proxy`].
    pub network: Network,
    /// Resource limits of a container.
    pub limits: CommandLimits,
    /// How many processors it may keep busy; all if none.
    pub cpus: Option<f64>,
    /// The daemon's home.
    pub home: PathBuf,
    /// The same folder as the engine sees it, where the daemon itself is in a container.
    pub host_home: Option<PathBuf>,
    /// User and group that run commands. The files of threads belong to them. In the all-in-one image
    /// commands run as [`GEM`] whatever this is.
    pub owner: (u32, u32),
}

/// The user of the all-in-one image, and its group.
pub const GEM: (u32, u32) = (1000, 1000);

impl DockerSettings {
    /// Returns a path of the daemon's as the engine sees it.
    pub(super) fn outside(&self, path: &Path) -> PathBuf {
        match (&self.host_home, path.strip_prefix(&self.home)) {
            (Some(host), Ok(rest)) if rest.as_os_str().is_empty() => host.clone(),
            (Some(host), Ok(rest)) => host.join(rest),
            _ => path.to_owned(),
        }
    }
}
