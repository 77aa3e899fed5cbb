//! Tokens of servers over HTTP.

use crate::desk::{SECRET, answer_with_one_tool, call, connect, skipped};
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::net::TcpListener;

/// A provider of tokens and a server that needs them.
#[derive(Default)]
struct Fake {
    /// Forms and `Authorization` headers of the requests for tokens.
    asked: Mutex<Vec<String>>,
    /// The token that the server accepts; others are refused.
    valid: Mutex<String>,
    /// Answer of the provider, if it is not a fresh token.
    answer: Mutex<Option<(StatusCode, Value)>>,
}

async fn start() -> (Arc<Fake>, SocketAddr) {
    let fake = Arc::new(Fake::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let app = Router::new().route("/token", post(token)).route("/mcp", post(serve)).with_state(fake.clone());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (fake, at)
}

async fn token(State(fake): State<Arc<Fake>>, headers: HeaderMap, form: String) -> Response {
    let basic = headers.get("authorization").map_or("-", |value| value.to_str().unwrap());
    let mut asked = fake.asked.lock().unwrap();
    asked.push(format!("{form} {basic}"));
    if let Some((status, answer)) = fake.answer.lock().unwrap().clone() {
        return (status, Json(answer)).into_response();
    }
    let token = format!("token-{}", asked.len());
    fake.valid.lock().unwrap().clone_from(&token);
    let rotated = format!("refresh-{}", asked.len());
    let answer = json!({ "access_token": token, "token_type": "bearer", "expires_in": "3600", "refresh_token": rotated });
    Json(answer).into_response()
}

async fn serve(State(fake): State<Arc<Fake>>, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let sent = headers.get("authorization").map_or("-", |value| value.to_str().unwrap());
    if sent != format!("Bearer {}", fake.valid.lock().unwrap()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    answer_with_one_tool(&message, sent)
}

fn entry(at: SocketAddr, oauth: &Value) -> Value {
    let mut all = json!({ "token_url": format!("http://{at}/token") });
    all.as_object_mut().unwrap().extend(oauth.as_object().unwrap().clone());
    json!({ "type": "http", "url": format!("http://{at}/mcp"), "oauth": all })
}

#[tokio::test]
async fn each_grant_gets_one_token_and_another_when_the_server_refuses_it() {
    let check = async |oauth: Value, first: &str, second: &str| {
        let (fake, at) = start().await;
        let servers = connect(&entry(at, &oauth)).await;
        assert_eq!(skipped(&servers), [""; 0], "{oauth}");
        for _ in 0..2 {
            assert_eq!(call(&servers, "s_go", json!({})).await, Ok("Bearer token-1".to_owned()));
        }
        assert_eq!(*fake.asked.lock().unwrap(), [first]);
        // The provider withdraws the token.
        fake.valid.lock().unwrap().clear();
        assert_eq!(call(&servers, "s_go", json!({})).await, Ok("Bearer token-2".to_owned()));
        assert_eq!(*fake.asked.lock().unwrap(), [first, second]);
    };
    let same = format!("grant_type=client_credentials&scope=a+b&client_id=me&client_secret={SECRET} -");
    check(json!({ "client_id": "me", "client_secret": "$SERVER_TOKEN", "scope": "a b" }), &same, &same).await;
    check(
        json!({
            "client_id": "me", "client_secret": "s&=", "token_endpoint_auth_method": "client_secret_basic",
            "extra_token_params": { "grant_type": "password", "resource": "r" }
        }),
        "grant_type=client_credentials&resource=r Basic bWU6cyY9",
        "grant_type=client_credentials&resource=r Basic bWU6cyY9",
    )
    .await;
    // A refresh token that the provider replaced is used from then on.
    check(
        json!({ "grant_type": "refresh_token", "refresh_token": "$SERVER_TOKEN" }),
        &format!("grant_type=refresh_token&refresh_token={SECRET} -"),
        "grant_type=refresh_token&refresh_token=refresh-1 -",
    )
    .await;
}

#[tokio::test]
async fn a_provider_that_gives_no_token_is_reported_without_secrets() {
    let check = async |status: StatusCode, answer: Value, expect: &str| {
        let (fake, at) = start().await;
        *fake.answer.lock().unwrap() = Some((status, answer.clone()));
        let servers = connect(&entry(at, &json!({ "client_id": "me", "client_secret": SECRET }))).await;
        let expect = format!("MCP server s: there is no token: {expect}");
        assert_eq!(skipped(&servers), [expect], "{answer}");
    };
    let (bad, ok) = (StatusCode::BAD_REQUEST, StatusCode::OK);
    let refused = json!({ "error": "invalid_client", "error_description": format!("not {SECRET}") });
    check(bad, refused.clone(), "it answered 400 Bad Request: invalid_client: not [secret]").await;
    check(ok, refused, "it answered 200 OK: invalid_client: not [secret]").await;
    check(ok, json!({ "token": "x" }), "its answer has no `access_token`").await;
    check(ok, json!({ "access_token": null }), "its answer has no `access_token`").await;
    check(ok, json!({ "access_token": "a\nb" }), "its token cannot be sent in a header").await;
    check(ok, json!([]), "it answered 200 OK without a token: is `token_url` right?").await;
}
