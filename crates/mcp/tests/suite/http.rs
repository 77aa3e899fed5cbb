//! Servers reached over streamable HTTP.

use crate::desk::{SECRET, call, config, connect, names, skipped};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use pudu_mcp::Servers;
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// How the fake server misbehaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Answers with JSON.
    Json,
    /// Answers with a stream of events.
    Events,
    /// Answers every request with this.
    Always(StatusCode, &'static str, &'static str),
    /// Never answers.
    Mute,
    /// Answers calls without end.
    Endless(&'static str),
    /// Answers calls with their own text, as this type.
    Raw(Option<&'static str>),
    /// Knows its newest session only, and refuses others with this type and text.
    Forgetful(&'static str, &'static str),
}

struct Fake {
    manner: Manner,
    /// Method, path and authorization of each request.
    seen: Mutex<Vec<String>>,
    /// Number of the newest session.
    session: AtomicUsize,
}

async fn start(manner: Manner, at: Option<SocketAddr>) -> (Arc<Fake>, SocketAddr, JoinHandle<()>) {
    let fake = Arc::new(Fake { manner, seen: Mutex::default(), session: AtomicUsize::default() });
    let listener = TcpListener::bind(at.unwrap_or(([127, 0, 0, 1], 0).into())).await.unwrap();
    let at = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer).with_state(fake.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (fake, at, serving)
}

async fn answer(
    State(fake): State<Arc<Fake>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let authorization = headers.get("authorization").map_or("-", |value| value.to_str().unwrap());
    fake.seen.lock().unwrap().push(format!("{method} {} {authorization}", uri.path()));
    if uri.path() == "/mcp" {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/mcp/")]).into_response();
    }
    if uri.path() == "/away" {
        return (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "http://127.0.0.1:1/mcp")])
            .into_response();
    }
    let mut response = match fake.manner {
        Manner::Forgetful(kind, text) if method == Method::POST => {
            fake.in_session(&headers, &serde_json::from_slice(&body).unwrap(), kind, text)
        }
        manner => respond(manner, method, &body).await,
    };
    // No connection is kept, so that a server that went away is gone at once.
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

impl Fake {
    /// Answers in the newest session, and begins another one if it is asked to.
    fn in_session(
        &self,
        headers: &HeaderMap,
        message: &Value,
        kind: &'static str,
        text: &'static str,
    ) -> Response {
        if message["method"] == "initialize" {
            self.session.fetch_add(1, Ordering::SeqCst);
        }
        let newest = format!("session-{}", self.session.load(Ordering::SeqCst));
        let sent = headers.get("mcp-session-id").map_or("", |value| value.to_str().unwrap());
        if message["method"] != "initialize" && sent != newest {
            return (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, kind)], text).into_response();
        }
        let mut response = speak(Manner::Json, message);
        response.headers_mut().insert("mcp-session-id", newest.parse().unwrap());
        response
    }
}

async fn respond(manner: Manner, method: Method, body: &Bytes) -> Response {
    match (manner, method) {
        (Manner::Mute, _) => std::future::pending().await,
        (Manner::Always(status, kind, text), _) => {
            (status, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        (_, Method::DELETE) => StatusCode::NO_CONTENT.into_response(),
        (_, Method::POST) => speak(manner, &serde_json::from_slice(body).unwrap()),
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn speak(manner: Manner, message: &Value) -> Response {
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "annotations": { "readOnlyHint": "yes" } }] }),
        "tools/call" => match manner {
            Manner::Endless(kind) => return endless(kind),
            Manner::Raw(kind) => {
                let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
                let text = text.replace("$ID", &message["id"].to_string());
                let mut response = Response::new(Body::from(text));
                if let Some(kind) = kind {
                    response.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
                }
                return response;
            }
            _ => json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] }),
        },
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    let session = ("mcp-session-id", "session-1");
    match manner {
        Manner::Events => {
            let text = format!(": hello\n\nevent: message\ndata: {answer}\n\n");
            ([(header::CONTENT_TYPE.as_str(), "text/event-stream"), session], text).into_response()
        }
        _ => ([(header::CONTENT_TYPE.as_str(), "application/json"), session], answer).into_response(),
    }
}

fn endless(kind: &'static str) -> Response {
    let chunk = Bytes::from(vec![b'x'; 1024 * 1024]);
    let bytes = futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
    ([(header::CONTENT_TYPE, kind)], Body::from_stream(bytes)).into_response()
}

fn entry(at: SocketAddr, path: &str) -> Value {
    json!({
        "type": "http",
        "url": format!("http://{at}{path}?key={SECRET}"),
        "headers": { "Authorization": "$SERVER_TOKEN" },
        "session_init_timeout": 5,
    })
}

#[tokio::test]
async fn tools_work_over_json_and_over_events_with_the_entrys_headers() {
    for manner in [Manner::Json, Manner::Events] {
        let (fake, at, _serving) = start(manner, None).await;
        let servers = connect(&entry(at, "/there")).await;
        assert_eq!(skipped(&servers), [""; 0]);
        assert_eq!(names(&servers), ["s_echo"]);
        assert_eq!(call(&servers, "s_echo", json!({ "text": "héllo" })).await, Ok("héllo".to_owned()));
        servers.close().await;
        let seen = fake.seen.lock().unwrap();
        let (last, others) = seen.split_last().unwrap();
        assert_eq!(last, &format!("DELETE /there {SECRET}"), "the session was not ended");
        assert!(others.contains(&format!("POST /there {SECRET}")));
        assert!(seen.iter().all(|request| request.ends_with(SECRET)), "{seen:?}");
    }
}

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed_and_none_to_another() {
    let (_fake, at, _serving) = start(Manner::Json, None).await;
    let servers = connect(&entry(at, "/mcp")).await;
    assert_eq!(call(&servers, "s_echo", json!({ "text": "moved" })).await, Ok("moved".to_owned()));
    let servers = connect(&entry(at, "/away")).await;
    assert_eq!(skipped(&servers), ["MCP server s: it redirects to another place"]);
}

#[tokio::test]
async fn bad_servers_are_reported_without_address_and_key() {
    let check = async |manner: Manner, expect: &str| {
        let (_fake, at, _serving) = start(manner, None).await;
        let mut entry = entry(at, "/there");
        if manner == Manner::Mute {
            entry["session_init_timeout"] = json!(0.5);
        }
        assert_eq!(skipped(&connect(&entry).await), [format!("MCP server s: {expect}")]);
    };
    let html = "text/html";
    check(
        Manner::Always(StatusCode::UNAUTHORIZED, html, "who are you"),
        "it answered 401 Unauthorized: log in with `pudu mcp login`, or look at `headers` or `oauth`",
    )
    .await;
    check(
        Manner::Always(StatusCode::NOT_FOUND, html, "<h1>?</h1>"),
        "it answered 404 Not Found: look at `url`",
    )
    .await;
    check(Manner::Always(StatusCode::BAD_GATEWAY, html, "nginx"), "it answered 502 Bad Gateway").await;
    let foreign = "it answered with something else than the protocol: is the url right?";
    check(Manner::Always(StatusCode::OK, html, "<h1>Welcome</h1>"), foreign).await;
    check(Manner::Always(StatusCode::OK, "application/json", "{\"ok\":"), foreign).await;
    check(
        Manner::Always(
            StatusCode::BAD_REQUEST,
            "application/json",
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"too old: hunter2-hunter2"}}"#,
        ),
        "it refused: too old: [secret]",
    )
    .await;
    check(Manner::Mute, "did not get ready within 500ms (session_init_timeout)").await;
    let nobody = entry(([127, 0, 0, 1], 1).into(), "/there");
    assert_eq!(skipped(&connect(&nobody).await), ["MCP server s: it cannot be reached: no connection"],);
}

#[tokio::test]
async fn endless_answers_are_refused() {
    for kind in ["application/json", "text/event-stream"] {
        let (_fake, at, _serving) = start(Manner::Endless(kind), None).await;
        let servers = connect(&entry(at, "/there")).await;
        let calling = call(&servers, "s_echo", json!({}));
        let error = tokio::time::timeout(Duration::from_secs(20), calling).await.unwrap().unwrap_err();
        assert!(error.starts_with("MCP server s: "), "{kind}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let (_fake, at, serving) = start(Manner::Json, None).await;
    let servers = Servers::connect(config(&json!({ "s": entry(at, "/there") }))).await;
    serving.abort();
    serving.await.unwrap_err();
    let error = call(&servers, "s_echo", json!({ "text": "?" })).await.unwrap_err();
    assert!(error.starts_with("MCP server s: it cannot be reached"), "{error}");
    let (_fake, _, _serving) = start(Manner::Json, Some(at)).await;
    assert_eq!(call(&servers, "s_echo", json!({ "text": "back" })).await, Ok("back".to_owned()));
}

#[tokio::test]
async fn a_session_that_a_server_forgot_begins_again() {
    let refusal = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session not found"}}"#;
    for (kind, text) in
        [("application/json", refusal), ("text/plain", "Not Found"), ("text/html", "<h1>?</h1>")]
    {
        let (fake, at, _serving) = start(Manner::Forgetful(kind, text), None).await;
        let servers = connect(&entry(at, "/there")).await;
        for text in ["before", "after"] {
            assert_eq!(
                call(&servers, "s_echo", json!({ "text": text })).await,
                Ok(text.to_owned()),
                "{kind}"
            );
            fake.session.fetch_add(7, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn answers_are_read_leniently_over_json_and_over_events() {
    let foreign = "it answered with something else than the protocol: is the url right?";
    let unreadable = "it sent an answer that cannot be read: it is no JSON";
    let check = async |kind: Option<&'static str>, text: &str, expect: Result<&str, &str>| {
        let (_fake, at, _serving) = start(Manner::Raw(kind), None).await;
        let servers = connect(&entry(at, "/there")).await;
        let calling = call(&servers, "s_echo", json!({ "text": text }));
        let answer = tokio::time::timeout(Duration::from_secs(30), calling).await.expect("the call hangs");
        let expect = expect.map(str::to_owned).map_err(|error| format!("MCP server s: {error}"));
        assert_eq!(answer, expect, "{kind:?} {text}");
    };
    let ok = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"a \ud83d b"}]}}"#;
    let read = Ok("a \u{fffd} b");
    for kind in [Some("application/json; charset=utf-8"), Some("Text/Plain"), None] {
        check(kind, ok, read).await;
    }
    let json = Some("application/json");
    check(json, &format!("[{ok}]"), read).await;
    check(json, &ok.replace("$ID", "null"), read).await;
    check(json, "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"cut", Err(unreadable)).await;
    check(json, "oops", Err(foreign)).await;
    check(json, r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#, Err("no"))
        .await;
    check(Some("text/html"), ok, Err(foreign)).await;
    let events = Some("text/event-stream");
    let noise = "data: hello\n\n: comment\n\nevent: ping\ndata: {}\n\ndata:\n\ndata: {\"level\":1}\n\n";
    check(events, &format!("{noise}data: {ok}\n\n"), read).await;
    check(events, &format!("data: {}\n\n", ok.replace(r#","result""#, "\ndata: ,\"result\"")), read).await;
    check(events, "data: {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\n\n", Err(unreadable)).await;
    // A stream that ends before the answer.
    check(events, noise, Err("the connection ended before the answer; it may or may not have done the work"))
        .await;
}
