//! ID tokens: verified claims about a person, issued by the provider for this client and this login, and still valid.

use super::ring_provider;
use jsonwebtoken::{
    Algorithm, DecodingKey, Header, Validation, decode, decode_header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::{Number, Value};
use subtle::ConstantTimeEq;

/// Maximum length of a token, in bytes.
const MAX_BYTES: usize = 16 * 1024;
/// Maximum clock difference, in seconds.
const LEEWAY_SECS: u64 = 60;
/// Maximum length of a subject, in bytes: the limit of OpenID Connect.
const MAX_SUBJECT_BYTES: usize = 255;

/// Values that a token must have for a login.
pub(super) struct ExpectedToken<'e> {
    pub(super) issuer: &'e str,
    pub(super) client_id: &'e str,
    /// The nonce of the login; `None` if it had none.
    pub(super) nonce: Option<&'e str>,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// A provider's claims about a person.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct PersonClaims {
    pub(super) sub: String,
    pub(super) email: Option<String>,
    #[serde(default)]
    email_verified: Value,
}

impl PersonClaims {
    /// Returns whether the provider has verified the e-mail address. Some providers send a string.
    pub(super) fn is_verified(&self) -> bool {
        self.email_verified == Value::Bool(true) || self.email_verified == "true"
    }
}

#[derive(Deserialize)]
struct TokenClaims {
    iss: String,
    aud: TokenAudience,
    azp: Option<String>,
    iat: Number,
    nonce: Option<String>,
    #[serde(flatten)]
    person: PersonClaims,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenAudience {
    One(String),
    Several(Vec<String>),
}

/// Reason why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenFault {
    /// It is signed by an unknown key, which the provider may have added recently.
    #[error("no key of the provider matches it")]
    UnknownKey,
    /// It is invalid.
    #[error("{0}")]
    Refused(String),
}

fn refused<T>(why: &str) -> Result<T, TokenFault> {
    Err(TokenFault::Refused(why.to_owned()))
}

/// Verifies and reads a token that is signed by one of these keys.
pub(super) fn read(
    token: &str,
    keys: &[Jwk],
    expected: &ExpectedToken<'_>,
) -> Result<PersonClaims, TokenFault> {
    if token.len() > MAX_BYTES {
        return refused("it is too long");
    }
    let header = decode_header(token).or_else(|error| refused(&error.to_string()))?;
    if !ring_provider::verifies(header.alg) {
        return refused("its signature algorithm is not accepted");
    }
    if header.crit.is_some() {
        return refused("it has critical extensions");
    }
    let key = key_of(&header, keys).ok_or(TokenFault::UnknownKey)?;
    let key = DecodingKey::from_jwk(key).or_else(|error| refused(&error.to_string()))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY_SECS;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let decoded =
        decode::<TokenClaims>(token, &key, &validation).or_else(|error| refused(&error.to_string()))?;
    checked(decoded.claims, expected)
}

/// Checks the requirements of OpenID Connect beyond RFC 7519.
fn checked(claims: TokenClaims, expected: &ExpectedToken<'_>) -> Result<PersonClaims, TokenFault> {
    if claims.iss != expected.issuer {
        return refused("its issuer is wrong");
    }
    let is_ours = |party: &String| party == expected.client_id;
    let (is_for_us, is_for_others) = match &claims.aud {
        TokenAudience::One(one) => (is_ours(one), false),
        TokenAudience::Several(all) => (all.iter().any(is_ours), !all.iter().all(is_ours)),
    };
    if !is_for_us {
        return refused("its audience is wrong");
    }
    match &claims.azp {
        Some(party) if !is_ours(party) => return refused("its authorized party is wrong"),
        None if is_for_others => return refused("it has several audiences and no authorized party"),
        _ => {}
    }
    let latest = expected.now.saturating_add_unsigned(LEEWAY_SECS) as f64;
    if claims.iat.as_f64().is_none_or(|iat| iat > latest) {
        return refused("it was issued in the future");
    }
    if let Some(nonce) = expected.nonce {
        let received = claims.nonce.as_deref().unwrap_or_default();
        if !bool::from(received.as_bytes().ct_eq(nonce.as_bytes())) {
            return refused("it belongs to a different sign-in");
        }
    }
    if claims.person.sub.is_empty() || claims.person.sub.len() > MAX_SUBJECT_BYTES {
        return refused("its subject is empty or too long");
    }
    Ok(claims.person)
}

/// Finds the key that a header names. If it names none, exactly one key must fit.
fn key_of<'k>(header: &Header, keys: &'k [Jwk]) -> Option<&'k Jwk> {
    let mut fitting = keys.iter().filter(|key| fits(key, header.alg));
    match &header.kid {
        Some(id) => fitting.find(|key| key.common.key_id.as_ref() == Some(id)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
}

/// Returns whether a key is for signatures with this algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let signs = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let named = key.common.key_algorithm.is_none_or(|named| named == algorithm.into());
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256 | Algorithm::RS384 | Algorithm::RS512) => true,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => key.curve == EllipticCurve::P256,
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => key.curve == EllipticCurve::P384,
        _ => false,
    };
    signs && named && kind
}
