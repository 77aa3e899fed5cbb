//! Finds the authorization server of an MCP server: the protected resource's metadata (RFC 9728), then the authorization
//! server's own (RFC 8414, or OpenID Connect Discovery).
//!
//! A server names these addresses, so they have to be HTTPS, or on this machine if the server is; no credentials are
//! sent to them.

use pudu_net::{
    read_body,
    reqwest::{
        self, Response, StatusCode, Url,
        header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION, WWW_AUTHENTICATE},
    },
};
use serde_json::{Map, Value};
use std::time::Duration;

/// Timeout of a request for metadata.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of metadata, in bytes.
const MAX_METADATA_BYTES: usize = 256 * 1024;
/// Maximum number of redirects that a request follows, within its origin.
const HOPS: usize = 3;
/// First requests of a session, with and without a handshake. A protected server refuses them with a challenge.
const PROBES: [&str; 2] = [HANDSHAKE, r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{}}"#];
const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"pudu","version":"1"}}}"#;

/// The authorization server of an MCP server.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizationServer {
    pub(crate) issuer: String,
    pub(crate) authorize: Url,
    pub(crate) token: Url,
    pub(crate) register: Option<Url>,
    /// The scopes to ask for.
    pub(crate) scope: Option<String>,
    /// The resource that tokens are for.
    pub(crate) resource: String,
    /// How clients may authenticate at the token endpoint; empty if unknown.
    pub(crate) auth_methods: Vec<String>,
    /// Whether each answer names the issuer.
    pub(crate) names_issuer: bool,
}

/// Finds the authorization server of an MCP server.
///
/// # Errors
/// The reason why there is none, which may quote the server.
pub(crate) async fn discover(http: &reqwest::Client, server: &Url) -> Result<AuthorizationServer, String> {
    let finder = Finder { http, server };
    let challenge = finder.challenge().await?;
    let resource = finder.resource(challenge.metadata.as_deref()).await?;
    let issuer = resource
        .as_ref()
        .and_then(|resource| Some(first_text(resource, "authorization_servers")?.to_owned()));
    let metadata = match &issuer {
        Some(issuer) => Some(finder.issuer(issuer).await?),
        // Servers of the first version of the protocol are their own authorization server.
        None => finder.own_metadata().await?,
    };
    let mut scope = challenge
        .scope
        .or_else(|| resource.as_ref().and_then(|resource| joined(resource, "scopes_supported")));
    let canonical = resource.as_ref().and_then(|resource| text(resource, "resource")).map(str::to_owned);
    let canonical = canonical.unwrap_or_else(|| without_fragment(server));
    let Some(metadata) = metadata else { return finder.without_metadata(scope, canonical) };
    if !texts(&metadata, "code_challenge_methods_supported").any(|method| method == "S256") {
        return Err("its authorization server does not support PKCE with S256".to_owned());
    }
    // Without this scope, some providers issue no refresh token.
    let offers_refresh = texts(&metadata, "scopes_supported").any(|scope| scope == "offline_access");
    if let Some(scope) =
        scope.as_mut().filter(|scope| offers_refresh && !scope.split(' ').any(|one| one == "offline_access"))
    {
        scope.push_str(" offline_access");
    }
    let endpoint = |key: &str| {
        let url = text(&metadata, key).map(|url| finder.allowed(url));
        url.transpose()
    };
    let missing = |key: &str| format!("the metadata of its authorization server have no `{key}`");
    Ok(AuthorizationServer {
        issuer: text(&metadata, "issuer").or(issuer.as_deref()).unwrap_or_default().to_owned(),
        authorize: endpoint("authorization_endpoint")?.ok_or_else(|| missing("authorization_endpoint"))?,
        token: endpoint("token_endpoint")?.ok_or_else(|| missing("token_endpoint"))?,
        register: endpoint("registration_endpoint")?,
        scope,
        resource: canonical,
        auth_methods: texts(&metadata, "token_endpoint_auth_methods_supported").map(str::to_owned).collect(),
        names_issuer: metadata.get("authorization_response_iss_parameter_supported")
            == Some(&Value::Bool(true)),
    })
}

/// Answer of a server to a request without a token.
#[derive(Default)]
struct Challenge {
    metadata: Option<String>,
    scope: Option<String>,
}

struct Finder<'a> {
    http: &'a reqwest::Client,
    server: &'a Url,
}

impl Finder<'_> {
    async fn challenge(&self) -> Result<Challenge, String> {
        let mut challenge = Challenge::default();
        for probe in PROBES {
            let request = self
                .http
                .post(self.server.clone())
                .timeout(TIMEOUT)
                .header(ACCEPT, "application/json, text/event-stream")
                .header(CONTENT_TYPE, "application/json")
                .body(probe);
            let response = request.send().await.map_err(|error| unreachable(&error))?;
            challenge = read_challenge(response.headers());
            if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                break;
            }
        }
        Ok(challenge)
    }

    /// Returns the metadata of the server as a protected resource, if it has any.
    async fn resource(&self, named: Option<&str>) -> Result<Option<Map<String, Value>>, String> {
        let path = self.server.path().trim_end_matches('/');
        let root = "/.well-known/oauth-protected-resource";
        let candidates = match named {
            Some(named) => vec![self.allowed(named)?],
            None => [format!("{root}{path}"), root.to_owned()]
                .iter()
                .filter_map(|path| self.server.join(path).ok())
                .collect(),
        };
        for url in candidates {
            let Some(resource) = self.get(url).await? else { continue };
            let of = text(&resource, "resource").and_then(|url| Url::parse(url).ok());
            let is_own = of.is_some_and(|of| {
                let prefix = of.path().trim_end_matches('/');
                let rest = path.strip_prefix(prefix);
                of.origin() == self.server.origin()
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            return if is_own {
                Ok(Some(resource))
            } else {
                Err("its metadata are those of another resource".to_owned())
            };
        }
        Ok(None)
    }

    /// Returns the metadata of an authorization server, whose name they have to repeat.
    async fn issuer(&self, issuer: &str) -> Result<Map<String, Value>, String> {
        let url = self.allowed(issuer)?;
        let found = self.metadata(&url).await?;
        let found = found.ok_or("its authorization server has no metadata")?;
        match text(&found, "issuer").map(|named| named.trim_end_matches('/'))
            == Some(issuer.trim_end_matches('/'))
        {
            true => Ok(found),
            false => Err("the metadata of its authorization server have another issuer".to_owned()),
        }
    }

    async fn own_metadata(&self) -> Result<Option<Map<String, Value>>, String> {
        let root = self.server.join("/").map_err(|error| error.to_string())?;
        self.metadata(&root).await
    }

    async fn metadata(&self, issuer: &Url) -> Result<Option<Map<String, Value>>, String> {
        let path = issuer.path().trim_end_matches('/');
        let mut candidates = vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
        ];
        if !path.is_empty() {
            candidates.push(format!("{path}/.well-known/openid-configuration"));
        }
        for candidate in candidates {
            let Ok(url) = issuer.join(&candidate) else { continue };
            if let Some(found) = self.get(url).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the usual endpoints at the root of the server.
    fn without_metadata(
        &self,
        scope: Option<String>,
        resource: String,
    ) -> Result<AuthorizationServer, String> {
        let at = |path: &str| self.server.join(path).map_err(|error| error.to_string());
        Ok(AuthorizationServer {
            issuer: self.server.origin().ascii_serialization(),
            authorize: at("/authorize")?,
            token: at("/token")?,
            register: Some(at("/register")?),
            scope,
            resource,
            auth_methods: Vec::new(),
            names_issuer: false,
        })
    }

    /// Requests a JSON object. Returns `None` if there is none at this address.
    async fn get(&self, mut url: Url) -> Result<Option<Map<String, Value>>, String> {
        for _ in 0..=HOPS {
            let request = self.http.get(url.clone()).timeout(TIMEOUT).header(ACCEPT, "application/json");
            let response = request.send().await.map_err(|error| unreachable(&error))?;
            match next_hop(&url, &response) {
                Some(next) => url = next,
                None if response.status().is_success() => {
                    let too_large = |_| "its metadata are too large".to_owned();
                    let body =
                        read_body(response, MAX_METADATA_BYTES, |error| unreachable(&error), too_large)
                            .await?;
                    return Ok(match pudu_net::json::parse(&body) {
                        Ok(Value::Object(found)) => Some(found),
                        _ => None,
                    });
                }
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Parses an address that a server names.
    fn allowed(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|_| "its metadata have an address that is none".to_owned())?;
        let is_safe =
            url.scheme() == "https" || (url.scheme() == "http" && is_local(&url) && is_local(self.server));
        is_safe.then_some(url).ok_or_else(|| "its metadata have an address that is not https".to_owned())
    }
}

/// Returns whether a URL is on this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn next_hop(url: &Url, response: &Response) -> Option<Url> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let next = url.join(location.to_str().ok()?).ok()?;
    (next.origin() == url.origin()).then_some(next)
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key)?.as_str().filter(|text| !text.is_empty())
}

fn texts<'a>(map: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a str> {
    map.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn first_text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    texts(map, key).next()
}

fn joined(map: &Map<String, Value>, key: &str) -> Option<String> {
    let all: Vec<&str> = texts(map, key).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Reads the parameters of a `Bearer` challenge.
fn read_challenge(headers: &HeaderMap) -> Challenge {
    let mut challenge = Challenge::default();
    for value in headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()) {
        challenge.metadata = challenge.metadata.or_else(|| parameter(value, "resource_metadata"));
        challenge.scope = challenge.scope.or_else(|| parameter(value, "scope"));
    }
    challenge
}

/// Returns a parameter of a challenge, with or without quotes.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let at = challenge.match_indices(name).find_map(|(at, _)| {
        let before = challenge.get(..at)?.chars().next_back();
        let rest = challenge.get(at + name.len()..)?.trim_start().strip_prefix('=')?;
        before.is_none_or(|c| c == ' ' || c == ',').then_some(rest.trim_start())
    })?;
    let value = match at.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => at.split([',', ' ']).next()?,
    };
    (!value.is_empty()).then(|| value.to_owned())
}

fn unreachable(error: &reqwest::Error) -> String {
    match () {
        () if error.is_timeout() => "no answer in time".to_owned(),
        () if error.is_connect() => "no connection".to_owned(),
        () => "the exchange broke off".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_read_in_any_layout() {
        let check = |challenge: &str, metadata: Option<&str>, scope: Option<&str>| {
            let headers = HeaderMap::from_iter([(WWW_AUTHENTICATE, challenge.parse().unwrap())]);
            let read = read_challenge(&headers);
            assert_eq!((read.metadata.as_deref(), read.scope.as_deref()), (metadata, scope), "{challenge}");
        };
        check(r#"Bearer resource_metadata="https://a/b", scope="x y""#, Some("https://a/b"), Some("x y"));
        check("Bearer scope=x,resource_metadata=https://a", Some("https://a"), Some("x"));
        check(r#"Bearer error="invalid_token", my_scope="z""#, None, None);
        check("Basic", None, None);
        check(r#"Bearer scope="#, None, None);
    }
}
