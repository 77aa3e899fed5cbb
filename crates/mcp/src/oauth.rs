//! Access tokens for servers over HTTP, by the grants `client_credentials` and `refresh_token`. Credentials are sent only
//! to the `token_url` of the entry, never to an address that a server names.
//!
//! Deliberately absent: logins of people (`login.rs`), and storage of tokens. A refresh token that the provider replaced
//! is kept until the daemon stops.

use crate::expand::Expand;
use base64::{Engine, prelude::BASE64_STANDARD};
use indexmap::IndexMap;
use pudu_net::{
    read_body,
    reqwest::{
        self, Url,
        header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    },
    scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::{sync::Mutex, time::Instant};

/// Timeout of a request for a token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of an answer of a token endpoint, in bytes.
const MAX_TOKEN_BYTES: usize = 64 * 1024;
/// Lifetime of a token whose provider does not state one.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(3600);
/// Longest lifetime that is believed.
const MAX_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Default of `refresh_skew_seconds`.
const DEFAULT_SKEW: Duration = Duration::from_secs(60);

/// `oauth` of a server's entry, in DeerFlow's format.
#[derive(Deserialize)]
pub(crate) struct OauthEntry {
    #[serde(default = "yes")]
    enabled: bool,
    #[serde(default)]
    token_url: String,
    grant_type: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    refresh_token: Option<String>,
    scope: Option<String>,
    audience: Option<String>,
    token_endpoint_auth_method: Option<String>,
    token_field: Option<String>,
    token_type_field: Option<String>,
    expires_in_field: Option<String>,
    default_token_type: Option<String>,
    refresh_skew_seconds: Option<f64>,
    #[serde(default)]
    extra_token_params: IndexMap<String, String>,
}

fn yes() -> bool {
    true
}

/// The client of an entry, for authorization servers that register none.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginClient {
    pub(crate) id: Option<String>,
    pub(crate) secret: Option<SecretString>,
    pub(crate) scope: Option<String>,
}

impl LoginClient {
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let secret = |client: &Self| client.secret.as_ref().map(|secret| secret.expose_secret().to_owned());
        (&self.id, &self.scope) == (&other.id, &other.scope) && secret(self) == secret(other)
    }
}

/// How an entry gets its tokens.
#[derive(Debug)]
pub(crate) enum OauthKind {
    /// By a grant without a person.
    Grant(Box<OauthConfig>),
    /// By a login of an operator, with this client.
    Login(LoginClient),
}

/// How to get a token.
#[derive(Debug)]
pub(crate) struct OauthConfig {
    token_url: Url,
    /// Parameters of the request, without the refresh token and without credentials that a header carries.
    params: IndexMap<String, SecretString>,
    /// Client id and secret in the header of the request.
    basic: Option<(String, SecretString)>,
    refresh_token: Option<SecretString>,
    /// Names of the fields of the answer: the token, its type and its lifetime.
    fields: [String; 3],
    default_type: String,
    skew: Duration,
}

impl OauthEntry {
    /// Resolves the entry. Returns `None` if it is disabled.
    pub(crate) fn resolve(mut self, expand: &mut Expand<'_>) -> Result<Option<OauthKind>, String> {
        if !self.enabled {
            return Ok(None);
        }
        if self.grant_type.as_deref() == Some("authorization_code") {
            return Ok(Some(OauthKind::Login(LoginClient {
                id: resolved(expand, "client_id", self.client_id.take()),
                secret: resolved(expand, "client_secret", self.client_secret.take()).map(Into::into),
                scope: resolved(expand, "scope", self.scope.take()),
            })));
        }
        let token_url = Url::parse(&expand.value(&self.token_url)).ok();
        let token_url = token_url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let token_url =
            token_url.ok_or("`oauth` needs a `token_url` that begins with http:// or https://")?;
        let refresh_token = resolved(expand, "refresh_token", self.refresh_token.take());
        let (params, basic) = self.params(expand, refresh_token.is_some())?;
        let skew = self.refresh_skew_seconds.unwrap_or(DEFAULT_SKEW.as_secs_f64()).max(0.0);
        let field = |name: Option<String>, default: &str| name.unwrap_or_else(|| default.to_owned());
        Ok(Some(OauthKind::Grant(Box::new(OauthConfig {
            token_url,
            params,
            basic,
            refresh_token: refresh_token.map(Into::into),
            fields: [
                field(self.token_field, "access_token"),
                field(self.token_type_field, "token_type"),
                field(self.expires_in_field, "expires_in"),
            ],
            default_type: field(self.default_token_type, "Bearer"),
            skew: Duration::try_from_secs_f64(skew).unwrap_or(MAX_LIFETIME),
        }))))
    }

    /// Returns the parameters of a request, and the credentials for its header.
    fn params(&mut self, expand: &mut Expand<'_>, has_refresh_token: bool) -> Result<Credentials, String> {
        let id = resolved(expand, "client_id", self.client_id.take());
        let secret = resolved(expand, "client_secret", self.client_secret.take());
        let grant = self.grant_type.as_deref().unwrap_or("client_credentials");
        match grant {
            "client_credentials" if id.is_none() || secret.is_none() => {
                return Err("OAuth client_credentials requires client_id and client_secret".to_owned());
            }
            "refresh_token" if !has_refresh_token => {
                return Err("OAuth refresh_token requires refresh_token".to_owned());
            }
            "client_credentials" | "refresh_token" => {}
            other => {
                let known = "it can be client_credentials, refresh_token or authorization_code";
                return Err(format!("`oauth.grant_type` is {other}; {known}"));
            }
        }
        // Later values win: no extra parameter replaces the credentials.
        let mut params: IndexMap<String, Option<String>> = std::mem::take(&mut self.extra_token_params)
            .into_iter()
            .map(|(key, value)| (key.clone(), resolved(expand, &key, Some(value))))
            .collect();
        params.insert("grant_type".to_owned(), Some(grant.to_owned()));
        for (key, value) in [("scope", self.scope.take()), ("audience", self.audience.take())] {
            if let Some(value) = resolved(expand, key, value) {
                params.insert(key.to_owned(), Some(value));
            }
        }
        let basic = match self.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_post") {
            "client_secret_basic" => id.zip(secret).map(|(id, secret)| (id, secret.into())),
            "client_secret_post" => {
                params.extend([("client_id".to_owned(), id), ("client_secret".to_owned(), secret)]);
                None
            }
            other => {
                let known = "it can be client_secret_post or client_secret_basic";
                return Err(format!("`oauth.token_endpoint_auth_method` is {other}; {known}"));
            }
        };
        let params = params.into_iter().filter_map(|(key, value)| Some((key, value?.into())));
        Ok((params.collect(), basic))
    }
}

/// Parameters of a request for a token, and client id and secret for its header.
type Credentials = (IndexMap<String, SecretString>, Option<(String, SecretString)>);

/// Returns a value with its variable replaced, if it is not empty.
fn resolved(expand: &mut Expand<'_>, name: &str, value: Option<String>) -> Option<String> {
    value.map(|value| expand.named(name, &value)).filter(|value| !value.is_empty())
}

impl OauthConfig {
    /// Returns whether both would get the same tokens.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        fn values(config: &OauthConfig) -> Vec<(&str, &str)> {
            let params = config.params.iter().map(|(key, value)| (key.as_str(), value.expose_secret()));
            let basic = config.basic.iter().map(|(id, secret)| (id.as_str(), secret.expose_secret()));
            let refresh = config.refresh_token.iter().map(|token| ("", token.expose_secret()));
            params.chain(basic).chain(refresh).collect()
        }
        (&self.token_url, &self.fields, &self.default_type, self.skew)
            == (&other.token_url, &other.fields, &other.default_type, other.skew)
            && values(self) == values(other)
    }
}

/// The access token of a server, which all its sessions share.
#[derive(Debug)]
pub(crate) struct Oauth {
    pub(crate) config: OauthConfig,
    state: Mutex<HeldTokens>,
}

#[derive(Debug, Default)]
struct HeldTokens {
    token: Option<Token>,
    /// A refresh token that replaces the configured one.
    refresh_token: Option<SecretString>,
}

#[derive(Clone, Debug)]
struct Token {
    header: HeaderValue,
    until: Instant,
}

impl Oauth {
    pub(crate) fn new(config: OauthConfig) -> Self {
        Self { config, state: Mutex::default() }
    }

    /// Returns the value of the `Authorization` header. Concurrent callers request one token. `refused` is a value that
    /// the server has just refused.
    ///
    /// # Errors
    /// The reason why there is no token, which may quote the provider.
    pub(crate) async fn header(
        &self,
        http: &reqwest::Client,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, String> {
        let mut state = self.state.lock().await;
        if let Some(token) = &state.token
            && Instant::now() < token.until
            && Some(&token.header) != refused
        {
            return Ok(token.header.clone());
        }
        let answer = self.request(http, state.refresh_token.as_ref()).await?;
        let token = self.read(&answer)?;
        if let Some(rotated) = answer.get("refresh_token").and_then(Value::as_str) {
            scrub::remember_issued(rotated);
            state.refresh_token = Some(rotated.into());
        }
        let header = token.header.clone();
        state.token = Some(token);
        Ok(header)
    }

    async fn request(
        &self,
        http: &reqwest::Client,
        rotated: Option<&SecretString>,
    ) -> Result<Map<String, Value>, String> {
        let OauthConfig { token_url, params, basic, refresh_token, .. } = &self.config;
        let pairs = params.iter().map(|(key, value)| (key.as_str(), value.expose_secret()));
        let refresh_token = refresh_token.as_ref().map(|token| rotated.unwrap_or(token).expose_secret());
        let form = pairs.chain(refresh_token.map(|token| ("refresh_token", token))).collect();
        let basic = basic.as_ref().map(|(id, secret)| (id.as_str(), secret.expose_secret()));
        request_token(http, &TokenRequest { url: token_url, form }, basic).await
    }

    fn read(&self, answer: &Map<String, Value>) -> Result<Token, String> {
        let OauthConfig { fields: [token_field, type_field, lifetime_field], .. } = &self.config;
        let token = answer.get(token_field).and_then(Value::as_str).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| format!("its answer has no `{token_field}`"))?;
        scrub::remember_issued(token);
        let kind = answer.get(type_field).and_then(Value::as_str).filter(|kind| !kind.is_empty());
        // Providers also answer `bearer`, which some servers refuse.
        let kind = match kind.unwrap_or(&self.config.default_type) {
            kind if kind.eq_ignore_ascii_case("bearer") => "Bearer",
            kind => kind,
        };
        let mut header = HeaderValue::from_str(&format!("{kind} {token}"))
            .map_err(|_| "its token cannot be sent in a header".to_owned())?;
        header.set_sensitive(true);
        let lifetime = match answer.get(lifetime_field) {
            Some(Value::Number(seconds)) => seconds.as_f64(),
            Some(Value::String(seconds)) => seconds.trim().parse().ok(),
            _ => None,
        };
        let lifetime = lifetime.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(1.0)).ok());
        let lifetime = lifetime.unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
        // A token that lives for less than the skew is still used once.
        let until = Instant::now() + lifetime - self.config.skew.min(lifetime / 2);
        Ok(Token { header, until })
    }
}

/// A request for tokens.
pub(crate) struct TokenRequest<'a> {
    pub(crate) url: &'a Url,
    pub(crate) form: Vec<(&'a str, &'a str)>,
}

/// Requests tokens. `basic` is the client's id and secret for the header.
///
/// # Errors
/// The reason why there are none, which may quote the provider.
pub(crate) async fn request_token(
    http: &reqwest::Client,
    request: &TokenRequest<'_>,
    basic: Option<(&str, &str)>,
) -> Result<Map<String, Value>, String> {
    let mut form = Url::parse("form:").map_err(|error| error.to_string())?;
    form.query_pairs_mut().extend_pairs(&request.form);
    let mut request = http
        .post(request.url.clone())
        .timeout(TOKEN_TIMEOUT)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form.query().unwrap_or_default().to_owned());
    if let Some((id, secret)) = basic {
        let pair = BASE64_STANDARD.encode(format!("{id}:{secret}"));
        request = request.header(AUTHORIZATION, format!("Basic {pair}"));
    }
    let unreachable = |error: reqwest::Error| match () {
        () if error.is_timeout() => "no answer in time".to_owned(),
        () if error.is_connect() => "no connection".to_owned(),
        () => "the exchange broke off".to_owned(),
    };
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let too_large = |_| "its answer is too large".to_owned();
    let body = read_body(response, MAX_TOKEN_BYTES, unreachable, too_large).await?;
    let answer = pudu_net::json::parse(&body).ok();
    match answer {
        Some(Value::Object(answer)) if status.is_success() && !answer.contains_key("error") => Ok(answer),
        Some(Value::Object(answer)) => {
            let part = |key: &str| answer.get(key).and_then(Value::as_str);
            let parts = [part("error"), part("error_description")].into_iter().flatten();
            let parts: Vec<&str> = parts.collect();
            Err(format!("it answered {status}: {}", parts.join(": ")))
        }
        _ => Err(format!("it answered {status} without a token: is `token_url` right?")),
    }
}
