//! The HTTP API, as programs see it.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

#[tokio::test]
async fn a_fast_model_outruns_its_reply_and_people_see_every_word() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let text: String = (0..6_000).map(|n| format!("w{n} ")).collect();
    let mut hold = house.model.hold(1, At::Start);
    house.model.next(Reply::text(&text).words_per_chunk(1));
    ada.say("flood");
    hold.reached().await.unwrap();
    hold.proceed();
    house
        .telegram
        .wait(SOON, |view| view.last_answer(ada.chat)?.trim_end().ends_with("w5999").then_some(()))
        .await
        .unwrap();
    let seen: String = ada.answers().into_iter().map(|answer| format!("{} ", answer.text)).collect();
    let missing = (0..6_000).find(|n| !seen.contains(&format!("w{n} ")));
    assert_eq!(missing, None, "people see every word");
}

/// Returns the body of a request for a run.
fn asked(text: &str) -> Value {
    json!({"input": {"messages": [{"type": "human", "content": text}]}})
}

#[tokio::test]
async fn bad_requests_get_a_clear_error() {
    let house = House::open("").await;
    // What is too large is not read to its end, and the connection is of no use after that.
    let post = |path: &str, body: String| {
        let url = format!("http://{}{path}", house.address);
        async move {
            let answer = http()
                .post(url)
                .header("connection", "close")
                .header("content-type", "application/json")
                .body(body)
                .send()
                .await
                .unwrap();
            answer.status().as_u16()
        }
    };
    let command = "/api/threads/x/slash-commands";
    assert_eq!(post("/api/runs", asked(" ").to_string()).await, 422);
    assert_eq!(post("/api/runs", "{".into()).await, 400);
    assert_eq!(post(command, json!({"txt": 1}).to_string()).await, 422);
    assert_eq!(post("/api/threads/a%20b/slash-commands", json!({"text": "hi"}).to_string()).await, 422);
    assert_eq!(post(command, json!({"text": "x".repeat(300_000)}).to_string()).await, 413);
    assert_eq!(post(command, json!({"text": "x".repeat(2_000_000)}).to_string()).await, 413);
    assert_eq!(post("/api/webhooks/telegram/telegram", "{}".into()).await, 404, "no webhook is configured");
    assert_eq!(house.get("/nowhere").await.0, 404);
}

#[tokio::test]
async fn another_site_cannot_use_the_api_through_a_persons_browser() {
    let house = House::open("").await;
    let url = format!("http://{}/api/runs", house.address);
    let send = |name: &'static str, value: &'static str| {
        let call = http().post(&url).header("content-type", "application/json").header(name, value);
        async move { call.body(asked("hi").to_string()).send().await.unwrap().status().as_u16() }
    };
    assert_eq!(send("origin", "https://evil.example").await, 403);
    assert_eq!(send("origin", "null").await, 403);
    assert_eq!(send("host", "evil.example").await, 403, "a rebound name is not ours");
    assert_eq!(send("sec-fetch-site", "cross-site").await, 403, "a picture or a form without an origin");
    assert_eq!(send("x-nothing", "x").await, 200);
}

#[tokio::test]
async fn beyond_this_machine_a_token_is_asked_for() {
    let house = House::furnish(Default::default(), "", "gateway:\n  token: open-sesame-123\n").await;
    let mut house = house;
    house.start();
    let ask = |token: Option<&'static str>| {
        let call = http().get(format!("http://{}/api/models", house.address));
        let call = match token {
            Some(token) => call.bearer_auth(token),
            None => call,
        };
        async move { call.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(
        (ask(None).await, ask(Some("wrong")).await, ask(Some("open-sesame-123")).await),
        (401, 401, 200)
    );
    assert_eq!((house.get("/health").await.0, house.get("/").await.0), (200, 200));
}

#[tokio::test]
async fn a_message_whose_sender_hangs_up_is_answered_all_the_same() {
    use std::io::Write;
    let house = House::open("").await;
    for _ in 0..300 {
        let body = asked("hello").to_string();
        let mut socket = std::net::TcpStream::connect(&house.address).unwrap();
        let head = format!(
            "POST /api/runs HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            house.address,
            body.len(),
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        // Closed without waiting for the answer.
    }
    // The runs that were accepted end, without a restart.
    let open = async || {
        let url = format!("http://{}/api/threads/search", house.address);
        let found = http().post(url).json(&json!({"status": "busy"})).send().await.unwrap();
        found.json::<Vec<Value>>().await.unwrap().len()
    };
    let deadline = std::time::Instant::now() + 4 * SOON;
    while open().await > 0 {
        assert!(std::time::Instant::now() < deadline, "{} runs are stranded", open().await);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert_eq!(house.get("/ready").await.0, 200);
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    use tokio::io::AsyncReadExt;
    let house = House::open("").await;
    let mut silent = tokio::net::TcpStream::connect(&house.address).await.unwrap();
    let closed = tokio::time::timeout(SOON, silent.read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn every_error_has_the_same_shape() {
    let house = House::open("").await;
    let at = |path: &str| format!("http://{}{path}", house.address);
    let json = ("content-type", "application/json");
    let cases = [
        (http().get(at("/api/nothing")), 404, "not found: no route has this path"),
        (http().get(at("/nothing")), 404, "not found: no route has this path"),
        (http().delete(at("/api/models")), 405, "method not allowed here"),
        (http().post(at("/health")), 405, "method not allowed here"),
        (
            http().post(at("/api/runs")).header(json.0, json.1).body("{"),
            400,
            "the body is not valid JSON: EOF",
        ),
        (
            http().post(at("/api/runs")).body("{}"),
            415,
            "send a JSON body with `content-type: application/json`",
        ),
        (
            http().post(at("/api/runs")).header(json.0, json.1).body("[1]"),
            422,
            "expected an object, got a list",
        ),
        (
            http().get(at("/api/threads/a/artifacts/mnt/user-data/outputs/a?download=1&download=2")),
            422,
            "`download` is a duplicate key",
        ),
        (
            http().get(at("/api/threads/a/artifacts/mnt/user-data/outputs/a?download=perhaps")),
            422,
            "download: expected true or false, got `perhaps`",
        ),
        (
            http().post(at("/api/threads/a/uploads")).header(json.0, json.1).body("{}"),
            415,
            "multipart/form-data",
        ),
        (
            http().post(at("/api/v1/auth/login/local")).header(json.0, json.1).body("{}"),
            415,
            "send a form with `content-type: ",
        ),
        (
            http()
                .post(at("/api/v1/auth/login/local"))
                .header("content-type", "application/x-www-form-urlencoded")
                .body("username=ada%40example.com"),
            422,
            "`password` is missing",
        ),
        (http().get(at("/api/threads/a/runs/none/stream")), 404, ""),
        (http().get(at("/api/threads/a/artifacts/mnt/user-data/outputs/a")), 404, ""),
        // The last one: the server closes the connection, which others would be given.
        (
            http().post(at("/api/runs")).header(json.0, json.1).body("x".repeat((16 << 20) + 1)),
            413,
            "the body has 16777217 bytes; the limit here is 16.0 MiB (16777216 bytes)",
        ),
    ];
    for (call, status, detail) in cases {
        let answer = call.send().await.unwrap();
        let url = answer.url().clone();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (status, &"application/json".parse().unwrap()),
            "{url}"
        );
        if status == 405 {
            assert!(answer.headers().contains_key("allow"), "{url}");
        }
        let told: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert!(told["detail"].as_str().unwrap().contains(detail), "{url}: {told}");
    }
}
