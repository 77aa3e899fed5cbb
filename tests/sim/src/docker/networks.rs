//! Networks: only their specification.

use super::{Call, World, id, locked, refuse};
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

pub(super) fn inspect(world: &World, name: &str) -> Response {
    let networks = locked(&world.networks);
    let by_id = || networks.values().find(|network| network["Id"] == name);
    match networks.get(name).or_else(by_id) {
        Some(network) => Json(network.clone()).into_response(),
        None => refuse(StatusCode::NOT_FOUND, format!("network {name} not found")),
    }
}

pub(super) fn create(call: &Call) -> Response {
    let name = call.text("Name").to_owned();
    let mut networks = locked(&call.world.networks);
    if networks.contains_key(&name) {
        return refuse(StatusCode::CONFLICT, format!("network with name {name} already exists"));
    }
    let id = id();
    let network = json!({
        "Name": name, "Id": id, "Driver": call.text("Driver"), "Scope": "local",
        "Options": call.body.get("Options").cloned().unwrap_or_else(|| json!({})), "Containers": {},
        "Internal": call.body.get("Internal").and_then(Value::as_bool).unwrap_or_default(),
    });
    networks.insert(name, network);
    (StatusCode::CREATED, Json(json!({"Id": id, "Warning": ""}))).into_response()
}
