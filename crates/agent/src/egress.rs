//! An HTTP proxy in the daemon for sandboxes whose commands may reach only some domains.
//!
//! A sandbox has its own network, which contains only a listener served by the daemon. A name is checked first
//! (`domain.rs`), then resolved once. Addresses outside of the public internet are refused, and the connection uses a
//! checked address. The content of a tunnel is not inspected: a command with access to `cdn.example` reaches everything
//! that its servers serve.

mod domain;

pub use domain::Domain;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    header::{
        CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, UPGRADE,
    },
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use pudu_base::BoxFuture;
use pudu_net::guard::{Resolver, System, closed};
use pudu_sandbox::Egress;
use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of concurrent connections of one command; more wait.
const MAX_CONNECTIONS: usize = 128;
/// Timeout for resolving a name, and for connecting to a server.
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout of a client's request head.
const HEAD: Duration = Duration::from_secs(30);
/// Maximum size of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Headers that apply to a single connection and are not forwarded.
const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    PROXY_AUTHORIZATION,
    UPGRADE,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("te"),
];

type ProxyReply = Response<Either<Full<Bytes>, ConnectedBody>>;

/// A proxy that lets commands reach only some domains.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyRules>);

struct ProxyRules {
    domains: Vec<Domain>,
    resolver: Arc<dyn Resolver>,
    /// Returns the kind of a forbidden address; `None` if the address is allowed.
    closed: fn(IpAddr) -> Option<&'static str>,
}

impl Proxy {
    /// Creates a proxy that allows these domains.
    #[must_use]
    pub fn new(domains: Vec<Domain>) -> Self {
        Self(Arc::new(ProxyRules { domains, resolver: Arc::new(System), closed }))
    }
}

impl Egress for Proxy {
    fn serve(&self, listener: TcpListener) -> BoxFuture<'static, ()> {
        Box::pin(serve(self.0.clone(), listener))
    }
}

/// Serves until the future is dropped, which also drops every connection.
async fn serve(rules: Arc<ProxyRules>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(converse(rules.clone(), stream))),
                // The limit on open files may have been reached, so the next attempt waits.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The two ends of a tunnel, used after the client has received its answer.
type Tunnel = Arc<Mutex<Option<(OnUpgrade, TcpStream)>>>;

async fn converse(rules: Arc<ProxyRules>, stream: TcpStream) {
    let tunnel = Tunnel::default();
    let service = service_fn(|request| {
        let (rules, tunnel) = (rules.clone(), tunnel.clone());
        async move { Ok::<_, Infallible>(answer(&rules, request, &tunnel).await.unwrap_or_else(refusal)) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if connection.await.is_err() {
        return;
    }
    let connection = tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((client, mut server)) = connection
        && let Ok(client) = client.await
    {
        // Both sides notice the end of the copy, with or without an error.
        copy_bidirectional(&mut TokioIo::new(client), &mut server).await.ok();
    }
}

/// Why a request is refused: the status, and a text for the reader of the command's output.
type ProxyRefusal = (StatusCode, String);

fn refusal((status, why): ProxyRefusal) -> ProxyReply {
    let mut reply = Response::new(Either::Left(Full::from(format!("{why}\n"))));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}

async fn answer(
    rules: &ProxyRules,
    mut request: Request<Incoming>,
    tunnel: &Tunnel,
) -> Result<ProxyReply, ProxyRefusal> {
    let connect = request.method() == Method::CONNECT;
    let (host, port) = target(request.uri(), connect)?;
    let server = rules.connect(&host, port).await?;
    if connect {
        let client = hyper::upgrade::on(&mut request);
        *tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some((client, server));
        return Ok(Response::new(Either::Left(Full::default())));
    }
    hand_on(request, server).await
}

/// Returns host and port of a request to a proxy.
fn target(uri: &Uri, connect: bool) -> Result<(String, u16), ProxyRefusal> {
    let unclear = || (StatusCode::BAD_REQUEST, "this proxy accepts only http:// URLs and CONNECT".to_owned());
    let plain = connect || uri.scheme_str() == Some("http");
    let authority = uri.authority().filter(|_| plain).ok_or_else(unclear)?;
    if authority.as_str().contains('@') {
        return Err(unclear());
    }
    let port = authority.port_u16().or((!connect).then_some(80)).ok_or_else(unclear)?;
    Ok((authority.host().trim_end_matches('.').to_ascii_lowercase(), port))
}

impl ProxyRules {
    /// Connects to an allowed domain.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ProxyRefusal> {
        if !self.domains.iter().any(|domain| domain.admits(host, port)) {
            let domains = self.domains.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let why = format!("{host}:{port} is not among the allowed domains: {domains}");
            return Err((StatusCode::FORBIDDEN, why));
        }
        let unreachable = |why: &str| (StatusCode::BAD_GATEWAY, format!("{host} cannot be reached: {why}"));
        let found = timeout(CONNECT, self.resolver.lookup(host)).await;
        let addresses = found.map_err(|_| unreachable("its name cannot be resolved"))?;
        let addresses = addresses.map_err(|error| unreachable(&error.to_string()))?;
        // One internal address is enough to refuse: a domain with mixed addresses is probably an attack.
        if let Some(what) = addresses.iter().find_map(|address| (self.closed)(*address)) {
            return Err((StatusCode::FORBIDDEN, format!("{host} resolves to {what}, which is not allowed")));
        }
        let attempt = async {
            let mut last = "its name has no addresses".to_owned();
            for address in addresses {
                match TcpStream::connect(SocketAddr::new(address, port)).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error.to_string(),
                }
            }
            Err(last)
        };
        let connected = timeout(CONNECT, attempt).await.map_err(|_| unreachable("it does not answer"))?;
        connected.map_err(|why| unreachable(&why))
    }
}

/// Forwards a request to the server, and returns the server's answer.
async fn hand_on(mut request: Request<Incoming>, server: TcpStream) -> Result<ProxyReply, ProxyRefusal> {
    let broken =
        |error: hyper::Error| (StatusCode::BAD_GATEWAY, format!("the server closed the connection: {error}"));
    let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse();
    *request.uri_mut() = path.map_err(|_| (StatusCode::BAD_REQUEST, "the path is invalid".to_owned()))?;
    strip(request.headers_mut());
    // The URL counts, not the `Host` header of the request.
    let host = HeaderValue::try_from(authority);
    request
        .headers_mut()
        .insert(HOST, host.map_err(|_| (StatusCode::BAD_REQUEST, "the host is invalid".to_owned()))?);
    let (mut send, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(server)).await.map_err(broken)?;
    let driver = AbortOnDropHandle::new(tokio::spawn(async move {
        // The reader of the body gets the error.
        connection.await.ok();
    }));
    let (mut parts, body) = send.send_request(request).await.map_err(broken)?.into_parts();
    strip(&mut parts.headers);
    Ok(Response::from_parts(parts, Either::Right(ConnectedBody { body, _driver: driver })))
}

fn strip(headers: &mut HeaderMap) {
    HOP_BY_HOP.iter().for_each(|name| drop(headers.remove(name)));
}

/// A server's body, with its connection.
struct ConnectedBody {
    body: Incoming,
    _driver: AbortOnDropHandle<()>,
}

impl Body for ConnectedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
