//! The guard against a server on loopback. 127.0.0.2 plays the public internet and is allowed by the test; 127.0.0.1
//! must not be reached.

use super::*;
use axum::{
    Router,
    body::Body,
    extract::State,
    http::Uri,
    response::{IntoResponse, Response},
};
use flate2::{Compression, write::GzEncoder};
use reqwest::header::{CONTENT_LENGTH, RETRY_AFTER};
use std::{
    collections::VecDeque,
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::net::TcpListener;

const OUTSIDE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A name and its successive lookups.
type Known = (&'static str, VecDeque<Vec<IpAddr>>);

/// Resolves names as configured; the last result is repeated.
#[derive(Default)]
struct Book {
    answers: Mutex<Vec<Known>>,
    asked: AtomicUsize,
}

impl Resolver for Book {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let known = answers.iter_mut().find(|(known, _)| *known == name);
        let found = known.map(|(_, answers)| match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        });
        Box::pin(std::future::ready(found.ok_or_else(|| io::Error::other("no such name"))))
    }
}

struct Web {
    guard: Guard,
    book: Arc<Book>,
    port: u16,
    inside: u16,
    /// Number of requests to the internal server.
    reached: Arc<AtomicUsize>,
    /// Headers of each request to the external server.
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

#[derive(Clone)]
struct Site {
    port: u16,
    inside: u16,
    seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

/// Starts an external and an internal site with these names.
async fn web(names: &[(&'static str, &[&[IpAddr]])]) -> Web {
    let outside = TcpListener::bind((OUTSIDE, 0)).await.unwrap();
    let inside = TcpListener::bind((INSIDE, 0)).await.unwrap();
    let (port, inside_port) = (outside.local_addr().unwrap().port(), inside.local_addr().unwrap().port());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let site = Site { port, inside: inside_port, seen: seen.clone() };
    let reached = Arc::new(AtomicUsize::new(0));
    let count = reached.clone();
    let secret = move || {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready("the secrets of the house")
    };
    tokio::spawn(async move { axum::serve(inside, Router::new().fallback(secret)).await });
    tokio::spawn(async move { axum::serve(outside, Router::new().fallback(page).with_state(site)).await });
    let answers = names.iter().map(|(name, answers)| (*name, answers.iter().map(|a| a.to_vec()).collect()));
    let book = Arc::new(Book { answers: Mutex::new(answers.collect()), asked: AtomicUsize::new(0) });
    let guard = Guard::with(AllowedTargets::new(["127.0.0.2"]), book.clone()).unwrap();
    Web { guard, book, port, inside: inside_port, reached, seen }
}

async fn page(State(site): State<Site>, uri: Uri, headers: HeaderMap) -> Response {
    site.seen.lock().unwrap().push((uri.path().to_owned(), headers));
    let Site { port, inside, .. } = site;
    let to = |place: String| (StatusCode::FOUND, [(LOCATION, place)]).into_response();
    match uri.path() {
        "/loopback" => to(format!("http://127.0.0.1:{inside}/")),
        "/metadata" => to("http://169.254.169.254/latest/meta-data/".to_owned()),
        "/name-inside" => to(format!("http://inside.example:{inside}/")),
        "/file" => to("file:///etc/passwd".to_owned()),
        "/broken" => to("http://[".to_owned()),
        "/loop" => to("/loop".to_owned()),
        "/once" => to("page".to_owned()),
        "/elsewhere" => to(format!("http://other.example:{port}/back")),
        "/back" => to(format!("http://site.example:{port}/page")),
        "/login" => (StatusCode::UNAUTHORIZED, "no").into_response(),
        "/busy" => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "7")], "no").into_response(),
        "/giant" => vec![b'x'; 200_000].into_response(),
        "/endless" => {
            let chunk = || Ok::<_, io::Error>(Bytes::from(vec![b'x'; 10_000]));
            Body::from_stream(futures_util::stream::repeat_with(chunk)).into_response()
        }
        "/bomb" => ([(CONTENT_ENCODING, "gzip")], bomb()).into_response(),
        "/zipped" => ([(CONTENT_ENCODING, "gzip")], gzip(b"unpacked")).into_response(),
        "/brotli" => ([(CONTENT_ENCODING, "br")], "?").into_response(),
        "/cut" => (
            [(CONTENT_LENGTH, "100")],
            Body::from_stream(futures_util::stream::iter([
                Ok(Bytes::from_static(b"half")),
                Err(io::Error::other("cut")),
            ])),
        )
            .into_response(),
        "/drip" => Body::from_stream(futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, io::Error>(Bytes::from_static(b".")), ()))
        }))
        .into_response(),
        "/silent" => std::future::pending().await,
        _ => ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "hello").into_response(),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// 4 MiB in 4 KiB.
fn bomb() -> Vec<u8> {
    gzip(&vec![0; 4 * 1024 * 1024])
}

impl Web {
    async fn fetch(&self, url: &str) -> Result<Fetched, GuardError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "text/html".parse().unwrap());
        headers.insert("authorization", "Bearer secret".parse().unwrap());
        headers.insert("cookie", "session=secret".parse().unwrap());
        headers.insert("x-api-key", "secret".parse().unwrap());
        let bounds = FetchBounds { size: 100_000, time: Duration::from_secs(20) };
        self.guard.fetch(url, headers, bounds).await
    }

    /// Fetches a path of the external site and describes the result.
    async fn result(&self, url: &str) -> String {
        match self.fetch(url).await {
            Ok(fetched) => format!("{} {}", fetched.status, String::from_utf8_lossy(&fetched.body)),
            Err(error) => format!("Error: {error}"),
        }
    }

    fn site(&self, path: &str) -> String {
        format!("http://site.example:{}{path}", self.port)
    }
}

async fn site() -> Web {
    web(&[
        ("site.example", &[&[OUTSIDE]]),
        ("other.example", &[&[OUTSIDE]]),
        ("inside.example", &[&[INSIDE]]),
        ("both.example", &[&[OUTSIDE, INSIDE]]),
        ("none.example", &[&[]]),
    ])
    .await
}

#[tokio::test]
async fn a_page_is_returned_with_its_headers() {
    let web = site().await;
    let fetched = web.fetch(&web.site("/once#part")).await.unwrap();
    let expect = Fetched {
        url: Url::parse(&web.site("/page")).unwrap(),
        status: 200,
        kind: "text/plain; charset=utf-8".to_owned(),
        retry_after: None,
        body: Bytes::from_static(b"hello"),
    };
    assert_eq!(fetched, expect);
    assert_eq!(web.result(&web.site("/zipped")).await, "200 unpacked");
    assert_eq!(web.result(&web.site("/login")).await, "401 ");
    assert_eq!(web.fetch(&web.site("/busy")).await.unwrap().retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn internal_addresses_are_not_reached_by_name_or_redirect() {
    let web = site().await;
    let redirect = "Error: the site redirects to a refused URL: ";
    let inside = format!("inside.example:{}", web.inside);
    for (url, expect) in [
        (format!("http://127.0.0.1:{}/", web.inside), "Error: 127.0.0.1 resolves to loopback"),
        (format!("http://{inside}/"), "Error: inside.example resolves to loopback"),
        (format!("http://both.example:{}/", web.inside), "Error: both.example resolves to loopback"),
        (web.site("/loopback"), &format!("{redirect}127.0.0.1 resolves to loopback")),
        (web.site("/metadata"), &format!("{redirect}169.254.169.254 resolves to link-local")),
        (web.site("/file"), &format!("{redirect}file URLs cannot be fetched")),
        (web.site("/name-inside"), "Error: inside.example resolves to loopback"),
        (web.site("/broken"), "Error: the site redirects to an invalid URL"),
        (web.site("/loop"), "Error: the site redirects more than 5 times"),
        ("http://none.example/".to_owned(), "Error: none.example cannot be found: its name has no addresses"),
        ("http://unknown.example/".to_owned(), "Error: unknown.example cannot be found: no such name"),
    ] {
        let result = web.result(&url).await;
        assert!(result.starts_with(expect), "{url}: {result}");
    }
    assert_eq!(web.reached.load(Ordering::Relaxed), 0);
}

/// DNS rebinding: the check sees an external address, and a second lookup would return an internal one.
#[tokio::test]
async fn the_connection_uses_the_checked_address() {
    let web = web(&[("rebind.example", &[&[OUTSIDE], &[INSIDE]])]).await;
    let url = format!("http://rebind.example:{}/page", web.port);
    assert_eq!(web.result(&url).await, "200 hello");
    assert_eq!(web.book.asked.load(Ordering::Relaxed), 1, "a connection resolves once");
    let inside = format!("http://rebind.example:{}/", web.inside);
    let result = web.result(&inside).await;
    assert!(result.starts_with("Error: rebind.example resolves to loopback"), "{result}");
    assert_eq!(web.reached.load(Ordering::Relaxed), 0);
}

/// CVE-2026-32913: headers for one origin do not follow a redirect to another, not even back.
#[tokio::test]
async fn credentials_do_not_follow_a_redirect_to_another_origin() {
    let web = site().await;
    assert_eq!(web.result(&web.site("/once")).await, "200 hello");
    assert_eq!(web.result(&web.site("/elsewhere")).await, "200 hello");
    let seen = web.seen.lock().unwrap();
    let sent: Vec<_> = seen
        .iter()
        .map(|(path, headers)| {
            let has = |name: &str| headers.contains_key(name);
            (path.as_str(), has("authorization") || has("cookie") || has("x-api-key"), has("accept"))
        })
        .collect();
    let expect = [
        ("/once", true, true),
        ("/page", true, true),
        ("/elsewhere", true, true),
        ("/back", false, true),
        ("/page", false, true),
    ];
    assert_eq!(sent, expect);
}

#[tokio::test]
async fn the_size_is_bounded_regardless_of_headers() {
    let web = site().await;
    let large = "Error: the content is larger than 97 KiB";
    for (path, expect) in [("/giant", large), ("/endless", large), ("/bomb", large)] {
        assert_eq!(web.result(&web.site(path)).await, expect, "{path}");
    }
    let result = web.result(&web.site("/cut")).await;
    assert!(
        result.starts_with("Error: site.example cannot be reached, or closed the connection"),
        "{result}"
    );
    let result = web.result(&web.site("/brotli")).await;
    assert_eq!(result, "Error: the site uses a compression that was not requested: br");
}

#[tokio::test(start_paused = true)]
async fn the_time_is_bounded() {
    let web = site().await;
    for path in ["/drip", "/silent"] {
        assert_eq!(web.result(&web.site(path)).await, "Error: it took longer than 20 s", "{path}");
    }
}

#[tokio::test]
async fn urls_fetched_by_others_are_checked_as_well() {
    let web = site().await;
    for (url, expect) in [
        ("http://site.example/", Ok(())),
        ("http://unknown.example/", Ok(())),
        (
            "http://inside.example/",
            Err(
                "inside.example resolves to loopback, not to the public internet: fetch a public URL instead",
            ),
        ),
        (
            "http://[::1]/",
            Err("::1 resolves to loopback, not to the public internet: fetch a public URL instead"),
        ),
    ] {
        let said = web.guard.check(url).await.map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(said, expect.map_err(str::to_owned), "{url}");
    }
}
