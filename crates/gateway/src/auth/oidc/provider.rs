//! An identity provider: its endpoints, its signing keys, and its claims about a person who returns with a code.
//!
//! Published documents are cached for minutes and failures for seconds, and only one request at a time fetches them. An
//! unknown key causes one more fetch, but not often. Every response is limited in time and size, and redirects are not
//! followed.

use super::{
    id_token::{self, ExpectedToken, PersonClaims, TokenFault},
    login_state::LoginState,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jsonwebtoken::jwk::Jwk;
use pudu_config::{ClientAuth, OidcProvider, is_safe_address};
use pudu_kit::clock;
use pudu_net::{
    self as net,
    reqwest::{Client, Error, RequestBuilder, StatusCode, header},
};
use secrecy::ExposeSecret;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::Instant};
use url::{Url, form_urlencoded};

/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a response, in bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// How long a provider's published documents are cached.
const FRESH: Duration = Duration::from_secs(300);
/// Minimum delay before the next call to a provider that failed or lacked a key.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of a provider's keys that are read.
const MAX_KEYS: usize = 64;

/// Reason why a provider did not authenticate a person.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ProviderFault {
    /// The call failed, or the response is unusable.
    #[error("{0}")]
    Broken(String),
    /// The ID token is refused.
    #[error("the ID token is refused: {0}")]
    Token(#[from] TokenFault),
}

fn broken<T>(what: impl Into<String>) -> Result<T, ProviderFault> {
    Err(ProviderFault::Broken(what.into()))
}

/// The endpoints of a provider.
#[derive(Debug)]
pub(super) struct ProviderAddresses {
    pub(super) issuer: String,
    authorization: Url,
    token: Url,
    userinfo: Option<Url>,
    jwks: Url,
}

/// A provider's discovery document, which lists its endpoints.
#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: Option<Url>,
    token_endpoint: Option<Url>,
    userinfo_endpoint: Option<Url>,
    jwks_uri: Option<Url>,
}

#[derive(Deserialize)]
struct KeysDocument {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
    access_token: Option<String>,
}

#[derive(Deserialize)]
struct TokenRefusal {
    error: String,
}

/// A provider's response and its time.
struct KeptAnswer<T> {
    at: Instant,
    said: Result<Arc<T>, ProviderFault>,
}

impl<T> KeptAnswer<T> {
    /// Returns the response while it is fresh.
    fn fresh(cached: &Option<Self>) -> Option<Result<Arc<T>, ProviderFault>> {
        let Self { at, said } = cached.as_ref()?;
        let counts = if said.is_ok() { FRESH } else { PAUSE };
        (at.elapsed() < counts).then(|| said.clone())
    }
}

/// A provider, with its recent responses.
pub(super) struct IdentityProvider {
    pub(super) config: OidcProvider,
    addresses: Mutex<Option<KeptAnswer<ProviderAddresses>>>,
    keys: Mutex<Option<KeptAnswer<Vec<Jwk>>>>,
}

impl IdentityProvider {
    pub(super) fn new(config: OidcProvider) -> Self {
        Self { config, addresses: Mutex::default(), keys: Mutex::default() }
    }

    /// Returns the provider's endpoints.
    pub(super) async fn addresses(&self) -> Result<Arc<ProviderAddresses>, ProviderFault> {
        let mut cached = self.addresses.lock().await;
        if let Some(said) = KeptAnswer::fresh(&cached) {
            return said;
        }
        let discovered = self.discovered().await.map(Arc::new);
        *cached = Some(KeptAnswer { at: Instant::now(), said: discovered.clone() });
        discovered
    }

    async fn discovered(&self) -> Result<ProviderAddresses, ProviderFault> {
        let (endpoints, issuer) = (&self.config.endpoints, &self.config.issuer);
        let mut found = DiscoveryDocument {
            issuer: issuer.clone(),
            authorization_endpoint: None,
            token_endpoint: None,
            userinfo_endpoint: None,
            jwks_uri: None,
        };
        if endpoints.authorization.is_none() || endpoints.token.is_none() || endpoints.jwks.is_none() {
            let discovery_url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
            found = asked("the discovery document", client()?.get(discovery_url)).await?;
        }
        // Otherwise a provider could name another issuer, and its tokens would be accepted as that issuer's.
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return broken("the discovery document has a different issuer");
        }
        let one = |chosen: &Option<Url>, found: Option<Url>, what: &str| match chosen.clone().or(found) {
            Some(url) if is_safe_address(&url) => Ok(url),
            Some(_) => broken(format!("the {what} must use https")),
            None => broken(format!("the provider has no {what}")),
        };
        let userinfo = endpoints.userinfo.clone().or(found.userinfo_endpoint);
        Ok(ProviderAddresses {
            authorization: one(
                &endpoints.authorization,
                found.authorization_endpoint,
                "authorization endpoint",
            )?,
            token: one(&endpoints.token, found.token_endpoint, "token endpoint")?,
            userinfo: userinfo.map(|url| one(&None, Some(url), "userinfo endpoint")).transpose()?,
            jwks: one(&endpoints.jwks, found.jwks_uri, "set of keys")?,
            issuer: found.issuer,
        })
    }

    /// Returns the provider's keys. If the cached ones are `without` and older than `PAUSE`, fetches them again.
    async fn keys(
        &self,
        addresses: &ProviderAddresses,
        without: Option<&Arc<Vec<Jwk>>>,
    ) -> Result<Arc<Vec<Jwk>>, ProviderFault> {
        let mut cached = self.keys.lock().await;
        let is_stale = |said: &KeptAnswer<Vec<Jwk>>| {
            let is_same =
                said.said.as_ref().is_ok_and(|keys| without.is_some_and(|old| Arc::ptr_eq(old, keys)));
            is_same && said.at.elapsed() >= PAUSE
        };
        if let Some(said) = KeptAnswer::fresh(&cached).filter(|_| !cached.as_ref().is_some_and(is_stale)) {
            return said;
        }
        let keys = asked::<KeysDocument>("the set of keys", client()?.get(addresses.jwks.clone())).await;
        // A key of an unknown kind is skipped and does not affect the others.
        let read = |found: KeysDocument| {
            found.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value(key).ok()).collect()
        };
        let keys = keys.map(|found| Arc::new(read(found)));
        *cached = Some(KeptAnswer { at: Instant::now(), said: keys.clone() });
        keys
    }

    /// Returns the URL that a browser is redirected to for a login.
    pub(super) fn login_address(&self, addresses: &ProviderAddresses, login: &LoginState) -> Url {
        let mut url = addresses.authorization.clone();
        let mut pairs = url.query_pairs_mut();
        pairs
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.config.client_id)
            .append_pair("redirect_uri", &login.redirect_uri)
            .append_pair("scope", &self.config.scopes.join(" "))
            .append_pair("state", &login.state);
        if let Some(nonce) = &login.nonce {
            pairs.append_pair("nonce", nonce);
        }
        if let Some(challenge) = login.challenge() {
            pairs.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
        }
        drop(pairs);
        url
    }

    /// Redeems a code, and returns the provider's claims about the person who signed in.
    pub(super) async fn person(
        &self,
        addresses: &ProviderAddresses,
        login: &LoginState,
        code: &str,
    ) -> Result<PersonClaims, ProviderFault> {
        let answer = self.redeemed(addresses, login, code).await?;
        let expected = ExpectedToken {
            issuer: &addresses.issuer,
            client_id: &self.config.client_id,
            nonce: login.nonce.as_deref(),
            now: clock::now() / 1000,
        };
        let keys = self.keys(addresses, None).await?;
        let person = match id_token::read(&answer.id_token, &keys, &expected) {
            // The provider may have just started to sign with a new key.
            Err(TokenFault::UnknownKey) => {
                let newer = self.keys(addresses, Some(&keys)).await?;
                id_token::read(&answer.id_token, &newer, &expected)
            }
            read => read,
        }?;
        let is_enough =
            person.email.is_some() && (person.is_verified() || !self.config.requires_verified_email);
        match (&addresses.userinfo, &answer.access_token) {
            (Some(place), Some(token)) if !is_enough => more(place, token, person).await,
            _ => Ok(person),
        }
    }

    async fn redeemed(
        &self,
        addresses: &ProviderAddresses,
        login: &LoginState,
        code: &str,
    ) -> Result<TokenAnswer, ProviderFault> {
        let mut call = client()?.post(addresses.token.clone()).body(self.redemption(login, code));
        if let ClientAuth::Basic(secret) = &self.config.client_auth {
            // RFC 6749 requires both to be form-encoded first.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encoded(&self.config.client_id), encoded(secret.expose_secret()));
            call = call.header(header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
        }
        let call = call.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let (status, bytes) = answered("the token endpoint", call).await?;
        if !status.is_success() {
            let refusal = serde_json::from_slice::<TokenRefusal>(&bytes).map(|refusal| refusal.error);
            let why = refusal.map(|error| word(&error)).unwrap_or_default();
            return broken(format!("the token endpoint refused the code: {status} {why}"));
        }
        parsed("the token endpoint", &bytes)
    }

    /// Returns the form that redeems a code.
    fn redemption(&self, login: &LoginState, code: &str) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &login.redirect_uri)
            .append_pair("client_id", &self.config.client_id);
        if let Some(verifier) = &login.verifier {
            form.append_pair("code_verifier", verifier);
        }
        if let ClientAuth::Post(secret) = &self.config.client_auth {
            form.append_pair("client_secret", secret.expose_secret());
        }
        form.finish()
    }
}

/// Fetches an e-mail address that the token lacks. Claims about another person are ignored, and the address and its
/// verification must come from the same response.
async fn more(place: &Url, token: &str, person: PersonClaims) -> Result<PersonClaims, ProviderFault> {
    let claims: PersonClaims =
        asked("the userinfo endpoint", client()?.get(place.clone()).bearer_auth(token)).await?;
    match (claims.sub == person.sub, claims.email.is_some()) {
        (false, _) => broken("the userinfo endpoint returned a different subject"),
        (true, true) => Ok(claims),
        (true, false) => Ok(person),
    }
}

/// Returns a provider's error code in a form that is safe to log.
pub(super) fn word(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(64).collect()
}

fn client() -> Result<Client, ProviderFault> {
    net::client().or_else(|error| broken(format!("the HTTP client could not be created: {error}")))
}

async fn asked<T: DeserializeOwned>(what: &str, call: RequestBuilder) -> Result<T, ProviderFault> {
    let (status, bytes) = answered(what, call).await?;
    match status.is_success() {
        true => parsed(what, &bytes),
        false => broken(format!("{what} answered {status}")),
    }
}

fn parsed<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ProviderFault> {
    // The error may repeat the response, which may contain a token.
    serde_json::from_slice(bytes).or_else(|_| broken(format!("the response of {what} cannot be read")))
}

/// Returns a response with its body, even if its status is an error.
async fn answered(what: &str, call: RequestBuilder) -> Result<(StatusCode, Vec<u8>), ProviderFault> {
    let unreachable = |error: Error| {
        ProviderFault::Broken(format!("the request to {what} failed: {}", error.without_url()))
    };
    let work = async {
        let mut response =
            call.header(header::ACCEPT, "application/json").send().await.map_err(unreachable)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                return broken(format!("the response of {what} is too large"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((response.status(), bytes))
    };
    tokio::time::timeout(CALL_TIMEOUT, work)
        .await
        .unwrap_or_else(|_| broken(format!("{what} did not respond in time")))
}
