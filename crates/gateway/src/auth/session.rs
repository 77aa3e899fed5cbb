//! Sessions: a signed note of the user who signed in, and of the version of their sessions.
//!
//! It is a JSON Web Token with HMAC-SHA256, as DeerFlow's, so that a secret which both know lets a browser stay signed in when
//! one takes the other's place. Nothing else is read: a library of all of JOSE's ways would be many ways to go wrong.

use super::token;
use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use pudu_client::base::UserId;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::Sha256;
use std::path::Path;

/// The life of a session, in seconds.
pub(super) const SESSION_SECS: i64 = 7 * 24 * 60 * 60;
/// The key's file in the home.
const FILE: &str = ".jwt_secret";
/// A token that is longer is not read, in bytes.
const MAX_BYTES: usize = 4096;
/// Maximum clock difference, in seconds.
const LEEWAY_SECS: i64 = 60;

/// Signs sessions and knows them again.
pub(super) struct SessionKey(SecretString);

/// Content of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionClaims {
    /// The user.
    pub(super) sub: String,
    /// Its end, in seconds since 1970.
    exp: i64,
    /// Its begin.
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

/// The reason why a session is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFault {
    /// It was one.
    Expired,
    /// It never was.
    Invalid,
}

impl SessionKey {
    /// Takes the operator's secret, or the one in the home, which is made if there is none.
    pub(super) fn open(chosen: Option<&SecretString>, home: &Path) -> Result<Self> {
        match chosen {
            Some(secret) => Ok(Self(secret.clone())),
            None => token::kept_as(home, FILE).map(Self),
        }
    }

    /// Takes a secret.
    #[cfg(test)]
    pub(super) fn from_secret(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Signs a value for one purpose, for which alone it is read: it is no session, and no session is such a value.
    pub(super) fn seal(&self, purpose: &str, value: &impl Serialize) -> Result<String> {
        let text = URL_SAFE_NO_PAD.encode(serde_json::to_vec(value)?);
        let mac = self.mac(format!("{purpose}\n{text}").as_bytes())?.finalize().into_bytes();
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Reads a value that was signed for a purpose.
    pub(super) fn unseal<T: DeserializeOwned>(&self, purpose: &str, sealed: &str) -> Option<T> {
        let (text, mac) = sealed.split_once('.').filter(|_| sealed.len() <= MAX_BYTES)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        self.mac(format!("{purpose}\n{text}").as_bytes()).ok()?.verify_slice(&mac).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// Signs a session that begins now, in seconds since 1970.
    pub(super) fn issue(&self, user: &UserId, version: i64, now: i64) -> Result<String> {
        let header = JoseHeader { alg: "HS256".to_owned(), typ: Some("JWT".to_owned()) };
        let claims = SessionClaims { sub: user.to_string(), exp: now + SESSION_SECS, iat: now, ver: version };
        let part = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", part(serde_json::to_vec(&header)?), part(serde_json::to_vec(&claims)?));
        let mac = self.mac(signed.as_bytes())?.finalize().into_bytes();
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Reads a session.
    pub(super) fn read(&self, token: &str, now: i64) -> Result<SessionClaims, SessionFault> {
        let claims = self.verified(token).ok_or(SessionFault::Invalid)?;
        match claims {
            claims if claims.exp <= now => Err(SessionFault::Expired),
            // From the future: a clock went back, or a holder of the secret wants the session to last.
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
    fn a_session_is_known_until_it_ends_and_by_its_own_key() {
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
    fn what_is_not_signed_by_hmac_is_no_session() {
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
