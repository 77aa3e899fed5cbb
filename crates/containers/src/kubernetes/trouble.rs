//! Maps a cluster's errors to messages for the operator.

use kube::Error;
use pudu_base::SandboxError;

/// Maximum length of a cluster's message when it is quoted, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// Reason why a request to the cluster failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// The object does not exist.
    #[error("{0}")]
    Missing(String),
    /// The object already exists.
    #[error("{0}")]
    Exists(String),
    /// A connection failed. It is unknown whether the request was executed.
    #[error("{0}")]
    Broken(String),
    /// The request timed out.
    #[error("{0}")]
    Late(String),
    /// The request is refused until the operator fixes something.
    #[error("{0}")]
    Refused(String),
}

impl ClusterError {
    pub(crate) fn timed_out(what: &str) -> Self {
        Self::Late(format!("{what} in time; check the cluster's API server and its nodes"))
    }
}

impl From<Error> for ClusterError {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(status) => api(status.code, &plain(&status.message)),
            Error::UpgradeConnection(kube::client::UpgradeConnectionError::ProtocolSwitch(status)) => {
                api(status.as_u16(), "the API server did not open an exec")
            }
            Error::UpgradeConnection(error) => Self::Broken(plain(&format!(
                "the API server cannot run commands over WebSockets ({error}); use Kubernetes 1.30 or newer"
            ))),
            Error::SerdeError(error) => Self::Refused(format!(
                "the cluster's address does not respond like an API server ({error}); check `server` in the \
                 kubeconfig"
            )),
            other => Self::Broken(format!("the cluster cannot be reached: {}", innermost(&other))),
        }
    }
}

/// Maps a status of the API server.
fn api(code: u16, said: &str) -> ClusterError {
    match code {
        401 => ClusterError::Refused(format!(
            "the cluster rejected the credentials (401: {said}); renew the login in the kubeconfig, or the \
             service account"
        )),
        403 => ClusterError::Refused(format!(
            "the cluster denied the request (403: {said}); give pudu the role of docs/sandbox.md"
        )),
        404 => ClusterError::Missing(format!("the cluster has no such object: {said}")),
        409 => ClusterError::Exists(said.to_owned()),
        400 | 422 => ClusterError::Refused(format!(
            "the cluster refused the Pod ({code}: {said}); check sandbox.image and sandbox.kubernetes"
        )),
        _ => ClusterError::Broken(format!("the cluster failed ({code}: {said})")),
    }
}

/// Returns the message of the innermost error, because the outer ones only wrap it.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    plain(&inner.to_string())
}

/// Shortens foreign text to one line.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect::<String>()
        .trim()
        .to_owned()
}

impl From<ClusterError> for SandboxError {
    fn from(trouble: ClusterError) -> Self {
        Self::Refused(trouble.to_string())
    }
}
