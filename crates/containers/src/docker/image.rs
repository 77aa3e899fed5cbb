//! Pulls the image if the engine does not have it.

use super::link::{failed, status};
use bollard::{Docker, query_parameters::CreateImageOptions};
use futures_util::StreamExt;
use pudu_base::SandboxError;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between log lines about the progress.
const TELL: Duration = Duration::from_secs(5);
/// Time without progress after which the pull fails.
const SILENCE: Duration = Duration::from_secs(120);

/// Returns when the image is available. The default tag is `latest`.
pub(super) async fn ensure(docker: &Docker, image: &str) -> Result<(), SandboxError> {
    match docker.inspect_image(image).await {
        Ok(_) => return Ok(()),
        Err(error) if status(&error) == Some(404) => {}
        Err(error) => return Err(failed("look for the image", error)),
    }
    tracing::info!(image, "fetching sandbox image; this is done once and can take minutes");
    let options = CreateImageOptions { from_image: Some(tagged(image)), ..Default::default() };
    let mut pulling = docker.create_image(Some(options), None, None);
    let mut told = Instant::now();
    loop {
        let next = tokio::time::timeout(SILENCE, pulling.next()).await;
        let next = next.map_err(|_| cannot(image, "the registry is silent"))?;
        let Some(step) = next else { break };
        let step = step.map_err(|error| cannot(image, &crate::root(&error)))?;
        if let Some(why) = step.error_detail.and_then(|detail| detail.message) {
            return Err(cannot(image, &why));
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            let part = step.progress_detail.unwrap_or_default();
            let (id, status) = (step.id.unwrap_or_default(), step.status.unwrap_or_default());
            tracing::info!(
                image,
                layer = id,
                status,
                bytes = part.current,
                of = part.total,
                "fetching image layer"
            );
        }
    }
    tracing::info!(image, "fetched sandbox image");
    Ok(())
}

fn cannot(image: &str, why: &str) -> SandboxError {
    let why: String = why.chars().take(500).collect();
    SandboxError::Refused(format!(
        "the sandbox's image {image} cannot be fetched ({why}): mend sandbox.image, or fetch it with `docker pull`"
    ))
}

/// Adds `latest` to an image without a tag: the engine would pull all tags otherwise.
fn tagged(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_its_latest() {
        for (image, expect) in [
            ("debian", "debian:latest"),
            ("debian:12", "debian:12"),
            ("host:5000/team/box", "host:5000/team/box:latest"),
            ("host:5000/team/box:3", "host:5000/team/box:3"),
            ("box@sha256:0123", "box@sha256:0123"),
        ] {
            assert_eq!(tagged(image), expect);
        }
    }
}
