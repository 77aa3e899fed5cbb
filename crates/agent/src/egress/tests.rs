use super::*;
use pudu_net::guard::Lookup;
use std::{collections::HashMap, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A resolver with fixed names that counts its lookups.
struct Book {
    names: HashMap<&'static str, Vec<IpAddr>>,
    asked: Mutex<Vec<String>>,
}

impl Resolver for Book {
    fn lookup<'a>(&'a self, name: &'a str) -> Lookup<'a> {
        self.asked.lock().unwrap().push(name.to_owned());
        let found = self.names.get(name).cloned().ok_or_else(|| io::Error::other("unknown"));
        Box::pin(std::future::ready(found))
    }
}

/// A proxy, a server that echoes the received head, and the server's port.
struct Stage {
    proxy: SocketAddr,
    port: u16,
    book: Arc<Book>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Stage {
    /// `open.a.example` resolves to the server. Only the server's address counts as public here.
    async fn build() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        let book = Arc::new(Book {
            names: HashMap::from([
                ("open.a.example", vec![here]),
                ("mixed.a.example", vec![here, "10.0.0.1".parse().unwrap()]),
                ("inside.a.example", vec!["169.254.169.254".parse().unwrap()]),
                ("mapped.a.example", vec!["::ffff:127.0.0.1".parse().unwrap()]),
                ("down.a.example", vec![here]),
                ("empty.a.example", vec![]),
            ]),
            asked: Mutex::default(),
        });
        let domain = |text: String| Domain::parse(&text).unwrap();
        let domains = vec![domain(format!("*.a.example:{port}")), domain("down.a.example:9".to_owned())];
        let judge =
            |address: IpAddr| if address.is_ipv4() && address.is_loopback() { None } else { closed(address) };
        let rules = Arc::new(ProxyRules { domains, resolver: book.clone(), closed: judge });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(serve(rules, listener))),
            AbortOnDropHandle::new(tokio::spawn(echo(server))),
        ];
        Self { proxy, port, book, _tasks: tasks }
    }

    /// Sends text to the proxy and returns the whole response.
    async fn say(&self, words: &str) -> String {
        let mut stream = TcpStream::connect(self.proxy).await.unwrap();
        stream.write_all(words.replace("PORT", &self.port.to_string()).as_bytes()).await.unwrap();
        let mut response = String::new();
        // If the proxy keeps the connection open, the test times out.
        stream.read_to_string(&mut response).await.ok();
        response
    }
}

/// Answers each connection once, with the received head.
async fn echo(server: TcpListener) {
    loop {
        let Ok((mut stream, _)) = server.accept().await else { return };
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"END") {
            let Ok(byte) = stream.read_u8().await else { break };
            head.push(byte);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{head}", head.len());
        stream.write_all(answer.as_bytes()).await.ok();
    }
}

#[tokio::test]
async fn an_allowed_name_is_reached_plainly_and_through_a_tunnel() {
    let stage = Stage::build().await;
    let response = stage
        .say(
            "GET http://Open.a.Example:PORT/a?b=c HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: x\r\n\
             Proxy-Authorization: Basic c2VjcmV0\r\nX-Own: 1\r\nConnection: close\r\n\r\n",
        )
        .await;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    let body = response.split_once("\r\n\r\n").unwrap().1.to_lowercase();
    assert!(body.starts_with("get /a?b=c http/1.1\r\n") && body.contains("x-own: 1"), "{response}");
    assert!(body.contains(&format!("host: open.a.example:{}", stage.port)), "{response}");
    assert!(!body.contains("proxy") && !body.contains("other.example"), "{response}");
    let response = stage.say("CONNECT open.a.example:PORT HTTP/1.1\r\nHost: x\r\n\r\nanything END").await;
    let (head, rest) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK") && rest.ends_with("anything END"), "{response}");
    assert_eq!(
        *stage.book.asked.lock().unwrap(),
        ["open.a.example", "open.a.example"],
        "a name is resolved once"
    );
}

#[tokio::test]
async fn forbidden_and_internal_targets_are_refused_with_a_reason() {
    let stage = Stage::build().await;
    let get = |host: &str| {
        format!("GET http://{host}/ HTTP/1.1\r\nHost: open.a.example\r\nConnection: close\r\n\r\n")
    };
    let connect = |host: &str| format!("CONNECT {host} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (wish, status, word) in [
        (get("a.example:PORT"), 403, "allowed domains: *.a.example:"),
        (get("open.a.example"), 403, "open.a.example:80 is not among"),
        (get("evil.net:PORT"), 403, "not among"),
        (get("open.a.example.evil.net:PORT"), 403, "not among"),
        (get("127.0.0.1:PORT"), 403, "not among"),
        (get("[::1]:PORT"), 403, "not among"),
        (connect("2130706433:PORT"), 403, "not among"),
        (connect("169.254.169.254:PORT"), 403, "not among"),
        (connect("inside.a.example:PORT"), 403, "resolves to link-local"),
        (connect("mapped.a.example:PORT"), 403, "resolves to IPv4 in IPv6"),
        (connect("mixed.a.example:PORT"), 403, "resolves to a private network"),
        (connect("nobody.a.example:PORT"), 502, "cannot be reached: unknown"),
        (connect("empty.a.example:PORT"), 502, "its name has no addresses"),
        (connect("down.a.example:9"), 502, "cannot be reached"),
        (get("user@open.a.example:PORT"), 400, "only http:// URLs"),
        (connect("open.a.example"), 400, ""),
        (
            "GET / HTTP/1.1\r\nHost: open.a.example\r\nConnection: close\r\n\r\n".to_owned(),
            400,
            "only http://",
        ),
        (
            "GET ftp://open.a.example:PORT/ HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
            400,
            "only http://",
        ),
        ("garbage\r\n\r\n".to_owned(), 400, ""),
        (format!("GET http://open.a.example:PORT/ HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)), 431, ""),
    ] {
        let response = stage.say(&wish).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")) && response.contains(word),
            "{wish}: {response}"
        );
    }
}

/// Each request is checked, not only the first one of its connection.
#[tokio::test]
async fn a_second_request_on_the_same_connection_is_checked_again() {
    let stage = Stage::build().await;
    let response = stage
        .say(
            "GET http://open.a.example:PORT/first HTTP/1.1\r\nHost: x\r\n\r\n\
             GET http://evil.net:PORT/second HTTP/1.1\r\nHost: open.a.example\r\nConnection: close\r\n\r\n",
        )
        .await;
    assert!(response.contains("GET /first") && response.contains("HTTP/1.1 403"), "{response}");
    assert!(!response.contains("GET /second"), "{response}");
}
