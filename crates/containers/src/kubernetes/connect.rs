//! The way to a cluster: a kubeconfig, or the account of the Pod that pudu runs in.

use super::{PodSettings, trouble::ClusterError};
use k8s_openapi::api::{core::v1::Pod, networking::v1::NetworkPolicy};
use kube::{
    Api, Client, Config, Error,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use std::time::Duration;

/// No answer of the API server's takes longer; execs have their own time.
const SOON: Duration = Duration::from_secs(30);
/// A connection is there after this long.
const CONNECT: Duration = Duration::from_secs(10);

/// Client for the parts of a cluster that are used.
pub(crate) struct Cluster {
    client: Client,
    address: String,
    namespace: String,
    pub(crate) pods: Api<Pod>,
    pub(crate) policies: Api<NetworkPolicy>,
}

/// Finds the cluster.
pub(crate) async fn connect(settings: &PodSettings) -> Result<Cluster, ClusterError> {
    pudu_net::install_crypto();
    let mut config = config(settings).await.map_err(|why| {
        let help = "set sandbox.kubernetes.kubeconfig, or run pudu in the cluster with a service account";
        ClusterError::Refused(format!("no cluster is known: {why}; {help}"))
    })?;
    config.connect_timeout = Some(CONNECT);
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
            let file = Kubeconfig::read_from(path).map_err(whole)?;
            Config::from_custom_kubeconfig(file, &options).await.map_err(whole)
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(whole),
        (None, None) => Config::infer().await.map_err(whole),
    }
}

/// Returns the text of an error with its causes. A file that is no valid YAML is only named as such: the
/// parser shows the lines around the mistake, and there are keys in them.
fn whole(error: impl std::error::Error + 'static) -> String {
    let mut words = error.to_string();
    let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(source) = inner {
        if let Some(KubeconfigError::Parse(_)) = source.downcast_ref() {
            return "the kubeconfig is no valid YAML (kubectl config view says where)".to_owned();
        }
        let word = source.to_string();
        if !words.contains(&word) {
            words = format!("{words}: {word}");
        }
        inner = source.source();
    }
    super::trouble::plain(&words)
}

/// Waits for an answer, but not for ever.
pub(crate) async fn soon<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, ClusterError> {
    match tokio::time::timeout(SOON, asked).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ClusterError::late("the cluster's API server did not answer")),
    }
}

impl Cluster {
    /// Returns the cluster's version, address and namespace.
    pub(crate) async fn version(&self) -> Result<String, ClusterError> {
        let version = soon(self.client.apiserver_version()).await?;
        Ok(format!("Kubernetes {} at {}, namespace {}", version.git_version, self.address, self.namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spoilt_kubeconfig_is_told_without_its_lines() {
        for text in ["token: hunter2\nusers: [x\npassword: hunter2", "password: [hunter2"] {
            let said = whole(Kubeconfig::from_yaml(text).unwrap_err());
            assert!(said.contains("no valid YAML") && !said.contains("hunter2"), "{said}");
        }
    }
}
