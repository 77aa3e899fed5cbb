//! Sessions: a signed token with the user who signed in and the version of their sessions.
//!
//! It is a JSON Web Token with HMAC-SHA256, like DeerFlow's, so that browsers stay signed in if pudu and DeerFlow
//! replace each other with the same secret. No other format is accepted: a library with all of JOSE's options would
//! only add ways to go wrong.

use super::token;
use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use pudu_base::UserId;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;
use std::path::Path;

/// Lifetime of a session, in seconds.
pub(super) const SESSION_SECS: i64 = 7 * 24 * 60 * 60;
/// Name of the key's file in the home folder.
const FILE: &str = ".jwt_secret";
/// Maximum length of a token, in bytes; a longer one is not read.
const MAX_BYTES: usize = 4096;
/// Maximum clock difference, in seconds.
const LEEWAY_SECS: i64 = 60;

/// Signs and verifies sessions.
pub(super) struct SessionKey(SecretString);

/// Content of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionClaims {
    /// The user.
    pub(super) sub: String,
    /// Expiry, in seconds since 1970.
    exp: i64,
    /// Time of issue, in seconds since 1970.
    iat: i64,
    /// Version of the user's sessions.
    pub(super) ver: i64,
}

#[derive(Serialize, Deserialize)]
struct JoseHeader {
    alg: String,
    #[serde(default)]
    typ: Option<String>,
}

/// Reason why a session is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFault {
    /// It has expired.
    Expired,
    /// It is invalid.
    Invalid,
}

impl SessionKey {
    /// Uses the operator's secret, or the one in the home folder, which is created if missing.
    pub(super) fn open(chosen: Option<&SecretString>, home: &Path) -> Result<Self> {
        match chosen {
            Some(secret) => Ok(Self(secret.clone())),
            None => token::kept_as(home, FILE).map(Self),
        }
    }

    /// Creates a key from a secret.
    #[cfg(test)]
    pub(super) fn from_secret(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Signs a value for one purpose. It is accepted only for that purpose, and never as a session.
    pub(super) fn seal(&self, purpose: &str, value: &impl Serialize) -> Result<String> {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(value)?);
        let mac = self.mac(format!("{purpose}\n{text}").as_bytes())?.finalize().into_bytes();
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Verifies and reads a value that was signed for a purpose.
    pub(super) fn unseal<T: DeserializeOwned>(&self, purpose: &str, sealed: &str) -> Option<T> {
        let (text, mac) = sealed.split_once('.').filter(|_| sealed.len() <= MAX_BYTES)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(format!("{purpose}\n{text}").as_bytes()).ok()?.verify_slice(&mac).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// Issues a session that begins at `now`, in seconds since 1970.
    pub(super) fn issue(&self, user: &UserId, version: i64, now: i64) -> Result<String> {
        let header = JoseHeader { alg: "HS256".to_owned(), typ: Some("JWT".to_owned()) };
        let claims = SessionClaims { sub: user.to_string(), exp: now + SESSION_SECS, iat: now, ver: version };
        let part = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", part(serde_json::to_vec(&header)?), part(serde_json::to_vec(&claims)?));
        let mac = self.mac(signed.as_bytes())?.finalize().into_bytes();
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Verifies and reads a session.
    pub(super) fn read(&self, token: &str, now: i64) -> Result<SessionClaims, SessionFault> {
        let claims = self.verified(token).ok_or(SessionFault::Invalid)?;
        match claims {
            claims if claims.exp <= now => Err(SessionFault::Expired),
            // Issued in the future: either a clock went back, or a holder of the secret wants a longer session.
            claims if claims.iat > now + LEEWAY_SECS => Err(SessionFault::Invalid),
            claims => Ok(claims),
        }
    }

    fn verified(&self, token: &str) -> Option<SessionClaims> {
        if token.len() > MAX_BYTES {
            return None;
        }
        let (signed, mac) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(signed.as_bytes()).ok()?.verify_slice(&mac).ok()?;
        let header: JoseHeader = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
        let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        (header.alg == "HS256").then_some(claims)
    }

    fn mac(&self, bytes: &[u8]) -> Result<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes())
            .map_err(|error| anyhow!("the secret cannot be used: {error}"))?;
        mac.update(bytes);
        Ok(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;
    /// Signed by another program, with the secret `a-secret-of-tests-and-nothing-else`.
    const FOREIGN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiAiYWRhIiwgImV4cCI6IDE3OTA2MDAwMDAsICJpYXQiOiAxNzg5OTk5MDAwLCAidmVyIjogM30.96nQcGH9iB34B4Xv_6cx1JZn20cTezQpEwJ-hFZQtyM";

    fn key(secret: &str) -> SessionKey {
        SessionKey::from_secret(secret.into())
    }

    #[test]
    fn a_session_is_valid_until_it_expires_and_only_with_its_key() {
        let (own, ada) = (key("a-secret-of-tests-and-nothing-else"), UserId::from_raw("ada").unwrap());
        let token = own.issue(&ada, 3, NOW).unwrap();
        let claims = own.read(&token, NOW + SESSION_SECS - 1).unwrap();
        assert_eq!((claims.sub.as_str(), claims.ver), ("ada", 3));
        assert_eq!(own.read(&token, NOW + SESSION_SECS), Err(SessionFault::Expired));
        assert_eq!(own.read(&token, NOW - LEEWAY_SECS - 1), Err(SessionFault::Invalid));
        assert_eq!(key("another").read(&token, NOW), Err(SessionFault::Invalid));
        assert_eq!(own.read(FOREIGN, NOW).unwrap().sub, "ada", "DeerFlow's order of keys is another one");
    }

    #[test]
    fn unsigned_and_forged_tokens_are_invalid() {
        let (own, ada) = (key("a-secret-of-tests-and-nothing-else"), UserId::from_raw("ada").unwrap());
        let token = own.issue(&ada, 0, NOW).unwrap();
        let (signed, mac) = token.rsplit_once('.').unwrap();
        let (_, claims) = signed.split_once('.').unwrap();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"JWT"}"#);
        let forged = |signed: &str| {
            let mac = own.mac(signed.as_bytes()).unwrap().finalize().into_bytes();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac))
        };
        for token in [
            "",
            "..",
            signed,
            &format!("{signed}."),
            &format!("{none}.{claims}."),
            &forged(&format!("{none}.{claims}")),
            &format!("x{signed}.{mac}"),
            &format!("{token}{}", "A".repeat(MAX_BYTES)),
        ] {
            assert_eq!(own.read(token, NOW), Err(SessionFault::Invalid), "{token}");
        }
    }
}
