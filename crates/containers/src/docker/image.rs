//! Pulls the image if the engine does not have it.

use super::link::{failed, status};
use bollard::{Docker, query_parameters::CreateImageOptions};
use futures_util::StreamExt;
use pudu_base::SandboxError;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between log lines about a pull's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How long a pull may make no progress before it fails.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(120);

/// Pulls the image unless the engine already has it. The default tag is `latest`.
pub(super) async fn ensure(docker: &Docker, image: &str) -> Result<(), SandboxError> {
    match docker.inspect_image(image).await {
        Ok(_) => return Ok(()),
        Err(error) if status(&error) == Some(404) => {}
        Err(error) => return Err(failed("inspect the image", error)),
    }
    tracing::info!(image, "pulling sandbox image; this happens once and can take minutes");
    let options = CreateImageOptions { from_image: Some(tagged(image)), ..Default::default() };
    let mut pulling = docker.create_image(Some(options), None, None);
    let mut last_report = Instant::now();
    loop {
        let next = tokio::time::timeout(PROGRESS_TIMEOUT, pulling.next()).await;
        let next = next.map_err(|_| cannot(image, "the registry does not respond"))?;
        let Some(step) = next else { break };
        let step = step.map_err(|error| cannot(image, &crate::root(&error)))?;
        if let Some(why) = step.error_detail.and_then(|detail| detail.message) {
            return Err(cannot(image, &why));
        }
        if last_report.elapsed() >= PROGRESS_INTERVAL {
            last_report = Instant::now();
            let part = step.progress_detail.unwrap_or_default();
            let (id, status) = (step.id.unwrap_or_default(), step.status.unwrap_or_default());
            tracing::info!(
                image,
                layer = id,
                status,
                bytes = part.current,
                of = part.total,
                "pulling image layer"
            );
        }
    }
    tracing::info!(image, "pulled sandbox image");
    Ok(())
}

fn cannot(image: &str, why: &str) -> SandboxError {
    let why: String = why.chars().take(500).collect();
    SandboxError::Refused(format!(
        "cannot pull the sandbox's image {image}: {why}; fix sandbox.image, or run `docker pull {image}`"
    ))
}

/// Adds `latest` to an image without a tag, because the engine would otherwise pull all tags.
fn tagged(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_gets_latest() {
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
