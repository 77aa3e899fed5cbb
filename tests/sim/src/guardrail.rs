//! A simulated guardrail provider: DeerFlow's requests in, decisions out. Dropping its last handle makes the provider
//! unavailable.

use crate::http::Server;
use axum::{Json, Router, extract::State, http::HeaderMap, routing::post};
use serde_json::{Value, json};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

/// Key that it requires in the header `x-api-key`.
pub const KEY: &str = "guardrail-simulated-key-0123456789";

#[derive(Default)]
struct World {
    asked: Mutex<Vec<Value>>,
    denied: Mutex<Vec<(String, String, String)>>,
}

/// A simulated provider. It stops with its last handle.
#[derive(Clone)]
pub struct Guardrail {
    world: Arc<World>,
    server: Arc<Server>,
}

impl Guardrail {
    /// Starts one that allows everything.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start() -> io::Result<Self> {
        let world = Arc::new(World::default());
        let router = Router::new().route("/judge", post(judge)).with_state(world.clone());
        let server = Server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), router).await?;
        Ok(Self { world, server: Arc::new(server) })
    }

    /// Returns the address for requests.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/judge", self.server.address())
    }

    /// Denies a tool from now on, with a code and a message.
    pub fn deny(&self, tool: &str, code: &str, message: &str) {
        let [tool, code, message] = [tool, code, message].map(str::to_owned);
        locked(&self.world.denied).push((tool, code, message));
    }

    /// Returns all requests with the key, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        locked(&self.world.asked).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn judge(State(world): State<Arc<World>>, headers: HeaderMap, Json(asked): Json<Value>) -> Json<Value> {
    if headers.get("x-api-key").is_none_or(|key| key != KEY) {
        return Json(json!({ "detail": "who are you?" }));
    }
    let denied = locked(&world.denied).iter().find(|(tool, ..)| asked["tool_name"] == *tool).cloned();
    locked(&world.asked).push(asked);
    Json(match denied {
        Some((_, code, message)) => {
            json!({ "allow": false, "reasons": [{ "code": code, "message": message }], "policy_id": "night" })
        }
        None => json!({ "allow": true, "reasons": [], "policy_id": null, "metadata": {} }),
    })
}
