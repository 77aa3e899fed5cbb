//! Connects to a cluster with a kubeconfig, or with the service account of pudu's own Pod.

use super::{PodSettings, trouble::ClusterError};
use k8s_openapi::api::{core::v1::Pod, networking::v1::NetworkPolicy};
use kube::{
    Api, Client, Config, Error,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::time::Duration;

/// Timeout for a response from the API server. Execs have their own timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Client for the parts of a cluster's API that are used here.
pub(crate) struct Cluster {
    client: Client,
    address: String,
    namespace: String,
    pub(crate) pods: Api<Pod>,
    pub(crate) policies: Api<NetworkPolicy>,
}

/// Connects to the cluster.
pub(crate) async fn connect(settings: &PodSettings) -> Result<Cluster, ClusterError> {
    pudu_net::install_crypto();
    let mut config = config(settings).await.map_err(|why| {
        let help = "set sandbox.kubernetes.kubeconfig, or run pudu in the cluster with a service account";
        ClusterError::Refused(format!("no cluster is configured: {why}; {help}"))
    })?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let namespace = settings.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let address = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let client = Client::try_from(config)?;
    let (pods, policies) =
        (Api::namespaced(client.clone(), &namespace), Api::namespaced(client.clone(), &namespace));
    Ok(Cluster { client, address, namespace, pods, policies })
}

async fn config(settings: &PodSettings) -> Result<Config, String> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    match (&settings.kubeconfig, &settings.context) {
        (Some(path), _) => {
            let file = Kubeconfig::read_from(path).map_err(error_chain)?;
            Config::from_custom_kubeconfig(file, &options).await.map_err(error_chain)
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(error_chain),
        (None, None) => Config::infer().await.map_err(error_chain),
    }
}

/// Returns the text of an error with its causes. Invalid YAML is reported without details, because the parser quotes
/// the lines around the error, which may contain keys.
fn error_chain(error: impl std::error::Error + 'static) -> String {
    let mut words = error.to_string();
    let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(source) = inner {
        if let Some(KubeconfigError::Parse(_)) = source.downcast_ref() {
            return "the kubeconfig is not valid YAML; `kubectl config view` shows where".to_owned();
        }
        let word = source.to_string();
        if !words.contains(&word) {
            words = format!("{words}: {word}");
        }
        inner = source.source();
    }
    super::trouble::plain(&words)
}

/// Waits for a response, with a timeout.
pub(crate) async fn with_timeout<T>(
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(RESPONSE_TIMEOUT, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ClusterError::timed_out("the cluster's API server did not respond")),
    }
}

impl Cluster {
    /// Returns the cluster's version, address and namespace.
    pub(crate) async fn version(&self) -> Result<String, ClusterError> {
        let version = with_timeout(self.client.apiserver_version()).await?;
        Ok(format!("Kubernetes {} at {}, namespace {}", version.git_version, self.address, self.namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_kubeconfig_is_reported_without_its_lines() {
        for text in ["token: hunter2\nusers: [x\npassword: hunter2", "password: [hunter2"] {
            let said = error_chain(Kubeconfig::from_yaml(text).unwrap_err());
            assert!(said.contains("not valid YAML") && !said.contains("hunter2"), "{said}");
        }
    }
}
