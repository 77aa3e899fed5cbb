//! Logins of an operator at servers over HTTP.

use crate::desk::{answer_with_one_tool, call, config, skipped};
use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use pudu_base::BoxFuture;
use pudu_mcp::{LoginVault, PendingLogin, Servers};
use pudu_net::reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::net::TcpListener;

const REDIRECT: &str = "http://127.0.0.1:9/callback";

/// A server, its authorization server, and what they got.
#[derive(Default)]
struct Fake {
    /// Forms and `Authorization` headers of the requests for tokens.
    asked: Mutex<Vec<String>>,
    registered: Mutex<Vec<Value>>,
    /// The token that the server accepts.
    valid: Mutex<String>,
    /// Fields of the metadata that replace the usual ones: of the resource, and of the authorization server.
    resource: Mutex<Map<String, Value>>,
    metadata: Mutex<Map<String, Value>>,
    /// Whether the token endpoint answers with a page.
    has_page: Mutex<bool>,
}

type Shared = State<(Arc<Fake>, SocketAddr)>;

async fn start() -> (Arc<Fake>, SocketAddr) {
    let fake = Arc::new(Fake::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let app = Router::new()
        .route("/.well-known/oauth-protected-resource/mcp", get(resource))
        .route("/.well-known/oauth-authorization-server/tenant", get(metadata))
        .route("/tenant/register", post(register))
        .route("/tenant/token", post(token))
        .route("/mcp", post(serve))
        .with_state((fake.clone(), at));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (fake, at)
}

fn with(mut usual: Value, other: &Map<String, Value>) -> Json<Value> {
    usual.as_object_mut().unwrap().extend(other.clone());
    Json(usual)
}

async fn resource(State((fake, at)): Shared) -> Json<Value> {
    let usual = json!({
        "resource": format!("http://{at}/mcp"),
        "authorization_servers": [format!("http://{at}/tenant")],
        "scopes_supported": ["read"],
    });
    with(usual, &fake.resource.lock().unwrap())
}

async fn metadata(State((fake, at)): Shared) -> Json<Value> {
    let usual = json!({
        "issuer": format!("http://{at}/tenant"),
        "authorization_endpoint": format!("http://{at}/tenant/authorize?tenant=1"),
        "token_endpoint": format!("http://{at}/tenant/token"),
        "registration_endpoint": format!("http://{at}/tenant/register"),
        "code_challenge_methods_supported": ["S256"],
        "scopes_supported": ["read", "offline_access"],
        "token_endpoint_auth_methods_supported": ["none"],
    });
    with(usual, &fake.metadata.lock().unwrap())
}

async fn register(State((fake, _)): Shared, Json(client): Json<Value>) -> Response {
    fake.registered.lock().unwrap().push(client);
    (StatusCode::CREATED, Json(json!({ "client_id": "fresh" }))).into_response()
}

async fn token(State((fake, _)): Shared, headers: HeaderMap, form: String) -> Response {
    let basic = headers.get("authorization").map_or("-", |value| value.to_str().unwrap());
    let mut asked = fake.asked.lock().unwrap();
    asked.push(format!("{form} {basic}"));
    if *fake.has_page.lock().unwrap() {
        return Html("<h1>Sign in</h1>").into_response();
    }
    let token = format!("token-{}", asked.len());
    fake.valid.lock().unwrap().clone_from(&token);
    let refresh = format!("refresh-{}", asked.len());
    Json(json!({ "access_token": token, "expires_in": 3600, "refresh_token": refresh })).into_response()
}

async fn serve(State((fake, at)): Shared, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let sent = headers.get("authorization").map_or("-", |value| value.to_str().unwrap());
    if sent != format!("Bearer {}", fake.valid.lock().unwrap()) {
        let metadata = format!("http://{at}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer error=\"invalid_token\", resource_metadata=\"{metadata}\"");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
    }
    answer_with_one_tool(&message, sent)
}

/// A vault in memory.
#[derive(Default)]
struct Memory(Mutex<HashMap<String, String>>);

impl LoginVault for Memory {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        let login = self.0.lock().unwrap().get(server).cloned();
        Box::pin(std::future::ready(Ok(login.map(Into::into))))
    }

    fn store<'a>(&'a self, server: &'a str, login: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap().insert(server.to_owned(), login.expose_secret().to_owned());
        Box::pin(std::future::ready(Ok(())))
    }
}

fn entry(at: SocketAddr, path: &str, oauth: &Value) -> Value {
    let mut entry = json!({ "type": "http", "url": format!("http://{at}{path}") });
    if !oauth.is_null() {
        entry["oauth"] = oauth.clone();
    }
    json!({ "s": entry })
}

async fn connect(servers: &Value, vault: &Arc<dyn LoginVault>) -> Servers {
    Servers::connect(config(servers).with_logins(vault)).await
}

async fn begin(servers: &Value, vault: &Arc<dyn LoginVault>) -> Result<PendingLogin, String> {
    config(servers).login("s", REDIRECT, Arc::clone(vault)).await
}

/// Returns a parameter of the address that a person opens.
fn parameter(login: &PendingLogin, name: &str) -> Option<String> {
    let address = Url::parse(&login.address()).unwrap();
    let found = address.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

#[tokio::test]
async fn an_operator_logs_in_and_the_tokens_are_renewed() {
    let (fake, at) = start().await;
    let vault: Arc<dyn LoginVault> = Arc::new(Memory::default());
    let servers = entry(at, "/mcp", &Value::Null);
    let before = connect(&servers, &vault).await;
    let told = skipped(&before).remove(0);
    assert!(told.contains("401 Unauthorized: log in with `pudu mcp login`"), "{told}");
    let login = begin(&servers, &vault).await.unwrap();
    let client = fake.registered.lock().unwrap().remove(0);
    assert_eq!(client["redirect_uris"], json!([REDIRECT]), "{client}");
    assert_eq!(
        (&client["application_type"], &client["token_endpoint_auth_method"]),
        (&json!("native"), &json!("none"))
    );
    for (name, value) in [
        ("tenant", "1"),
        ("client_id", "fresh"),
        ("scope", "read offline_access"),
        ("code_challenge_method", "S256"),
        ("resource", &format!("http://{at}/mcp")),
    ] {
        assert_eq!(parameter(&login, name).as_deref(), Some(value), "{name}");
    }
    let query = format!("code=c&state={}", login.state());
    login.finish(&query).await.unwrap();
    let after = connect(&servers, &vault).await;
    assert_eq!(call(&after, "s_go", json!({})).await, Ok("Bearer token-1".to_owned()));
    // The server refuses the token early; the login also lasts longer than the process.
    fake.valid.lock().unwrap().clear();
    assert_eq!(call(&after, "s_go", json!({})).await, Ok("Bearer token-2".to_owned()));
    fake.valid.lock().unwrap().clear();
    let again = connect(&servers, &vault).await;
    assert_eq!(call(&again, "s_go", json!({})).await, Ok("Bearer token-3".to_owned()));
    let asked = fake.asked.lock().unwrap().clone();
    assert!(
        asked[0].starts_with("grant_type=authorization_code&code=c&") && asked[0].contains("code_verifier="),
        "{asked:?}"
    );
    assert!(
        asked[1].contains("refresh_token=refresh-1&") && asked[2].contains("refresh_token=refresh-2&"),
        "{asked:?}"
    );
    // The tokens of a login go to the URL of that login only.
    let elsewhere = connect(&entry(at, "/mcp?x=1", &Value::Null), &vault).await;
    assert_eq!(skipped(&elsewhere).len(), 1);
}

#[tokio::test]
async fn a_client_of_the_entry_is_used_and_no_client_is_registered() {
    let (fake, at) = start().await;
    fake.metadata
        .lock()
        .unwrap()
        .insert("token_endpoint_auth_methods_supported".into(), json!(["client_secret_basic"]));
    let vault: Arc<dyn LoginVault> = Arc::new(Memory::default());
    let oauth = json!({ "grant_type": "authorization_code", "client_id": "me", "client_secret": "s", "scope": "mine" });
    let login = begin(&entry(at, "/mcp", &oauth), &vault).await.unwrap();
    assert_eq!(parameter(&login, "scope").as_deref(), Some("mine"));
    let query = format!("code=c&state={}", login.state());
    login.finish(&query).await.unwrap();
    assert!(fake.registered.lock().unwrap().is_empty());
    let asked = fake.asked.lock().unwrap().clone();
    assert!(asked[0].ends_with(" Basic bWU6cw=="), "{asked:?}");
}

#[tokio::test]
async fn answers_that_do_not_belong_to_the_login_are_refused() {
    let (fake, at) = start().await;
    let vault: Arc<dyn LoginVault> = Arc::new(Memory::default());
    let check = async |query: &str, expect: &str| {
        let login = begin(&entry(at, "/mcp", &Value::Null), &vault).await.unwrap();
        let query =
            query.replace("STATE", login.state()).replace("ISSUER", &format!("http%3A%2F%2F{at}%2Ftenant"));
        let error = login.finish(&query).await.unwrap_err();
        assert!(error.contains(expect), "{query}: {error}");
    };
    check("code=c&state=other", "the answer belongs to another login").await;
    check("code=c", "the answer belongs to another login").await;
    check("code=c&state=STATE&iss=http%3A%2F%2Fevil.example", "the answer is of another issuer").await;
    check("code=c&state=STATE&iss=ISSUER%2F", "the answer is of another issuer").await;
    check(
        "error=access_denied&error_description=no&state=STATE",
        "the authorization server answered access_denied: no",
    )
    .await;
    check("state=STATE", "the answer has no code").await;
    *fake.has_page.lock().unwrap() = true;
    check("code=c&state=STATE", "it answered 200 OK without a token").await;
    fake.metadata
        .lock()
        .unwrap()
        .insert("authorization_response_iss_parameter_supported".into(), json!(true));
    check("code=c&state=STATE", "the answer does not name its issuer").await;
    assert_eq!(vault.load("s").await.map(|login| login.is_some()), Ok(false));
}

#[tokio::test]
async fn a_login_with_unsafe_metadata_does_not_begin() {
    let check = async |resource: Value, metadata: Value, expect: &str| {
        let (fake, at) = start().await;
        fake.resource.lock().unwrap().extend(resource.as_object().unwrap().clone());
        fake.metadata.lock().unwrap().extend(metadata.as_object().unwrap().clone());
        let vault: Arc<dyn LoginVault> = Arc::new(Memory::default());
        let error = begin(&entry(at, "/mcp", &Value::Null), &vault).await.err().unwrap_or_default();
        assert!(error.contains(expect), "{resource} {metadata}: {error}");
    };
    let none = || json!({});
    check(json!({ "resource": "https://other.example/mcp" }), none(), "those of another resource").await;
    check(json!({ "resource": 7 }), none(), "those of another resource").await;
    check(
        json!({ "authorization_servers": ["http://evil.example"] }),
        none(),
        "an address that is not https",
    )
    .await;
    check(none(), json!({ "issuer": "http://127.0.0.1/other" }), "another issuer").await;
    check(none(), json!({ "code_challenge_methods_supported": ["plain"] }), "does not support PKCE").await;
    check(none(), json!({ "code_challenge_methods_supported": null }), "does not support PKCE").await;
    check(none(), json!({ "token_endpoint": "ftp://x" }), "an address that is not https").await;
    check(none(), json!({ "token_endpoint": null }), "no `token_endpoint`").await;
    check(none(), json!({ "registration_endpoint": null }), "registers no clients").await;
}
