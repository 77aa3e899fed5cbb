//! Creates the bridge network for containers with network access. Containers on it cannot reach each other; on the
//! default bridge, other containers could use the API of a thread's container.

use super::{
    DockerSettings,
    link::{failed, status},
};
use bollard::{Docker, models::NetworkCreateRequest, query_parameters::InspectNetworkOptions};
use pudu_base::{Network, SandboxError};

/// Option of a bridge for whether its containers can reach each other.
const ICC_OPTION: &str = "com.docker.network.bridge.enable_icc";

/// Returns the network's name.
pub(super) fn name(settings: &DockerSettings) -> String {
    format!("{}-network", settings.prefix)
}

/// Creates the network if it is missing and needed.
pub(super) async fn ensure(docker: &Docker, settings: &DockerSettings) -> Result<(), SandboxError> {
    if settings.network == Network::None {
        return Ok(());
    }
    let name = name(settings);
    match docker.inspect_network(&name, None::<InspectNetworkOptions>).await {
        Ok(found) => {
            let options = found.options.unwrap_or_default();
            if options.get(ICC_OPTION).is_some_and(|talk| talk == "false") {
                return Ok(());
            }
            let text = format!(
                "the existing network {name} lets containers reach each other; remove it (docker network rm \
                 {name}), or change sandbox.container_prefix"
            );
            return Err(SandboxError::Refused(text));
        }
        Err(error) if status(&error) == Some(404) => {}
        Err(error) => return Err(failed("inspect the network", error)),
    }
    let request = NetworkCreateRequest {
        name,
        driver: Some("bridge".to_owned()),
        options: Some([(ICC_OPTION.to_owned(), "false".to_owned())].into()),
        ..NetworkCreateRequest::default()
    };
    match docker.create_network(request).await {
        Ok(_) => Ok(()),
        // Another call created it concurrently.
        Err(error) if status(&error) == Some(409) => Ok(()),
        Err(error) => Err(failed("create the network", error)),
    }
}
