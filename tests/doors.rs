//! The HTTP server's limits: slow or unauthenticated clients do not lock out others.

use crate::house::{House, SOON, http};
use reqwest::multipart::{Form, Part};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// A time before the daemon gives up a slow client, which takes 10 s.
const BEFORE_PATIENCE: Duration = Duration::from_secs(9);

/// Opens a connection, and sends the beginning of a request.
async fn begin(house: &House, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&house.address).await.unwrap();
    stream.write_all(words.replace("HOST", &house.address).as_bytes()).await.unwrap();
    stream
}

/// Sends a request over a new connection; returns the status.
async fn status(house: &House, path: &str, token: Option<&str>) -> u16 {
    let mut call = http().get(format!("http://{}{path}", house.address));
    if let Some(token) = token {
        call = call.bearer_auth(token);
    }
    call.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_prove_nothing_shut_nobody_out() {
    // More than the limit per address; the daemon accepts 4,096 connections.
    let connections = 2_200;
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum.map(|most| most.min(16_384)), maximum }).unwrap();
    let house = House::open("").await;
    let heads = [
        "GET /api/models HTTP/1.1\r\nHost: HOST\r\nX-Slow: ",
        "POST /api/session HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{",
        "",
    ];
    let mut open = Vec::new();
    for number in 0..connections {
        open.push(begin(&house, heads[number % heads.len()]).await);
    }
    for path in ["/health", "/api/models", "/", "/api/channels", "/api/models"] {
        assert_eq!(status(&house, path, None).await, 200, "{path}");
    }
    // They continue like this.
    for stream in &mut open {
        stream.write_all(b"x").await.ok();
    }
    assert_eq!(status(&house, "/api/models", None).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_a_byte_at_a_time_is_not_waited_for() {
    let house = House::open("").await;
    let head = "POST /api/session HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n";
    let (mut read, mut write) = begin(&house, head).await.into_split();
    let dripping = tokio::spawn(async move {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    let mut answer = [0; 12];
    let told = timeout(SOON, read.read_exact(&mut answer)).await;
    dripping.abort();
    assert!(told.is_ok(), "it is still waited for");
    assert!(answer.ends_with(b" 408"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_shut_uploads_for_nobody_else() {
    let house = House::open("").await;
    let head = "POST /api/threads/slow/uploads HTTP/1.1\r\nHost: HOST\r\nContent-Length: 90000\r\n\
                Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n\
                Content-Disposition: form-data; name=\"files\"; filename=\"a\"\r\n\r\nx";
    let mut slow = Vec::new();
    for _ in 0..12 {
        slow.push(begin(&house, head).await);
    }
    let form = Form::new().part("files", Part::bytes(b"quick".to_vec()).file_name("quick.txt"));
    let put =
        http().post(format!("http://{}/api/threads/quick/uploads", house.address)).multipart(form).send();
    let put = timeout(BEFORE_PATIENCE, put).await.expect("uploads are shut").unwrap();
    assert_eq!(put.status(), 200);
    // Slow clients soon get an error.
    let mut answer = [0; 12];
    timeout(SOON, slow[0].read_exact(&mut answer)).await.unwrap().unwrap();
    assert!(answer.ends_with(b" 408"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_slowed_down_and_the_right_one_is_let_in_all_the_same() {
    let house = House::open("").await;
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let took = |begin: Instant| begin.elapsed() >= Duration::from_millis(900);
    assert_eq!(status(&house, "/api/audit", Some(&token)).await, 200);
    let mut slow = 0;
    for number in 0..20 {
        let begin = Instant::now();
        assert_eq!(status(&house, "/api/audit", Some(&format!("wrong-{number}"))).await, 401);
        slow += usize::from(took(begin));
    }
    // A few are slow on a busy machine.
    assert!(slow < 10, "mistakes are answered at once: {slow} of 20 were not");
    for path in ["/api/audit", "/api/models"] {
        let begin = Instant::now();
        let refused = status(&house, path, Some("wrong again")).await == 429;
        // Also without sign-in: an invalid token is not ignored.
        assert!(took(begin) && refused, "{path}");
    }
    let begin = Instant::now();
    let login = http()
        .post(format!("http://{}/api/session", house.address))
        .json(&serde_json::json!({"token": "no"}));
    assert_eq!(login.send().await.unwrap().status(), 429);
    assert!(took(begin));
    assert_eq!(status(&house, "/api/audit", Some(&token)).await, 200);
    assert_eq!(status(&house, "/api/models", None).await, 200);
}
