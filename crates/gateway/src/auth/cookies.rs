//! Cookies of a session, with the names that DeerFlow's frontend expects.
//!
//! `access_token` is the session, which scripts cannot read. `csrf_token` is readable, and must be sent back in a
//! header with every request that changes something: pages of other sites cannot read it. `deerflow_session_persistent`
//! remembers whether the person wants to stay signed in.

use super::{origin, session::SESSION_SECS};
use anyhow::{Result, anyhow};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

pub(crate) const SESSION: &str = "access_token";
const CSRF: &str = "csrf_token";
const PERSISTENT: &str = "deerflow_session_persistent";
/// The cookie of pudu's own page, a separate proof of identity.
pub(crate) const OPERATOR: &str = "pudu_token";
pub(crate) const CSRF_HEADER: &str = "x-csrf-token";

/// Whether a session's cookies outlive the browser, and whether they are limited to HTTPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CookiePolicy {
    secure: bool,
    persistent: bool,
}

impl CookiePolicy {
    /// Derives the policy from the person's choice and the browser's connection.
    pub(super) fn from_headers(headers: &HeaderMap, remember: Option<bool>, insecure: bool) -> Self {
        let secure = origin::is_https(headers);
        let remember = remember.unwrap_or_else(|| cookie(headers, PERSISTENT) != Some("0"));
        Self { secure, persistent: remember && (secure || insecure || origin::is_local(headers)) }
    }

    fn set(self, name: &str, value: &str, attributes: &str) -> Result<HeaderValue> {
        let secure = secure_attribute(self.secure);
        let age = if self.persistent { format!("; Max-Age={SESSION_SECS}") } else { String::new() };
        Ok(format!("{name}={value}; Path=/{attributes}{secure}{age}").parse()?)
    }
}

/// Returns the attribute that limits a cookie to HTTPS; empty unless the browser used HTTPS.
pub(crate) fn secure_attribute(secure: bool) -> &'static str {
    if secure { "; Secure" } else { "" }
}

/// Returns the headers that begin a session. They clear the page's cookie: a browser has one identity at a time.
pub(super) fn begin(policy: CookiePolicy, session: &str) -> Result<Vec<HeaderValue>> {
    let mut bytes = [0u8; 48];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow!("the system's random number generator failed: {error}"))?;
    let persistent = if policy.persistent { "1" } else { "0" };
    Ok(vec![
        policy.set(SESSION, session, "; HttpOnly; SameSite=lax")?,
        policy.set(CSRF, &URL_SAFE_NO_PAD.encode(bytes), "; SameSite=strict")?,
        policy.set(PERSISTENT, persistent, "; HttpOnly; SameSite=lax")?,
        HeaderValue::from_static("pudu_token=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"),
    ])
}

/// Returns the headers that end a session.
pub(crate) fn end() -> [HeaderValue; 3] {
    [
        HeaderValue::from_static("access_token=; Path=/; HttpOnly; SameSite=lax; Max-Age=0"),
        HeaderValue::from_static("csrf_token=; Path=/; SameSite=strict; Max-Age=0"),
        HeaderValue::from_static("deerflow_session_persistent=; Path=/; HttpOnly; SameSite=lax; Max-Age=0"),
    ]
}

/// Adds cookies to a response.
pub(crate) fn put(cookies: impl IntoIterator<Item = HeaderValue>, headers: &mut HeaderMap) {
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// Returns a cookie's value.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Returns the CSRF error of a session's request that changes something; `None` if there is none.
pub(super) fn csrf_fault(method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE) {
        return None;
    }
    let sent = headers.get(CSRF_HEADER).map(HeaderValue::as_bytes).filter(|sent| !sent.is_empty());
    let stored = cookie(headers, CSRF).filter(|stored| !stored.is_empty());
    match (sent, stored) {
        (Some(sent), Some(stored)) if bool::from(sent.ct_eq(stored.as_bytes())) => None,
        (Some(_), Some(_)) => Some("CSRF token mismatch."),
        _ => Some("CSRF token missing. Include X-CSRF-Token header."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn sessions_outlive_the_browser_only_on_safe_connections() {
        let check = |pairs: &[(&'static str, &str)], remember, insecure, expected: (bool, bool)| {
            let policy = CookiePolicy::from_headers(&headers(pairs), remember, insecure);
            assert_eq!((policy.secure, policy.persistent), expected, "{pairs:?} {remember:?}");
        };
        let (local, far) = (("host", "localhost:8001"), ("host", "pudu.example"));
        check(&[local], Some(true), false, (false, true));
        check(&[local], Some(false), false, (false, false));
        check(&[local], None, false, (false, true));
        check(&[local, ("cookie", "deerflow_session_persistent=0")], None, false, (false, false));
        check(&[far], Some(true), false, (false, false));
        check(&[far], Some(true), true, (false, true));
        check(&[far, ("x-forwarded-proto", "https")], Some(true), false, (true, true));
    }

    #[test]
    fn changes_require_the_csrf_token_of_their_cookie() {
        let missing = Some("CSRF token missing. Include X-CSRF-Token header.");
        let check = |method: Method, pairs: &[(&'static str, &str)], expected: Option<&str>| {
            assert_eq!(csrf_fault(&method, &headers(pairs)), expected, "{method} {pairs:?}");
        };
        let (cookie, shown) = (("cookie", "a=b; csrf_token=t"), (CSRF_HEADER, "t"));
        check(Method::GET, &[], None);
        check(Method::POST, &[cookie, shown], None);
        check(Method::DELETE, &[cookie], missing);
        check(Method::PUT, &[shown], missing);
        check(Method::PATCH, &[("cookie", "csrf_token="), (CSRF_HEADER, "")], missing);
        check(Method::POST, &[cookie, (CSRF_HEADER, "u")], Some("CSRF token mismatch."));
    }
}
