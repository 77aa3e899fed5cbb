use super::*;
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap as Headers, header::LOCATION},
    response::{IntoResponse, Response},
    routing::post,
};
use pudu_net::install_crypto;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Requests to a provider, each with the value of a header.
type Seen = Arc<Mutex<Vec<(Value, String)>>>;

async fn answer(State(seen): State<Seen>, headers: Headers, Json(asked): Json<Value>) -> Response {
    let key = headers.get("x-key").map(|key| key.to_str().unwrap().to_owned()).unwrap_or_default();
    let tool = asked["tool_name"].as_str().unwrap_or_default().to_owned();
    seen.lock().unwrap().push((asked, key));
    let status = |code: u16| StatusCode::from_u16(code).unwrap();
    match tool.as_str() {
        "allowed" => Json(json!({"allow": true, "policy_id": "p1"})).into_response(),
        "denied" => {
            Json(json!({"allow": false, "reasons": [{"code": "a.b", "message": "no"}]})).into_response()
        }
        "garbage" => "<html>".into_response(),
        "text" => Json(json!({"allow": "true"})).into_response(),
        "nothing" => "".into_response(),
        "giant" => format!("{{\"allow\": true, \"metadata\": \"{}\"}}", "x".repeat(1 << 20)).into_response(),
        "moved" => (status(307), [(LOCATION, "/elsewhere")]).into_response(),
        "created" => (status(201), Json(json!({"allow": true}))).into_response(),
        "broken" => (status(502), Json(json!({"allow": true}))).into_response(),
        _ => std::future::pending().await,
    }
}

/// Starts a provider; returns its client.
async fn provider() -> (HttpGuardrail, Seen) {
    install_crypto();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge?token=hidden", listener.local_addr().unwrap());
    let seen = Seen::default();
    let elsewhere = post(async || Json(json!({"allow": true})));
    let router = Router::new().route("/judge", post(answer)).route("/elsewhere", elsewhere);
    let router = router.with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (asks(&url), seen)
}

fn asks(url: &str) -> HttpGuardrail {
    let headers = vec![("X-Key".to_owned(), SecretString::from("k"))];
    let timeout = Duration::from_millis(300);
    HttpGuardrail::new(&HttpGuardrailSettings { url: Url::parse(url).unwrap(), headers, timeout }).unwrap()
}

fn call(tool: &str) -> GuardrailRequest {
    GuardrailRequest { tool_name: tool.into(), user_id: "ada".into(), ..GuardrailRequest::default() }
}

#[tokio::test]
async fn a_decision_is_requested_and_any_other_response_is_an_error() {
    let (http, seen) = provider().await;
    let allowed = http.evaluate(&call("allowed")).await.unwrap();
    assert_eq!((allowed.allow, allowed.policy_id.as_deref()), (true, Some("p1")));
    let denied = http.evaluate(&call("denied")).await.unwrap();
    assert_eq!((denied.allow, denied.code(), denied.reason()), (false, "a.b".into(), "no".into()));
    let (request, key) = seen.lock().unwrap()[0].clone();
    assert_eq!((request["user_id"].as_str(), key.as_str()), (Some("ada"), "k"));
    let check = async |tool: &str, expect: fn(&GuardrailError) -> bool| {
        let error = http.evaluate(&call(tool)).await.unwrap_err();
        assert!(expect(&error), "{tool}: {error}");
    };
    for garbled in ["garbage", "text", "nothing"] {
        check(garbled, |error| matches!(error, GuardrailError::Garbled(_))).await;
    }
    check("giant", |error| matches!(error, GuardrailError::TooLarge(_))).await;
    check("moved", |error| *error == GuardrailError::Status(307)).await;
    check("created", |error| *error == GuardrailError::Status(201)).await;
    check("broken", |error| *error == GuardrailError::Status(502)).await;
    check("silent", |error| matches!(error, GuardrailError::TooSlow(_))).await;
}

#[tokio::test]
async fn an_unreachable_provider_is_an_error_without_its_url() {
    install_crypto();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/judge?token=hidden", listener.local_addr().unwrap());
    drop(listener);
    let error = asks(&url).evaluate(&call("allowed")).await.unwrap_err();
    assert!(
        matches!(error, GuardrailError::Unreachable(_)) && !error.to_string().contains("hidden"),
        "{error}"
    );
    assert!(asks(&url).check().await.is_err());
}
