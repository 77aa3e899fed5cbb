//! State of a login in progress, in a signed cookie of the browser that began it. The provider's response has to match
//! it. The gateway stores nothing.

use crate::auth::{
    cookies::{self, cookie},
    session::SessionKey,
};
use anyhow::{Result, anyhow};
use axum::http::{HeaderMap, HeaderValue};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

/// Maximum duration of a login, in seconds.
const LOGIN_SECS: i64 = 300;
/// Purpose that distinguishes the signatures of these cookies from others with the same key.
const PURPOSE: &str = "oidc-login";
/// Maximum length of the path to return to, in bytes.
const MAX_NEXT_BYTES: usize = 1024;
/// Path after a login that does not name one, as in DeerFlow.
const HOME: &str = "/workspace";

/// Optional checks of a provider's response.
#[derive(Clone, Copy)]
pub(super) struct LoginChecks {
    pub(super) nonce: bool,
    pub(super) pkce: bool,
}

/// Values that the response to a login has to match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoginState {
    provider: String,
    pub(super) state: String,
    pub(super) nonce: Option<String>,
    pub(super) verifier: Option<String>,
    pub(super) redirect_uri: String,
    pub(super) next: String,
    pub(super) remember: bool,
    until: i64,
}

impl LoginState {
    /// Begins a login. `now` is in seconds since 1970.
    pub(super) fn begin(
        provider: &str,
        checks: LoginChecks,
        redirect_uri: String,
        next: Option<&str>,
        remember: bool,
        now: i64,
    ) -> Result<Self> {
        Ok(Self {
            provider: provider.to_owned(),
            state: random()?,
            nonce: checks.nonce.then(random).transpose()?,
            verifier: checks.pkce.then(random).transpose()?,
            redirect_uri,
            next: next.filter(|next| is_path(next)).unwrap_or(HOME).to_owned(),
            remember,
            until: now + LOGIN_SECS,
        })
    }

    /// Returns the PKCE challenge, if PKCE is used.
    pub(super) fn challenge(&self) -> Option<String> {
        self.verifier.as_ref().map(|verifier| URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)))
    }

    /// Returns the header that sets the cookie.
    pub(super) fn cookie(&self, key: &SessionKey, secure: bool) -> Result<HeaderValue> {
        Ok(set(&self.provider, &key.seal(PURPOSE, self)?, LOGIN_SECS, secure).parse()?)
    }

    /// Reads the login of a provider from a browser's cookie.
    pub(super) fn read(headers: &HeaderMap, provider: &str, key: &SessionKey, now: i64) -> Option<Self> {
        let state: Self = key.unseal(PURPOSE, cookie(headers, &name(provider))?)?;
        (state.provider == provider && state.until > now).then_some(state)
    }
}

/// Returns the header that deletes the cookie.
pub(super) fn end(provider: &str, secure: bool) -> Option<HeaderValue> {
    set(provider, "", 0, secure).parse().ok()
}

fn name(provider: &str) -> String {
    format!("df_oidc_state_{provider}")
}

fn set(provider: &str, value: &str, age: i64, secure: bool) -> String {
    let secure = cookies::secure_attribute(secure);
    let path = format!("/api/v1/auth/callback/{provider}");
    format!("{}={value}; Path={path}; HttpOnly; SameSite=lax{secure}; Max-Age={age}", name(provider))
}

/// Returns 256 random bits as text.
fn random() -> Result<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow!("the system's random number generator failed: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns whether a redirect to this path stays on the site, regardless of how a browser parses it.
fn is_path(next: &str) -> bool {
    let site = Url::parse("https://site.invalid").ok();
    let reached = site.as_ref().and_then(|site| site.join(next).ok());
    next.starts_with('/')
        && next.len() <= MAX_NEXT_BYTES
        && !next.contains(|c: char| c == '\\' || c.is_control())
        && reached.zip(site).is_some_and(|(reached, site)| reached.origin() == site.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_never_leave_the_site() {
        for (next, expected) in [
            ("/workspace", true),
            ("/workspace/chats/1?a=b#c", true),
            ("/a:b", true),
            ("", false),
            ("workspace", false),
            ("//evil.example", false),
            ("///evil.example", false),
            ("/\\evil.example", false),
            ("/\t/evil.example", false),
            ("/\n//evil.example", false),
            ("https://evil.example", false),
            ("javascript:alert(1)", false),
        ] {
            assert_eq!(is_path(next), expected, "{next:?}");
        }
        assert!(!is_path(&format!("/{}", "a".repeat(MAX_NEXT_BYTES))));
    }

    #[test]
    fn a_login_is_read_only_for_its_provider_with_its_key_until_it_expires() {
        let key = |secret: &str| SessionKey::from_secret(secret.into());
        let checks = LoginChecks { nonce: true, pkce: true };
        let state = LoginState::begin("acme", checks, "https://x/cb".into(), Some("/a"), true, 100).unwrap();
        let set = state.cookie(&key("a secret"), true).unwrap();
        let text = set.to_str().unwrap();
        assert!(
            text.ends_with("; Path=/api/v1/auth/callback/acme; HttpOnly; SameSite=lax; Secure; Max-Age=300")
        );
        let value = text.split(';').next().unwrap();
        let read = |line: &str, provider: &str, secret: &str, now: i64| {
            let mut headers = HeaderMap::new();
            headers.insert("cookie", line.parse().unwrap());
            LoginState::read(&headers, provider, &key(secret), now)
        };
        assert_eq!(read(value, "acme", "a secret", 399).as_ref(), Some(&state));
        assert_eq!(read(value, "acme", "a secret", 400), None, "it has expired");
        assert_eq!(read(value, "acme", "another", 100), None, "another key");
        assert_eq!(
            read(&value.replace("_acme=", "_evil="), "evil", "a secret", 100),
            None,
            "another provider"
        );
        assert_eq!(read(&format!("{value}x"), "acme", "a secret", 100), None, "changed");
    }
}
