//! One server of the configuration, with variables and defaults resolved.

use pudu_net::{
    reqwest::{
        Url,
        header::{HeaderMap, HeaderName, HeaderValue},
    },
    scrub::{self, SecretWords},
};
use secrecy::SecretString;
use std::{collections::HashSet, fmt, path::PathBuf, sync::Arc, time::Duration};

/// Maximum length of a server's error that is passed on, in characters.
const MAX_ERROR_CHARS: usize = 600;
/// Maximum length of a tool's error that is passed on to the model, in characters.
const MAX_TOOL_ERROR_CHARS: usize = 8_000;

/// Name of a server, and its configured values, which its errors must not repeat. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ServerLabel {
    name: Arc<str>,
    given: SecretWords,
}

impl ServerLabel {
    pub(crate) fn new(name: &str, given: SecretWords) -> Self {
        Self { name: name.into(), given }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a server's error without secrets, shortened to a few sentences.
    pub(crate) fn hide_and_cut(&self, text: &str) -> String {
        self.hide_and_cut_to(text, MAX_ERROR_CHARS)
    }

    /// Returns a tool's error without secrets.
    pub(crate) fn hide_in_tool_error(&self, text: &str) -> String {
        self.hide_and_cut_to(text, MAX_TOOL_ERROR_CHARS)
    }

    fn hide_and_cut_to(&self, text: &str, limit: usize) -> String {
        let hidden = self.given.hide(text.trim());
        let hidden = scrub::hide(&hidden);
        match hidden.char_indices().nth(limit) {
            Some((at, _)) => format!("{}…", hidden.split_at(at).0),
            None => hidden.into_owned(),
        }
    }
}

/// One server.
pub(crate) struct McpServer {
    pub(crate) label: ServerLabel,
    pub(crate) transport: Transport,
    /// Whether its tools are called `{server}_{tool}`.
    pub(crate) prefix: bool,
    /// Disabled tools, by their original names.
    pub(crate) off: HashSet<String>,
    /// Timeout for the start, until the tools are listed.
    pub(crate) session_timeout: Duration,
    /// Timeout for a call.
    pub(crate) call_timeout: Duration,
}

impl McpServer {
    pub(crate) fn name(&self) -> &str {
        self.label.name()
    }

    /// Returns a server that is never started.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn for_fuzzing() -> Self {
        Self {
            label: ServerLabel::default(),
            transport: Transport::Stdio(ServerCommand {
                program: String::new(),
                args: Vec::new(),
                env: Vec::new(),
                warden: None,
            }),
            prefix: true,
            off: HashSet::new(),
            session_timeout: Duration::ZERO,
            call_timeout: Duration::ZERO,
        }
    }
}

/// How to reach a server.
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
    /// The complete environment of the child.
    pub(crate) env: Vec<(String, SecretString)>,
    /// The program that watches over the child, if there is one.
    pub(crate) warden: Option<PathBuf>,
}

/// Address of a server over HTTP.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

impl Endpoint {
    /// Parses the address and the headers.
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

/// Prints name and transport without the arguments, the environment, the headers and the query, which may be secret.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({} at {:?})", self.name(), self.transport)
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
