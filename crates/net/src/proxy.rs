//! Proxies from the environment, for the HTTP client and for other connections such as WebSockets.

use crate::{retry::CONNECT_TIMEOUT, tls, with_causes};
use hyper::Uri;
use hyper_util::{
    client::{
        legacy::connect::{
            HttpConnector,
            proxy::{SocksV5, Tunnel},
        },
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use rustls::pki_types::ServerName;
use std::{
    error::Error,
    fmt, io,
    sync::{Arc, OnceLock},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tower::{Service, ServiceExt};
use url::Url;

/// A bidirectional byte stream.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a host, directly or through a proxy.
pub type HostStream = Box<dyn Duplex>;

/// Reason why a connection failed, without the proxy's password.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host is unreachable, and no proxy is configured for it.
    #[error("{0}")]
    Direct(#[from] io::Error),
    /// The proxy is unreachable, or refused to connect.
    #[error("no connection through the proxy {proxy}: {why}")]
    Proxy {
        /// Address of the proxy.
        proxy: String,
        /// Description of the error.
        why: String,
    },
}

/// An environment variable is not a valid proxy address. Its value is omitted, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the environment variable {0} is not the URL of a proxy: write `http://HOST:PORT`, or `https://`, `socks5://` or \
     `socks5h://`"
)]
pub struct ProxyFault(&'static str);

/// Proxies from the environment.
#[derive(Clone, Default)]
pub struct ProxySettings {
    /// `HTTP_PROXY`, for connections without TLS.
    pub http: String,
    /// `HTTPS_PROXY`, for connections with TLS.
    pub https: String,
    /// `ALL_PROXY`, if the specific variable is not set.
    pub all: String,
    /// `NO_PROXY`: hosts to connect to directly.
    pub no: String,
}

/// The settings of this process.
static IN_FORCE: OnceLock<ProxySettings> = OnceLock::new();

impl ProxySettings {
    /// Returns the settings of this process, which every connection uses: those of [`Self::enforce`], or else of the
    /// environment.
    #[must_use]
    pub fn in_force() -> Self {
        IN_FORCE.get_or_init(Self::from_env).clone()
    }

    /// Makes these the settings of this process instead of the environment's. Has no effect once a connection has used
    /// other settings.
    pub fn enforce(self) {
        IN_FORCE.set(self).ok();
    }

    /// Reads the environment. Upper-case names take precedence. Startup checks the values with [`Self::check`].
    #[must_use]
    pub fn from_env() -> Self {
        let [http, https, all, no] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].map(|name| {
            let value = std::env::var_os(name).or_else(|| std::env::var_os(name.to_ascii_lowercase()));
            // Invalid UTF-8 makes the address invalid, which the check detects.
            value.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
        });
        Self { http, https, all, no }
    }

    /// Checks that each proxy is usable. Otherwise calls would bypass a proxy with an invalid address.
    ///
    /// # Errors
    /// When an address is invalid.
    pub fn check(&self) -> Result<(), ProxyFault> {
        let all = [("HTTP_PROXY", &self.http), ("HTTPS_PROXY", &self.https), ("ALL_PROXY", &self.all)];
        let is_unusable = |(_, address): &(&str, &String)| !address.is_empty() && !is_proxy(address);
        all.into_iter().find(is_unusable).map_or(Ok(()), |(name, _)| Err(ProxyFault(name)))
    }

    /// Connects to a host, written as in URLs: an IPv6 address is in brackets. `secure` is true if TLS follows.
    ///
    /// # Errors
    /// When the host or the proxy is unreachable, or the proxy refuses.
    pub async fn connect(&self, host: &str, port: u16, secure: bool) -> Result<HostStream, HostError> {
        let Some((proxy, to)) = self.proxy(host, port, secure) else {
            let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
            stream.set_nodelay(true)?;
            return Ok(Box::new(stream));
        };
        // This address has no credentials.
        let name = proxy.uri().to_string().trim_end_matches('/').to_owned();
        let why = |error: BoxError| with_causes(error.to_string(), &*error);
        by_proxy(&proxy, to).await.map_err(|error| HostError::Proxy { proxy: name, why: why(error) })
    }

    /// Returns whether a proxy is used for a host.
    #[must_use]
    pub fn has_proxy_for(&self, host: &str, port: u16, secure: bool) -> bool {
        self.proxy(host, port, secure).is_some()
    }

    /// Returns the proxy's address for a request of the HTTP client, with credentials.
    #[must_use]
    pub fn for_request(&self, url: &Url) -> Option<Url> {
        let secure = url.scheme() == "https";
        self.proxy(url.host_str()?, url.port_or_known_default()?, secure)?;
        let own = if secure { &self.https } else { &self.http };
        let mut addresses = [own, &self.all].into_iter().filter(|address| !address.is_empty());
        addresses.find_map(|address| with_scheme(address))
    }

    /// Returns the proxy's host and port for a request of the HTTP client, without credentials.
    #[must_use]
    pub fn shown_for(&self, url: &Url) -> Option<String> {
        let secure = url.scheme() == "https";
        let (proxy, _) = self.proxy(url.host_str()?, url.port_or_known_default()?, secure)?;
        Some(proxy.uri().authority()?.to_string())
    }

    /// Returns the entries of `NO_PROXY` that can match no host.
    #[must_use]
    pub fn useless_exceptions(&self) -> Vec<&str> {
        let entries = self.no.split(',').map(str::trim);
        entries.filter(|entry| entry.contains("://") || entry.contains(';')).collect()
    }

    /// Returns the proxy for a host, and the host's address.
    fn proxy(&self, host: &str, port: u16, secure: bool) -> Option<(Intercept, Uri)> {
        if [&self.http, &self.https, &self.all].into_iter().all(String::is_empty) {
            return None;
        }
        let scheme = if secure { "https" } else { "http" };
        let to: Uri = format!("{scheme}://{host}:{port}/").parse().ok()?;
        let rules = Matcher::builder().http(self.http.as_str()).https(self.https.as_str());
        let direct = self.direct(port);
        // The matcher accepts `*` for names only, not for IP addresses.
        if direct.split(',').any(|entry| entry == "*") {
            return None;
        }
        let rules = rules.all(self.all.as_str()).no(direct).build();
        Some((rules.intercept(&to)?, to))
    }

    /// Returns the hosts to connect to directly at a port. An entry may be limited to a port.
    fn direct(&self, port: u16) -> String {
        let at_port = |entry: &'_ str| match entry.rsplit_once(':') {
            Some((host, at)) if !host.contains(':') || host.ends_with(']') => match at.parse::<u16>() {
                Ok(at) if at == port => Some(host.trim_matches(['[', ']']).to_owned()),
                Ok(_) => None,
                Err(_) => Some(entry.to_owned()),
            },
            _ => Some(entry.trim_matches(['[', ']']).to_owned()),
        };
        let entries = self.no.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.filter_map(at_port).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Debug for ProxySettings {
    /// Formats which proxies are set, but not their addresses, which may contain passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ProxySettings");
        for (name, address) in [("http", &self.http), ("https", &self.https), ("all", &self.all)] {
            out.field(name, &if address.is_empty() { "none" } else { "set" });
        }
        out.field("no", &self.no).finish()
    }
}

/// Parses a proxy address. The default scheme is HTTP.
fn with_scheme(address: &str) -> Option<Url> {
    match address.contains("://") {
        true => Url::parse(address).ok(),
        false => Url::parse(&format!("http://{address}")).ok(),
    }
}

/// Returns whether a proxy address works with both the matcher and the HTTP client.
fn is_proxy(address: &str) -> bool {
    let any_host = Uri::from_static("http://host.invalid/");
    // Without a scheme, a port distinguishes an address from any other word.
    let host = address.rsplit_once('@').map_or(address, |(_, host)| host).trim_end_matches('/');
    let has_port = || host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let has_known_scheme = |url: Url| matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
    (address.contains("://") || has_port())
        && with_scheme(address).is_some_and(has_known_scheme)
        && Matcher::builder().all(address).build().intercept(&any_host).is_some()
}

/// Starts TLS on a connection.
///
/// # Errors
/// When the handshake fails.
pub async fn secure(stream: HostStream, host: &str) -> io::Result<HostStream> {
    let tls = tls().ok_or_else(|| io::Error::other("the system's certificates cannot be read"))?;
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
    Ok(Box::new(TlsConnector::from(Arc::new(tls)).connect(name, stream).await?))
}

type BoxError = Box<dyn Error + Send + Sync>;

async fn by_proxy(proxy: &Intercept, to: Uri) -> Result<HostStream, BoxError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let address = proxy.uri().clone();
    let credentials = proxy.raw_auth().map(|(user, password)| (user.to_owned(), password.to_owned()));
    match address.scheme_str() {
        Some("socks5" | "socks5h") => {
            let resolves = address.scheme_str() == Some("socks5");
            let socks = SocksV5::new(address, http).local_dns(resolves);
            let socks = match credentials {
                Some((user, password)) => socks.with_auth(user, password),
                None => socks,
            };
            call(socks, to).await
        }
        Some("https") => {
            let tls = tls().ok_or("the system's certificates cannot be read")?;
            let https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls);
            call(tunnel(proxy, https.https_only().enable_http1().wrap_connector(http)), to).await
        }
        _ => call(tunnel(proxy, http), to).await,
    }
}

fn tunnel<C>(proxy: &Intercept, connector: C) -> Tunnel<C> {
    let tunnel = Tunnel::new(proxy.uri().clone(), connector);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

async fn call<S>(service: S, to: Uri) -> Result<HostStream, BoxError>
where
    S: Service<Uri>,
    S::Response: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    S::Error: Into<BoxError>,
{
    Ok(Box::new(TokioIo::new(service.oneshot(to).await.map_err(Into::into)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    fn rules(no: &str) -> ProxySettings {
        let [http, https] = ["http://plain.test:1", "http://ada:s3cret@secure.test:2"].map(str::to_owned);
        ProxySettings { http, https, no: no.to_owned(), ..ProxySettings::default() }
    }

    #[test]
    fn every_form_of_an_exception_applies() {
        let cases = [
            ("", "gateway.test", false),
            ("*", "gateway.test", true),
            ("*", "10.1.2.3", true),
            ("x.test, *", "[::1]", true),
            ("gateway.test", "gateway.test", true),
            (".gateway.test", "eu.gateway.test", true),
            ("other.test , gateway.test", "eu.gateway.test", true),
            ("teway.test", "gateway.test", false),
            ("gateway.test:443", "gateway.test", true),
            ("gateway.test:80", "gateway.test", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3:443", "10.1.2.3", true),
            ("::1", "[::1]", true),
            ("[::1]", "[::1]", true),
            ("[::1]:443", "[::1]", true),
            ("[::1]:80", "[::1]", false),
            ("fd00::/8", "[fd00::7]", true),
        ];
        for (no, host, direct) in cases {
            assert_eq!(rules(no).proxy(host, 443, true).is_none(), direct, "{no} for {host}");
        }
    }

    #[test]
    fn connections_with_and_without_tls_have_their_own_proxy() {
        let by = |rules: &ProxySettings, secure| {
            rules.proxy("x.test", 443, secure).map(|(proxy, _)| proxy.uri().to_string())
        };
        let own = rules("");
        assert_eq!(
            (by(&own, true).as_deref(), by(&own, false).as_deref()),
            (Some("http://secure.test:2/"), Some("http://plain.test:1/"))
        );
        let request = |url: &str| own.for_request(&Url::parse(url).unwrap()).map(String::from);
        assert_eq!(request("https://x.test/v1").as_deref(), Some("http://ada:s3cret@secure.test:2/"));
        assert_eq!(request("http://x.test/v1").as_deref(), Some("http://plain.test:1/"));
        assert_eq!(rules("x.test:443").for_request(&Url::parse("https://x.test/v1").unwrap()), None);
        let bare = ProxySettings { all: "proxy.test:8080".into(), ..ProxySettings::default() };
        let request = bare.for_request(&Url::parse("https://x.test/").unwrap());
        assert_eq!(request.map(String::from).as_deref(), Some("http://proxy.test:8080/"));
        let all = ProxySettings { all: "socks5h://all.test:3".into(), ..ProxySettings::default() };
        assert_eq!(by(&all, true).as_deref(), Some("socks5h://all.test:3/"));
        assert!(by(&ProxySettings::default(), true).is_none());
    }

    #[test]
    fn an_unusable_proxy_is_reported_without_its_value() {
        let of = |https: &str| ProxySettings { https: https.to_owned(), ..ProxySettings::default() };
        for usable in [
            "",
            "http://ada:s3cret@proxy.test:3128",
            "proxy.test:8080",
            "https://proxy.test",
            "socks5h://a.test:1",
        ] {
            assert_eq!(of(usable).check(), Ok(()), "{usable}");
        }
        for unusable in [
            "socks://ada:s3cret@a.test:1",
            "ftp://a.test",
            "socks4://a.test:1",
            "garbage",
            "proxy.test:port",
            "http://",
            "http://a b.test",
            "/proxy",
            "\u{fffd}",
        ] {
            assert_eq!(of(unusable).check(), Err(ProxyFault("HTTPS_PROXY")), "{unusable}");
        }
        let error = of("socks://ada:s3cret@a.test:1").check().unwrap_err().to_string();
        assert!(
            error.contains("HTTPS_PROXY") && !error.contains("s3cret") && !error.contains("a.test"),
            "{error}"
        );
        let plain = ProxySettings { http: "socks4://a.test:1".into(), ..ProxySettings::default() };
        assert_eq!(plain.check(), Err(ProxyFault("HTTP_PROXY")));
        let useless = ["http://b.test", "c.test;d.test"];
        assert_eq!(rules("a.test, http://b.test,c.test;d.test,*").useless_exceptions(), useless);
        let all = ProxySettings { all: "socks://a.test".into(), ..of("http://proxy.test:1") };
        assert_eq!(all.check(), Err(ProxyFault("ALL_PROXY")), "even an overridden one");
        let shown = format!("{:?}", rules("x.test"));
        assert!(shown.contains("x.test") && !shown.contains("s3cret") && !shown.contains("ada"), "{shown}");
    }

    /// Starts a proxy that gives this answer and then echoes. Returns its port and the request.
    async fn proxy(answer: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let request = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            client.write_all(answer.as_bytes()).await.unwrap();
            let (mut said, mut back) = client.split();
            tokio::io::copy(&mut said, &mut back).await.ok();
            String::from_utf8(head).unwrap()
        });
        (port, request)
    }

    #[tokio::test]
    async fn a_tunnel_is_requested_with_the_credentials_of_the_address() {
        let (port, request) = proxy("HTTP/1.1 200 OK\r\n\r\n").await;
        let rules = ProxySettings { https: format!("http://ada:s3cret@127.0.0.1:{port}"), ..rules("") };
        let mut stream = rules.connect("gateway.test", 443, true).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut words = [0; 5];
        stream.read_exact(&mut words).await.unwrap();
        assert_eq!(&words, b"hello");
        drop(stream);
        let request = request.await.unwrap();
        assert!(request.starts_with("CONNECT gateway.test:443 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("Proxy-Authorization: Basic YWRhOnMzY3JldA==\r\n"), "{request}");
    }

    #[tokio::test]
    async fn an_error_names_the_proxy_without_its_password() {
        let (port, _asked) = proxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
        for (port, why) in [(port, "proxy authorization required"), (1, "onnect")] {
            let rules = ProxySettings { https: format!("http://ada:s3cret@127.0.0.1:{port}"), ..rules("") };
            let error = rules.connect("gateway.test", 443, true).await.err().unwrap().to_string();
            assert!(error.contains(&format!("the proxy http://127.0.0.1:{port}: ")), "{error}");
            assert!(error.contains(why) && !error.contains("s3cret") && !error.contains("ada"), "{error}");
        }
    }
}
