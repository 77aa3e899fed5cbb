//! The network of containers with network access: a separate bridge on which they cannot reach each other. On the
//! engine's default bridge, the API of one thread's container would be open to all others.

use super::{
    DockerSettings,
    link::{failed, status},
};
use bollard::{Docker, models::NetworkCreateRequest, query_parameters::InspectNetworkOptions};
use pudu_base::{Network, SandboxError};

/// Option of a bridge that lets its containers reach each other.
const TALK: &str = "com.docker.network.bridge.enable_icc";

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
            if options.get(TALK).is_some_and(|talk| talk == "false") {
                return Ok(());
            }
            let text = format!(
                "there is a network {name} already on which containers reach each other: remove it (docker network \
                 rm {name}), or set sandbox.container_prefix to another word"
            );
            return Err(SandboxError::Refused(text));
        }
        Err(error) if status(&error) == Some(404) => {}
        Err(error) => return Err(failed("look at the network", error)),
    }
    let request = NetworkCreateRequest {
        name,
        driver: Some("bridge".to_owned()),
        options: Some([(TALK.to_owned(), "false".to_owned())].into()),
        ..NetworkCreateRequest::default()
    };
    match docker.create_network(request).await {
        Ok(_) => Ok(()),
        // It was created concurrently.
        Err(error) if status(&error) == Some(409) => Ok(()),
        Err(error) => Err(failed("make the network", error)),
    }
}
