//! Images: names only.

use super::{Call, World, locked, refuse};
use axum::{
    Json,
    body::Body,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde_json::json;

/// Returns an image's name with its tag.
pub(super) fn tagged(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") }
}

pub(super) fn has(world: &World, image: &str) -> bool {
    locked(&world.images).contains(&tagged(image))
}

pub(super) fn inspect(world: &World, image: &str) -> Response {
    if !has(world, image) {
        return refuse(StatusCode::NOT_FOUND, format!("No such image: {}", tagged(image)));
    }
    Json(json!({
        "Id": format!("sha256:{:064x}", 7), "RepoTags": [tagged(image)], "RepoDigests": [], "Size": 1, "Os": "linux",
        "Architecture": "amd64", "Config": {"Env": [], "Cmd": ["/bin/sh"]},
        "RootFS": {"Type": "layers", "Layers": []},
    }))
    .into_response()
}

/// Reports the progress as lines of JSON.
pub(super) fn pull(call: &Call) -> Response {
    let query = |name: &str| call.query.get(name).cloned().unwrap_or_default();
    let (image, tag) = (query("fromImage"), query("tag"));
    let wanted = if tag.is_empty() { tagged(&image) } else { format!("{image}:{tag}") };
    if !call.world.options.registry.contains(&wanted) && !has(&call.world, &wanted) {
        let text = format!(
            "pull access denied for {image}, repository does not exist or may require 'docker login': denied: \
             requested access to the resource is denied"
        );
        return refuse(StatusCode::NOT_FOUND, text);
    }
    let mut lines = vec![json!({"status": format!("Pulling from {image}"), "id": tag})];
    for current in [1_000_000, 2_000_000] {
        lines.push(json!({
            "status": "Downloading", "progressDetail": {"current": current, "total": 2_000_000}, "id": "0123456789ab",
        }));
    }
    lines.push(json!({"status": format!("Status: Downloaded newer image for {wanted}")}));
    locked(&call.world.images).push(wanted);
    // In separate chunks, as clients read them.
    let lines = lines.into_iter().map(|line| Ok::<_, std::convert::Infallible>(format!("{line}\r\n")));
    let kind = [(CONTENT_TYPE, "application/json")];
    (kind, Body::from_stream(futures_util::stream::iter(lines))).into_response()
}
