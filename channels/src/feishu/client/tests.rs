use super::*;
use axum::{Json, Router, extract::Request, http::HeaderMap, response::IntoResponse};
use std::sync::{Arc, Mutex};

/// A platform that issues tokens with these lifetimes and accepts only the newest.
#[derive(Clone, Default)]
struct Platform {
    given: Arc<Mutex<u32>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Platform {
    async fn take(self, request: Request) -> axum::response::Response {
        let path = request.uri().path().to_owned();
        if path.ends_with("internal") {
            // Long enough for concurrent callers.
            tokio::time::sleep(Duration::from_millis(30)).await;
            let mut given = self.given.lock().unwrap();
            *given += 1;
            let body = json!({"code": 0, "tenant_access_token": format!("t-{given}"), "expire": 7200});
            return Json(body).into_response();
        }
        let bearer = |headers: &HeaderMap| headers.get("authorization")?.to_str().ok().map(str::to_owned);
        let token = bearer(request.headers()).unwrap_or_default();
        self.asked.lock().unwrap().push(format!("{path} {token}"));
        if token != format!("Bearer t-{}", self.given.lock().unwrap()) {
            let body = json!({"code": 99_991_663, "msg": "Invalid access token"});
            return (axum::http::StatusCode::BAD_REQUEST, Json(body)).into_response();
        }
        match path.rsplit('/').next().unwrap_or_default() {
            "elsewhere" => axum::response::Redirect::temporary("http://127.0.0.2:1/file").into_response(),
            "file" => "bytes".into_response(),
            "a.json" => ([("content-disposition", "attachment")], Json(json!({"code": 7}))).into_response(),
            "refused" => Json(json!({"code": 234_003, "msg": "File not in msg."})).into_response(),
            "page" => "<html>".into_response(),
            _ => Json(json!({"code": 0, "data": {"fine": true}})).into_response(),
        }
    }
}

async fn client() -> (Arc<FeishuClient>, Platform, String) {
    let platform = Platform::default();
    let serve = platform.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = Router::new().fallback(move |request| serve.clone().take(request));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = FeishuClient::new(url.parse().unwrap(), "cli".into(), "s3cret".into()).unwrap();
    (Arc::new(client), platform, url)
}

#[tokio::test]
async fn concurrent_calls_share_one_token_request() {
    let (client, platform, _) = client().await;
    let calls = (0..20).map(|_| {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.call(Method::GET, "x/v1/y", None).await })
    });
    for call in futures_util::future::join_all(calls).await {
        assert_eq!(call.unwrap(), Ok(json!({"fine": true})));
    }
    assert_eq!(*platform.given.lock().unwrap(), 1);
    // The token expires: many callers notice, one renews it.
    *platform.given.lock().unwrap() += 1;
    let calls = (0..20).map(|_| {
        let client = Arc::clone(&client);
        tokio::spawn(async move { client.call(Method::GET, "x/v1/y", None).await })
    });
    for call in futures_util::future::join_all(calls).await {
        assert_eq!(call.unwrap(), Ok(json!({"fine": true})));
    }
    assert_eq!(*platform.given.lock().unwrap(), 3);
}

#[tokio::test]
async fn the_token_is_sent_only_to_the_platform() {
    let (client, platform, _) = client().await;
    let fetched = client.fetch("im/v1/file", 1000).await.unwrap().text().await.unwrap();
    assert_eq!(fetched, "bytes");
    let json = client.fetch("im/v1/a.json", 1000).await.unwrap().text().await.unwrap();
    assert_eq!(json, r#"{"code":7}"#, "a file that looks like an answer");
    assert_eq!(client.fetch("im/v1/refused", 1000).await.map(|_| ()).unwrap_err().code(), Some(234_003));
    let led_away = client.fetch("im/v1/elsewhere", 1000).await.map(|_| ());
    assert!(led_away.is_err(), "a redirect is not followed");
    let requests = platform.asked.lock().unwrap();
    assert!(requests.iter().all(|call| call.starts_with("/open-apis/im/v1/")), "{requests:?}");
}

#[tokio::test]
async fn errors_contain_neither_token_nor_secret() {
    let (client, _, url) = client().await;
    client.call(Method::GET, "x", None).await.unwrap();
    let unreadable = client.call(Method::GET, "x/page", None).await.unwrap_err();
    assert!(unreadable.may_be_done());
    let gone =
        FeishuClient::new("http://127.0.0.1:1/".parse().unwrap(), "cli".into(), "s3cret".into()).unwrap();
    let unreachable = gone.call(Method::GET, "x", None).await.unwrap_err();
    assert!(matches!(unreachable, CallError::Unconnected(_)), "{unreachable:?}");
    for failure in [unreadable, unreachable] {
        let text = format!("{failure:?} {failure}");
        assert!(!text.contains("s3cret") && !text.contains("t-1") && !text.contains(&url), "{text}");
    }
}

#[tokio::test]
async fn the_platforms_clock_is_read() {
    let (client, _, _) = client().await;
    let (server_time, here) = (client.clock().await.unwrap(), SystemTime::now());
    let apart = server_time.duration_since(here).unwrap_or_else(|early| early.duration());
    assert!(apart.as_secs() < 10, "{apart:?}");
}
