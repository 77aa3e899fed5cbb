//! One server as the configuration means it: every variable replaced, every default in place.

use pudu_net::reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use secrecy::SecretString;
use std::{collections::HashSet, fmt, path::PathBuf, time::Duration};

/// One server.
pub(crate) struct McpServer {
    pub(crate) name: String,
    pub(crate) transport: Transport,
    /// Whether its tools are called `{server}_{tool}`.
    pub(crate) prefix: bool,
    /// Tools of it that are switched off, by its own names of them.
    pub(crate) off: HashSet<String>,
    /// It has so long to get ready.
    pub(crate) session_timeout: Duration,
    /// A call has so long; without end if none.
    pub(crate) call_timeout: Option<Duration>,
}

/// How to reach it.
#[derive(Clone)]
pub(crate) enum Transport {
    /// A child process.
    Stdio(ServerCommand),
    /// Streamable HTTP.
    Http(Endpoint),
}

/// Command that starts a server.
#[derive(Clone)]
pub(crate) struct ServerCommand {
    pub(crate) program: String,
    pub(crate) args: Vec<SecretString>,
    /// The whole environment of the child.
    pub(crate) env: Vec<(String, SecretString)>,
    /// The program that watches over it, if there is one.
    pub(crate) warden: Option<PathBuf>,
}

/// Address of a server that is reached over HTTP.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Endpoint {
    /// Reads the address and the headers.
    pub(crate) fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, &'static str> {
        let url = Url::parse(url).map_err(|_| "`url` is no address")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("`url` must begin with http:// or https://");
        }
        let headers =
            headers.into_iter().map(|(name, value)| header(&name, &value)).collect::<Result<_, _>>();
        Ok(Self { url, headers: headers? })
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name = name.parse().map_err(|_| "`headers` has a name that no header can have")?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| "`headers` has a value that no header can have (a line break, perhaps?)")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Prints name and transport without the arguments, the environment, the headers and the query, which may be
/// secret.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({} at {:?})", self.name, self.transport)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(command) => f.write_str(&command.program),
            Self::Http(endpoint) => f.write_str(&endpoint.url.origin().ascii_serialization()),
        }
    }
}
