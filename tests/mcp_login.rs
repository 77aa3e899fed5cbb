//! `pudu mcp login`, with a browser, a server and its authorization server.

use crate::house::{House, SOON, http};
use axum::{
    Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::net::TcpListener;

type At = State<SocketAddr>;

async fn start() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let app = Router::new()
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/register", post(async || Json(json!({ "client_id": "fresh" }))))
        .route("/authorize", get(authorize))
        .route("/token", post(async || Json(json!({ "access_token": "token-of-the-operator" }))))
        .route("/mcp", post(serve))
        .with_state(at);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    at
}

async fn metadata(State(at): At) -> Json<Value> {
    Json(json!({
        "issuer": format!("http://{at}"),
        "authorization_endpoint": format!("http://{at}/authorize"),
        "token_endpoint": format!("http://{at}/token"),
        "registration_endpoint": format!("http://{at}/register"),
        "code_challenge_methods_supported": ["S256"],
    }))
}

/// Sends the browser back at once.
async fn authorize(Query(asked): Query<HashMap<String, String>>) -> Redirect {
    Redirect::to(&format!("{}?code=c&state={}", asked["redirect_uri"], asked["state"]))
}

async fn serve(headers: HeaderMap, Json(message): Json<Value>) -> Response {
    if headers.get("authorization").is_none_or(|value| value != "Bearer token-of-the-operator") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "f", "version": "1" }
        }),
        "tools/list" => json!({ "tools": [{ "name": "go", "inputSchema": {} }] }),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_logs_in_at_a_server_in_a_browser() {
    let mut house = House::build("").await;
    let at = start().await;
    let servers = json!({ "mcpServers": {
        "safe": { "type": "http", "url": format!("http://{at}/mcp") },
        "local": { "command": "false" },
    } });
    fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    let lists = async |house: &House, line: &str| {
        let late = Instant::now() + SOON;
        loop {
            let (_, said) = house.pudu(&["mcp", "list"]);
            if said.contains(line) {
                return;
            }
            assert!(Instant::now() < late, "{said}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    lists(&house, "log in with `pudu mcp login`").await;
    let (ok, said) = house.pudu(&["mcp", "login", "local"]);
    assert!(!ok && said.contains("only servers over http without other credentials have logins"), "{said}");
    let mut login = house.program(&["mcp", "login", "safe"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("http://")).unwrap();
    let shown = http().get(&address).send().await.unwrap();
    let back = shown.headers()["location"].to_str().unwrap().to_owned();
    // The state of another login, and another path.
    let (port, query) = back.split_once("/callback?").unwrap();
    let forged = http().get(format!("{port}/callback?code=x&state=other")).send().await.unwrap();
    assert_eq!(forged.status(), StatusCode::BAD_REQUEST);
    assert_eq!(http().get(format!("{port}/?{query}")).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    let done = http().get(&back).send().await.unwrap();
    assert_eq!(done.text().await.unwrap(), "You are logged in. You can close this page.");
    assert!(login.wait().unwrap().success());
    lists(&house, "safe: ready in ").await;
    let stored = fs::read_to_string(house.path(".pudu/mcp-logins.json")).unwrap();
    assert!(stored.contains("safe") && !stored.contains("token-of-the-operator"), "{stored}");
    assert!(!house.log().contains("token-of-the-operator"), "{}", house.log());
    house.stop().await;
}
