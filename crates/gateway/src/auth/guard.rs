//! Access control of the HTTP API.
//!
//! On a loopback address, every user of this machine may use the API, but no web page of another site may. The `Host`
//! must be a local name of this machine, which a rebound DNS name is not, with any port, since a proxy passes its own.
//! The `Origin`, if present, must match the `Host`. On any other address, a token is required as well, in a header or
//! in the page's cookie, never in a URL. The same applies on a loopback address that the agent's own commands can
//! reach: otherwise a command could act for people. Changing who may use the bots, or the bots' connections, requires
//! the token even on a loopback address: not every user of this machine operates the bots. Once an account exists,
//! every caller must sign in or send a token, which `auth/identify.rs` checks.

use super::{cookies, origin};
use crate::{
    ApiError, GatewayState, Inner, Json,
    http::{
        failures::{Failures, may_be_proxy, network, peer},
        guests::Visitor,
    },
};
use axum::{
    extract::{ConnectInfo, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// Error for a request without a token.
const MISSING: &str = "no token was sent: send `Authorization: Bearer TOKEN` with the value of `gateway.token` in config.yaml, or of the file `gateway-token` in the home folder";
/// Error for a wrong token.
const WRONG_TOKEN: &str = "the token is wrong: send the value of `gateway.token` in config.yaml, or of the file `gateway-token` in the home folder, or a token made by `pudu token add`";

/// Delay for an address that has sent too many wrong tokens. The right token is delayed as well, but still admitted.
const PENALTY: Duration = Duration::from_secs(1);

pub(crate) struct RequestGuard {
    loopback: bool,
    token: GatewayToken,
    /// Wrong tokens. Clients behind a proxy count as one if the proxy does not name them.
    wrong: Failures,
}

/// The gateway's token, and the conditions that require it.
pub struct GatewayToken {
    /// The token.
    pub secret: SecretString,
    /// Whether every request requires it, rather than only requests that manage the bots.
    pub everywhere: bool,
    /// Whether the agent's commands can reach the gateway. If so, every request requires the token, too.
    pub exposed: Exposed,
}

impl GatewayToken {
    /// Returns whether every request requires the token at the moment.
    pub fn guards_all(&self) -> bool {
        self.everywhere || self.exposed.is()
    }
}

/// Whether commands can reach listeners of this machine, such as the gateway. Never returns to false: a command started
/// before an edit of the configuration may still be running after it.
#[derive(Clone, Default)]
pub struct Exposed(Arc<AtomicBool>);

impl Exposed {
    /// Returns whether commands could reach the gateway at any time since startup.
    pub fn is(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Records that commands can reach the gateway.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl RequestGuard {
    pub(crate) fn new(loopback: bool, token: GatewayToken) -> Self {
        Self { loopback, token, wrong: Failures::default() }
    }

    /// Waits if an address has made too many attempts, and returns whether it has.
    async fn slow_down(&self, from: IpAddr) -> bool {
        let slow = self.wrong.are_too_many(Some(network(from.to_canonical())), Instant::now());
        if slow {
            tokio::time::sleep(PENALTY).await;
        }
        slow
    }

    fn note_wrong(&self, from: IpAddr) {
        self.wrong.add(Some(network(from.to_canonical())), Instant::now());
    }

    /// Returns whether every request requires a proof, even if no account exists.
    pub(crate) fn guards_all(&self) -> bool {
        self.token.guards_all()
    }

    /// Returns whether a request comes from our own page, from a site that the operator named, or not from a page at
    /// all.
    fn same_site(&self, headers: &HeaderMap, allowed: &[String], by_proxy: bool) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(host) = text(header::HOST) else { return false };
        if self.loopback && !origin::is_local_host(host) {
            return false;
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        let forwarded_host = by_proxy.then(|| origin::forwarded_host(headers)).flatten();
        is_named(origin, allowed)
            || origin.split_once("://").is_some_and(|(_, authority)| {
                authority == host || forwarded_host.as_deref() == Some(authority)
            })
    }

    /// Returns the header with the operator's token.
    pub(crate) fn bearer(&self) -> anyhow::Result<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.token.secret.expose_secret()))?;
        header.set_sensitive(true);
        Ok(header)
    }

    pub(crate) fn shows_token(&self, headers: &HeaderMap) -> bool {
        given(headers).is_some_and(|given| same(given, &self.token.secret))
    }

    /// Refuses a request without the token.
    pub(crate) async fn require_token(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        visitor: &Visitor,
    ) -> Result<(), ApiError> {
        match self.examine(headers, from, visitor, true).await {
            ShownProof::Token => Ok(()),
            shown => Err(shown.refusal()),
        }
    }

    /// Counts another kind of wrong proof, with the delay of a wrong token, and returns the error.
    pub(crate) async fn refuse_wrong(&self, headers: &HeaderMap, from: IpAddr, wrong: ApiError) -> ApiError {
        let from = peer(from, headers).unwrap_or(from);
        let slow = self.slow_down(from).await;
        self.note_wrong(from);
        if slow { ShownProof::WrongAgain.refusal() } else { wrong }
    }

    /// Checks the token of a request, and records a right one for its connection. Wrong tokens cause a delay.
    pub(crate) async fn examine(
        &self,
        headers: &HeaderMap,
        from: IpAddr,
        visitor: &Visitor,
        asked: bool,
    ) -> ShownProof {
        // If no token is required, a cookie may belong to another pudu on this machine: browsers ignore the port.
        let asked = asked || bearer(headers).is_some();
        if given(headers).is_none() || !asked {
            return ShownProof::Nothing;
        }
        let from = peer(from, headers).unwrap_or(from);
        let slow = self.slow_down(from).await;
        if self.shows_token(headers) {
            visitor.prove();
            return ShownProof::Token;
        }
        self.note_wrong(from);
        if slow { ShownProof::WrongAgain } else { ShownProof::Wrong }
    }
}

/// Result of checking a request's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownProof {
    Token,
    Nothing,
    Wrong,
    /// Wrong, from an address that has sent too many wrong tokens.
    WrongAgain,
}

impl ShownProof {
    pub(crate) fn refusal(self) -> ApiError {
        match self {
            Self::WrongAgain => {
                let detail = "too many wrong tokens from this address: try again in a minute";
                ApiError::too_many(detail).retry_after(60)
            }
            Self::Wrong => ApiError::unauthorized(WRONG_TOKEN),
            Self::Token | Self::Nothing => ApiError::unauthorized(MISSING),
        }
    }
}

/// Returns the token of a request.
fn given(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).or_else(|| cookie(headers))
}

/// Returns the token in a request's header.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Compares a given token with the real one, in constant time.
pub(crate) fn same(presented: &str, token: &SecretString) -> bool {
    presented.as_bytes().ct_eq(token.expose_secret().as_bytes()).into()
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    cookies::cookie(headers, cookies::OPERATOR).filter(|token| !token.is_empty())
}

fn is_named(origin: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|other| other == origin)
}

/// Returns whether another site's page made the request. Its requests for images and forms have no origin, but browsers
/// mark them as cross-site.
fn embedded(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site")
}

impl Inner {
    /// Returns whether a page of another site made a request.
    pub(crate) fn is_another_site(&self, headers: &HeaderMap, from: IpAddr) -> bool {
        let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
        let is_allowed_origin =
            origin.is_some_and(|origin| is_named(origin, &self.sign_in.config.cors_origins));
        !self.is_addressed(headers, from) || (embedded(headers) && !is_allowed_origin)
    }

    /// Returns whether a request addresses this gateway and its origin, if any, is not another site. A link on another
    /// site sends no origin.
    fn is_addressed(&self, headers: &HeaderMap, from: IpAddr) -> bool {
        let config = &self.sign_in.config;
        let from = from.to_canonical();
        let by_proxy =
            may_be_proxy(from) || config.trusted_proxies.iter().any(|network| network.contains(&from));
        self.guard.same_site(headers, &config.cors_origins, by_proxy)
    }
}

/// Admits requests that address this gateway, including those from links on other sites.
pub(crate) async fn same_site(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    // Probes may use any host name: a page gains nothing from their responses.
    let probe = matches!(request.uri().path(), "/health" | "/ready");
    // Files of the page are the same for everyone, and its sandboxed frames have no origin.
    let is_page_file = request.uri().path().starts_with("/page/");
    if !probe && !is_page_file && !gateway.0.is_addressed(request.headers(), peer.ip()) {
        return Err(another_site());
    }
    Ok(next.run(request).await)
}

/// Returns the error about a request from a page of another site.
pub(crate) fn another_site() -> ApiError {
    ApiError::forbidden("this request comes from another site")
}

/// Sign-in of the page.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Login {
    #[schemars(with = "String")]
    token: SecretString,
}

/// Gives the page a cookie in exchange for the token.
pub(crate) async fn session(
    gateway: GatewayState,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Json(login): Json<Login>,
) -> Result<Response, ApiError> {
    let guard = &gateway.0.guard;
    let slow = guard.slow_down(peer.ip()).await;
    if !same(login.token.expose_secret(), &guard.token.secret) {
        guard.note_wrong(peer.ip());
        return Err(match slow {
            true => ShownProof::WrongAgain.refusal(),
            false => ApiError::unauthorized("the token is wrong"),
        });
    }
    let secure = cookies::secure_attribute(origin::is_https(&headers));
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict{secure}; Max-Age=31536000",
        cookies::OPERATOR,
        login.token.expose_secret()
    );
    let mut answer = (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response();
    // A browser has one identity at a time.
    cookies::put(cookies::end(), answer.headers_mut());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::guests::Guests;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    fn guard(bound: &str, token: Option<&str>) -> RequestGuard {
        let (secret, everywhere) = (token.unwrap_or("of our own").into(), token.is_some());
        RequestGuard::new(
            bound.parse::<SocketAddr>().unwrap().ip().is_loopback(),
            GatewayToken { secret, everywhere, exposed: Exposed::default() },
        )
    }

    #[test]
    fn other_sites_are_recognised_by_host_and_origin() {
        let check = |bound: &str, host: &str, origin: Option<&str>, expect: bool| {
            let mut pairs = vec![(header::HOST, host)];
            pairs.extend(origin.map(|origin| (header::ORIGIN, origin)));
            assert_eq!(
                guard(bound, None).same_site(&headers(&pairs), &[], true),
                expect,
                "{bound} {host} {origin:?}"
            );
        };
        check("127.0.0.1:8001", "127.0.0.1:8001", None, true);
        check("127.0.0.1:8001", "localhost:8001", Some("http://localhost:8001"), true);
        check("[::1]:8001", "[::1]:8001", None, true);
        check("127.0.0.1:8001", "localhost:2026", Some("http://localhost:2026"), true);
        check("127.0.0.1:8001", "localhost:2026", None, true);
        check("127.0.0.1:8001", "localhost:8001", Some("http://localhost:3000"), false);
        check("127.0.0.1:8001", "localhost:2026", Some("http://localhost:8001"), false);
        check("127.0.0.1:8001", "evil.example:8001", None, false);
        check("127.0.0.1:8001", "localhost.evil.example:8001", None, false);
        check("127.0.0.1:8001", "127.0.0.1:8001", Some("http://evil.example"), false);
        check("127.0.0.1:8001", "127.0.0.1:8001", Some("null"), false);
        check("0.0.0.0:8001", "pudu.example", Some("https://pudu.example"), true);
        check("0.0.0.0:8001", "pudu.example", Some("https://evil.example"), false);
        assert!(!guard("127.0.0.1:8001", None).same_site(&HeaderMap::new(), &[], true));
    }

    #[test]
    fn a_named_page_and_a_page_behind_a_proxy_are_the_same_site() {
        let guard = guard("127.0.0.1:8001", None);
        let allowed = ["https://app.example".to_owned()];
        let check = |origin: &str, by_proxy: bool, expect: bool| {
            let mut headers = headers(&[(header::HOST, "127.0.0.1:8001"), (header::ORIGIN, origin)]);
            headers.insert("x-forwarded-host", "localhost:3000".parse().unwrap());
            assert_eq!(guard.same_site(&headers, &allowed, by_proxy), expect, "{origin} {by_proxy}");
        };
        check("https://app.example", false, true);
        check("https://app.example:444", false, false);
        check("http://app.example", false, false);
        check("http://localhost:3000", true, true);
        check("http://localhost:3000", false, false);
        check("http://localhost:3001", true, false);
        let host = (header::HOST, "evil.example:8001");
        let rebound = headers(&[host, (header::ORIGIN, "https://app.example")]);
        assert!(!guard.same_site(&rebound, &allowed, true), "a rebound name");
    }

    async fn examined(guard: &RequestGuard, pairs: &[(header::HeaderName, &str)], asked: bool) -> ShownProof {
        let (visitor, _guest) = Guests::new(1).enter(IpAddr::from([127, 0, 0, 1]));
        guard.examine(&headers(pairs), IpAddr::from([127, 0, 0, 1]), &visitor, asked).await
    }

    #[test]
    fn a_refusal_distinguishes_a_missing_from_a_wrong_token() {
        for (shown, status, begin) in [
            (ShownProof::Nothing, 401, "no token was sent: send `Authorization: Bearer TOKEN` with"),
            (ShownProof::Wrong, 401, "the token is wrong: send the value of `gateway.token`"),
            (ShownProof::WrongAgain, 429, "too many wrong tokens from this address: try again in a minute"),
        ] {
            let refusal = shown.refusal();
            assert_eq!(refusal.status().as_u16(), status, "{shown:?}");
            assert!(refusal.body_text().starts_with(begin), "{}", refusal.body_text());
        }
    }

    #[tokio::test]
    async fn a_loopback_address_that_commands_can_reach_requires_the_token() {
        let guard = guard("127.0.0.1:8001", None);
        assert!(!guard.guards_all());
        guard.token.exposed.set();
        assert!(guard.guards_all());
        let token = (header::AUTHORIZATION, "Bearer of our own");
        assert_eq!(examined(&guard, &[], true).await, ShownProof::Nothing);
        assert_eq!(examined(&guard, &[token], true).await, ShownProof::Token);
    }

    #[tokio::test]
    async fn the_token_is_read_from_the_header_or_the_cookie() {
        let guard = guard("0.0.0.0:8001", Some("open sesame"));
        let (bearer, cookie) = (header::AUTHORIZATION, header::COOKIE);
        for (pairs, expected) in [
            (&[][..], ShownProof::Nothing),
            (&[(bearer.clone(), "Bearer open sesame")], ShownProof::Token),
            (&[(bearer.clone(), "bearer open sesame")], ShownProof::Token),
            (&[(bearer.clone(), "Bearer open sesam")], ShownProof::Wrong),
            (&[(bearer, "open sesame")], ShownProof::Nothing),
            (&[(cookie.clone(), "a=b; pudu_token=open sesame; c=d")], ShownProof::Token),
            (&[(cookie, "xpudu_token=open sesame")], ShownProof::Nothing),
        ] {
            assert_eq!(examined(&guard, pairs, true).await, expected, "{pairs:?}");
        }
        // Where no token is required, a cookie may belong to another program, but a header does not.
        assert_eq!(examined(&guard, &[(header::COOKIE, "pudu_token=x")], false).await, ShownProof::Nothing);
        assert_eq!(examined(&guard, &[(header::AUTHORIZATION, "Bearer x")], false).await, ShownProof::Wrong);
    }
}
