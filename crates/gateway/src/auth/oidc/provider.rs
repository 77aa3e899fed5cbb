//! An identity provider: its addresses, its signing keys, and its claims about a person who comes back with a code.
//!
//! Published documents are kept for minutes and failures for seconds, and one request at a time fetches them. An
//! unknown key causes one more fetch, but not often. Every answer is bounded in time and size, and no redirect is
//! followed.

use super::{
    id_token::{self, ExpectedToken, PersonClaims, TokenFault},
    login_state::LoginState,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jsonwebtoken::jwk::Jwk;
use pudu_client::net::{
    self,
    reqwest::{Client, Error, RequestBuilder, StatusCode, header},
};
use pudu_config::{ClientAuth, OidcProvider, is_safe_address};
use pudu_kit::clock;
use secrecy::ExposeSecret;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::{sync::Mutex, time::Instant};
use url::{Url, form_urlencoded};

/// Timeout of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// Time after which a provider's published documents are fetched again.
const FRESH: Duration = Duration::from_secs(300);
/// A provider that failed, or had no key of a name, is not asked again for this time.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of a provider's keys that are looked at.
const MAX_KEYS: usize = 64;

/// Reason why a provider vouches for no person.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ProviderFault {
    /// It cannot be asked, or its answer cannot be used.
    #[error("{0}")]
    Broken(String),
    /// Its token is refused.
    #[error("the ID token is refused: {0}")]
    Token(#[from] TokenFault),
}

fn broken<T>(what: impl Into<String>) -> Result<T, ProviderFault> {
    Err(ProviderFault::Broken(what.into()))
}

/// The addresses of a provider.
#[derive(Debug)]
pub(super) struct ProviderAddresses {
    pub(super) issuer: String,
    authorization: Url,
    token: Url,
    userinfo: Option<Url>,
    jwks: Url,
}

/// The document in which a provider publishes them.
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

/// Something that a provider said, and when.
struct KeptAnswer<T> {
    at: Instant,
    said: Result<Arc<T>, ProviderFault>,
}

impl<T> KeptAnswer<T> {
    /// Returns it as long as it counts.
    fn fresh(kept: &Option<Self>) -> Option<Result<Arc<T>, ProviderFault>> {
        let Self { at, said } = kept.as_ref()?;
        let counts = if said.is_ok() { FRESH } else { PAUSE };
        (at.elapsed() < counts).then(|| said.clone())
    }
}

/// A provider, and its recent answers.
pub(super) struct IdentityProvider {
    pub(super) config: OidcProvider,
    addresses: Mutex<Option<KeptAnswer<ProviderAddresses>>>,
    keys: Mutex<Option<KeptAnswer<Vec<Jwk>>>>,
}

impl IdentityProvider {
    pub(super) fn new(config: OidcProvider) -> Self {
        Self { config, addresses: Mutex::default(), keys: Mutex::default() }
    }

    /// Returns where it is.
    pub(super) async fn addresses(&self) -> Result<Arc<ProviderAddresses>, ProviderFault> {
        let mut kept = self.addresses.lock().await;
        if let Some(said) = KeptAnswer::fresh(&kept) {
            return said;
        }
        let said = self.discovered().await.map(Arc::new);
        *kept = Some(KeptAnswer { at: Instant::now(), said: said.clone() });
        said
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
            let place = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
            found = asked("the discovery document", client()?.get(place)).await?;
        }
        // One that speaks for another would have its tokens taken for the other's.
        if found.issuer.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return broken("the discovery document is another issuer's");
        }
        let one = |chosen: &Option<Url>, found: Option<Url>, what: &str| match chosen.clone().or(found) {
            Some(url) if is_safe_address(&url) => Ok(url),
            Some(_) => broken(format!("the {what} is not on https")),
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

    /// Returns the provider's keys. With `without`, fetches them again if the kept ones are the same and older than
    /// `PAUSE`.
    async fn keys(
        &self,
        addresses: &ProviderAddresses,
        without: Option<&Arc<Vec<Jwk>>>,
    ) -> Result<Arc<Vec<Jwk>>, ProviderFault> {
        let mut kept = self.keys.lock().await;
        let is_stale = |said: &KeptAnswer<Vec<Jwk>>| {
            let is_same =
                said.said.as_ref().is_ok_and(|keys| without.is_some_and(|old| Arc::ptr_eq(old, keys)));
            is_same && said.at.elapsed() >= PAUSE
        };
        if let Some(said) = KeptAnswer::fresh(&kept).filter(|_| !kept.as_ref().is_some_and(is_stale)) {
            return said;
        }
        let said = asked::<KeysDocument>("the set of keys", client()?.get(addresses.jwks.clone())).await;
        // A key of a kind that is not known spoils no other.
        let read = |found: KeysDocument| {
            found.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value(key).ok()).collect()
        };
        let said = said.map(|found| Arc::new(read(found)));
        *kept = Some(KeptAnswer { at: Instant::now(), said: said.clone() });
        said
    }

    /// Returns where a browser is sent to begin a login.
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

    /// Redeems a code, and returns the provider's claims about the person who brought it.
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
            // It may be one that the provider signs with since a moment.
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
            // RFC 6749 has both encoded as in a form first.
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

/// Asks for an e-mail address that the token does not have. Claims about another person do not count, and the address
/// and its verification come from one answer.
async fn more(place: &Url, token: &str, person: PersonClaims) -> Result<PersonClaims, ProviderFault> {
    let told: PersonClaims =
        asked("the userinfo endpoint", client()?.get(place.clone()).bearer_auth(token)).await?;
    match (told.sub == person.sub, told.email.is_some()) {
        (false, _) => broken("the userinfo endpoint tells of another person"),
        (true, true) => Ok(told),
        (true, false) => Ok(person),
    }
}

/// Returns a code of a provider's as it may be logged.
pub(super) fn word(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).take(64).collect()
}

fn client() -> Result<Client, ProviderFault> {
    net::client().or_else(|error| broken(format!("there is no HTTP client: {error}")))
}

async fn asked<T: DeserializeOwned>(what: &str, call: RequestBuilder) -> Result<T, ProviderFault> {
    let (status, bytes) = answered(what, call).await?;
    match status.is_success() {
        true => parsed(what, &bytes),
        false => broken(format!("{what} answered {status}")),
    }
}

fn parsed<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, ProviderFault> {
    // The error may repeat the answer, which may be a token.
    serde_json::from_slice(bytes).or_else(|_| broken(format!("the answer of {what} cannot be read")))
}

/// Returns an answer with its body, which may be that of a refusal.
async fn answered(what: &str, call: RequestBuilder) -> Result<(StatusCode, Vec<u8>), ProviderFault> {
    let unreachable =
        |error: Error| ProviderFault::Broken(format!("{what} cannot be asked: {}", error.without_url()));
    let work = async {
        let mut response =
            call.header(header::ACCEPT, "application/json").send().await.map_err(unreachable)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                return broken(format!("the answer of {what} is too large"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((response.status(), bytes))
    };
    tokio::time::timeout(CALL_TIMEOUT, work)
        .await
        .unwrap_or_else(|_| broken(format!("{what} did not answer in time")))
}
