//! A server of the configuration, with variables and defaults resolved.

use crate::{
    login::LoginTokens,
    oauth::{LoginClient, Oauth, OauthKind},
};
use pudu_net::{
    reqwest::{
        self, Url,
        header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
    },
    scrub::{self, SecretWords},
};
use secrecy::{ExposeSecret, SecretString};
use std::{collections::HashSet, fmt, path::PathBuf, sync::Arc, time::Duration};

/// Maximum length of a server's error in logs and messages, in characters.
const MAX_ERROR_CHARS: usize = 600;
/// Maximum length of a tool's error that the model gets, in characters.
const MAX_TOOL_ERROR_CHARS: usize = 8_000;

/// A server's name, and its configured values, which errors must not repeat. Cheap to clone.
#[derive(Clone, Default)]
pub struct ServerLabel {
    name: Arc<str>,
    given: SecretWords,
}

/// Shows the name without the values.
impl fmt::Debug for ServerLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl ServerLabel {
    /// Creates the label of a program with these configured values.
    #[must_use]
    pub fn new(name: &str, given: SecretWords) -> Self {
        Self { name: name.into(), given }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a server's error without secrets, cut to a few sentences.
    #[must_use]
    pub fn hide_and_cut(&self, text: &str) -> String {
        self.hide_and_cut_to(text, MAX_ERROR_CHARS)
    }

    /// Returns a tool's error without secrets.
    #[must_use]
    pub fn hide_in_tool_error(&self, text: &str) -> String {
        self.hide_and_cut_to(text, MAX_TOOL_ERROR_CHARS)
    }

    /// Returns a text without secrets and configured values.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        scrub::hide(&self.given.hide(text)).into_owned()
    }

    fn hide_and_cut_to(&self, text: &str, limit: usize) -> String {
        let hidden = self.hide(text.trim());
        match hidden.char_indices().nth(limit) {
            Some((at, _)) => format!("{}…", hidden.split_at(at).0),
            None => hidden,
        }
    }
}

/// One server.
pub(crate) struct McpServer {
    pub(crate) label: ServerLabel,
    pub(crate) transport: Transport,
    /// Whether the server's tools are named `{server}_{tool}`.
    pub(crate) prefix: bool,
    /// Original names of disabled tools.
    pub(crate) off: HashSet<String>,
    /// Timeout for starting the server and listing its tools.
    pub(crate) session_timeout: Duration,
    /// Timeout for a call.
    pub(crate) call_timeout: Duration,
}

impl McpServer {
    pub(crate) fn name(&self) -> &str {
        self.label.name()
    }

    /// Returns whether both would behave the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.transport.is_same(&other.transport)
            && (self.prefix, &self.off) == (other.prefix, &other.off)
            && (self.session_timeout, self.call_timeout) == (other.session_timeout, other.call_timeout)
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
                folder: None,
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

impl Transport {
    fn is_same(&self, other: &Self) -> bool {
        let values = |secrets: &[SecretString]| -> Vec<String> {
            secrets.iter().map(|value| value.expose_secret().to_owned()).collect()
        };
        let pairs = |pairs: &[(String, SecretString)]| -> Vec<(String, String)> {
            pairs.iter().map(|(key, value)| (key.clone(), value.expose_secret().to_owned())).collect()
        };
        match (self, other) {
            (Self::Stdio(one), Self::Stdio(other)) => {
                one.program == other.program
                    && one.warden == other.warden
                    && values(&one.args) == values(&other.args)
                    && pairs(&one.env) == pairs(&other.env)
            }
            (Self::Http(one), Self::Http(other)) => {
                let tokens = match (&one.tokens, &other.tokens) {
                    (Some(one), Some(other)) => one.is_same(other),
                    (one, other) => one.is_none() && other.is_none(),
                };
                tokens && (&one.url, &one.headers) == (&other.url, &other.headers)
            }
            _ => false,
        }
    }
}

/// Command that starts a server.
#[derive(Clone, Debug)]
pub struct ServerCommand {
    /// The program: a path, or a name to find in the child's `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<SecretString>,
    /// The complete environment of the child.
    pub env: Vec<(String, SecretString)>,
    /// Its working directory; `None` for the daemon's.
    pub folder: Option<PathBuf>,
    /// The program that supervises the child, if any.
    pub warden: Option<PathBuf>,
}

/// URL and headers of a server over HTTP.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Source of the `Authorization` header; `None` if `headers` has one.
    pub(crate) tokens: Option<TokenSource>,
}

/// Source of a server's `Authorization` header.
#[derive(Clone)]
pub(crate) enum TokenSource {
    /// A grant without a person.
    Grant(Arc<Oauth>),
    /// A login of an operator.
    Login(Arc<LoginTokens>),
}

impl TokenSource {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Grant(one), Self::Grant(other)) => one.config.is_same(&other.config),
            (Self::Login(one), Self::Login(other)) => one.client.is_same(&other.client),
            _ => false,
        }
    }

    /// Returns the value of the header; `None` if no operator has logged in.
    ///
    /// # Errors
    /// The reason why there is no token, which may quote the provider.
    pub(crate) async fn header(
        &self,
        http: &reqwest::Client,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, String> {
        match self {
            Self::Grant(oauth) => oauth.header(http, refused).await.map(Some),
            Self::Login(login) => login.header(http, refused).await,
        }
    }
}

impl Endpoint {
    /// Parses the URL and the headers.
    pub(crate) fn new(
        server: &str,
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
        oauth: Option<OauthKind>,
    ) -> Result<Self, &'static str> {
        let url = Url::parse(url).map_err(|_| "`url` is not a valid URL")?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("`url` must begin with http:// or https://");
        }
        let headers =
            headers.into_iter().map(|(name, value)| header(&name, &value)).collect::<Result<_, _>>();
        let headers: HeaderMap = headers?;
        let login = |client| TokenSource::Login(Arc::new(LoginTokens::new(server, url.clone(), client)));
        let tokens = match oauth {
            Some(OauthKind::Grant(config)) => Some(TokenSource::Grant(Arc::new(Oauth::new(*config)))),
            Some(OauthKind::Login(client)) => Some(login(client)),
            None if headers.contains_key(AUTHORIZATION) => None,
            None => Some(login(LoginClient::default())),
        };
        Ok(Self { url, headers, tokens })
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name = name.parse().map_err(|_| "`headers` has a name that no header can have")?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| "`headers` has a value that no header can have (a line break, perhaps?)")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Shows name and transport without the arguments, environment, headers and query, which may contain secrets.
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
