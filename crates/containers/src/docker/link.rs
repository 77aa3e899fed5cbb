//! Connects to the engine, and maps its errors to messages for the operator.

use super::super::root;
use bollard::{API_DEFAULT_VERSION, Docker, errors::Error};
use pudu_base::SandboxError;
use std::{io, path::PathBuf};
use tokio::sync::OnceCell;

/// Timeout for a response from the engine, in seconds. Streams are not limited.
const RESPONSE_TIMEOUT_SECS: u64 = 60;

/// A connection that is opened on first use. A failed attempt is repeated on the next use.
pub(super) struct EngineLink {
    host: String,
    certificates: Option<PathBuf>,
    docker: OnceCell<Docker>,
    facts: OnceCell<Facts>,
}

/// Facts about an engine that affect the creation of containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether the engine runs without root. Root in its containers is then the user who started it.
    pub(super) rootless: bool,
    /// Whether the engine maps users in containers to other users of the machine by default.
    pub(super) remaps: bool,
}

impl EngineLink {
    pub(super) fn new(host: String, certificates: Option<PathBuf>) -> Self {
        Self { host, certificates, docker: OnceCell::new(), facts: OnceCell::new() }
    }

    /// Returns a client that uses an API version supported by both sides.
    pub(super) async fn docker(&self) -> Result<&Docker, SandboxError> {
        self.docker.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Docker, SandboxError> {
        let connected = self.open().map_err(|error| failed("connect", error))?;
        connected.negotiate_version().await.map_err(|error| failed("negotiate the API version", error))
    }

    fn open(&self) -> Result<Docker, Error> {
        let Some(folder) = &self.certificates else {
            return match self.host.strip_prefix("unix://") {
                Some(path) => Docker::connect_with_unix(path, RESPONSE_TIMEOUT_SECS, API_DEFAULT_VERSION),
                None => Docker::connect_with_http(&self.host, RESPONSE_TIMEOUT_SECS, API_DEFAULT_VERSION),
            };
        };
        pudu_net::install_crypto();
        let file = |name: &str| folder.join(name);
        let (key, cert, ca) = (file("key.pem"), file("cert.pem"), file("ca.pem"));
        Docker::connect_with_ssl(&self.host, &key, &cert, &ca, RESPONSE_TIMEOUT_SECS, API_DEFAULT_VERSION)
    }

    /// Returns the facts about the engine.
    pub(super) async fn facts(&self) -> Result<Facts, SandboxError> {
        let ask = async || {
            let info = self.docker().await?.info().await;
            let options = info.map_err(|error| failed("report its settings", error))?.security_options;
            let options = options.unwrap_or_default();
            let has = |name: &str| options.iter().any(|option| option.split(',').any(|part| part == name));
            Ok(Facts { rootless: has("name=rootless"), remaps: has("name=userns") })
        };
        self.facts.get_or_try_init(ask).await.copied()
    }
}

/// Returns the HTTP status of an engine's response.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Returns the error for a failed call, with a fix for the operator. The model sees it too.
pub(super) fn failed(doing: &str, error: Error) -> SandboxError {
    let text = match error {
        Error::DockerResponseServerError { status_code, message } => {
            let message: String = message.trim().chars().take(500).collect();
            format!("the container engine could not {doing}: {message} ({status_code})")
        }
        Error::SocketNotFoundError(path) => {
            format!(
                "no container engine found: the socket {path} does not exist; start Docker, or set \
                 sandbox.docker_host"
            )
        }
        Error::UnsupportedURISchemeError { uri } => {
            format!(
                "the container engine's address {uri} must begin with unix:// or tcp://; fix \
                 sandbox.docker_host"
            )
        }
        error => {
            let help = match io_kind(&error) {
                Some(io::ErrorKind::PermissionDenied) => {
                    "; add pudu's user to the group that owns the socket (usually docker)"
                }
                Some(_) => "; check that it is running",
                None => "",
            };
            format!("the container engine could not {doing}: {}{help}", root(&error))
        }
    };
    SandboxError::Refused(text)
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut error: &dyn std::error::Error = error;
    loop {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io.kind());
        }
        error = error.source()?;
    }
}
