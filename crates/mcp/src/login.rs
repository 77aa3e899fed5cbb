//! Logins of an operator at servers over HTTP: the authorization code grant with PKCE. The client is the one of the
//! entry, or registers itself at the authorization server (RFC 7591). The tokens of a login belong to the URL of its
//! server, and are sent nowhere else.

use crate::{
    discovery::{self, AuthorizationServer, is_local},
    oauth::{self, LoginClient, TokenRequest},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use pudu_base::BoxFuture;
use pudu_net::{
    read_body,
    reqwest::{self, Url, header::HeaderValue},
    scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Mutex;

/// Time that a person has to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Timeout of a registration.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum size of the answer to a registration, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Lifetime of a token whose provider does not state one, in seconds.
const DEFAULT_SECONDS: u64 = 3600;
/// How long before its end a token is replaced, in seconds.
const SKEW_SECONDS: u64 = 60;

/// Keeps logins between starts of the program.
pub trait LoginVault: Send + Sync {
    /// Returns the login at a server.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>>;

    /// Stores the login at a server.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn store<'a>(&'a self, server: &'a str, login: SecretString) -> BoxFuture<'a, Result<(), String>>;
}

/// The tokens of a login, with the client and the address that renew them.
#[derive(Clone, Serialize, Deserialize)]
struct StoredLogin {
    /// The server's URL.
    url: String,
    access_token: String,
    refresh_token: Option<String>,
    /// End of the access token, in seconds since 1970.
    until: u64,
    token_url: String,
    resource: String,
    client: RegisteredClient,
}

/// A client as an authorization server knows it.
#[derive(Clone, Serialize, Deserialize)]
struct RegisteredClient {
    id: String,
    secret: Option<String>,
    /// `none`, `client_secret_basic` or `client_secret_post`.
    method: String,
}

/// A login that has begun, and waits for a person in a browser.
pub struct PendingLogin {
    server: String,
    url: Url,
    at: AuthorizationServer,
    client: RegisteredClient,
    redirect: String,
    state: String,
    verifier: String,
    until: SystemTime,
    vault: Arc<dyn LoginVault>,
}

impl PendingLogin {
    /// Returns the value that the browser brings back.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns the server's name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns whether the person took too long.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        SystemTime::now() > self.until
    }

    /// Returns the address that a person opens in a browser.
    #[must_use]
    pub fn address(&self) -> String {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier));
        let mut address = self.at.authorize.clone();
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.at.resource),
        ]);
        if let Some(scope) = &self.at.scope {
            address.query_pairs_mut().append_pair("scope", scope);
        }
        address.into()
    }

    /// Exchanges the code that the browser brought back, and stores the tokens. `query` is the query of the address to
    /// which the authorization server sent the browser.
    ///
    /// # Errors
    /// The reason why there is no login, which may quote the authorization server.
    pub async fn finish(self, query: &str) -> Result<(), String> {
        let code = self.code(query)?;
        let request = TokenRequest {
            url: &self.at.token,
            form: vec![
                ("grant_type", "authorization_code"),
                ("code", &code),
                ("redirect_uri", &self.redirect),
                ("code_verifier", &self.verifier),
                ("resource", &self.at.resource),
            ],
        };
        let http = pudu_net::client().map_err(|error| error.to_string())?;
        let answer = ask(&http, request, &self.client).await?;
        let login = StoredLogin {
            url: self.url.to_string(),
            access_token: String::new(),
            refresh_token: None,
            until: 0,
            token_url: self.at.token.to_string(),
            resource: self.at.resource,
            client: self.client,
        };
        let login = login.renewed(&answer)?;
        self.vault.store(&self.server, login.serialized()?).await
    }

    /// Checks an answer and returns its code.
    fn code(&self, query: &str) -> Result<String, String> {
        let mut url = Url::parse("query:").map_err(|error| error.to_string())?;
        url.set_query(Some(query));
        let get = |name: &str| {
            let found = url.query_pairs().find(|(key, _)| key == name);
            found.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
        };
        if self.is_expired() {
            return Err("the login took too long; begin again".to_owned());
        }
        if get("state").as_deref() != Some(&self.state) {
            return Err("the answer belongs to another login".to_owned());
        }
        match get("iss") {
            Some(issuer) if issuer != self.at.issuer => {
                return Err("the answer is of another issuer".to_owned());
            }
            None if self.at.names_issuer => return Err("the answer does not name its issuer".to_owned()),
            _ => {}
        }
        if let Some(error) = get("error") {
            let about = get("error_description").map(|about| format!(": {about}")).unwrap_or_default();
            return Err(scrub::hide_and_cut(
                &format!("the authorization server answered {error}{about}"),
                300,
            ));
        }
        get("code").ok_or_else(|| "the answer has no code".to_owned())
    }
}

/// Begins a login at a server.
pub(crate) async fn begin(
    server: &str,
    url: &Url,
    client: &LoginClient,
    redirect: &str,
    vault: Arc<dyn LoginVault>,
) -> Result<PendingLogin, String> {
    let http = pudu_net::client().map_err(|error| error.to_string())?;
    let mut at = discovery::discover(&http, url).await?;
    if client.scope.is_some() {
        at.scope.clone_from(&client.scope);
    }
    let client = match &client.id {
        Some(id) => RegisteredClient {
            id: id.clone(),
            method: method(&at, client.secret.is_some()),
            secret: client.secret.as_ref().map(|secret| secret.expose_secret().to_owned()),
        },
        None => register(&http, &at, redirect).await?,
    };
    Ok(PendingLogin {
        server: server.to_owned(),
        url: url.clone(),
        at,
        client,
        redirect: redirect.to_owned(),
        state: random()?,
        verifier: random()?,
        until: SystemTime::now() + LOGIN_TIMEOUT,
        vault,
    })
}

/// Returns how a client with or without a secret authenticates.
fn method(at: &AuthorizationServer, has_secret: bool) -> String {
    let knows = |method: &str| at.auth_methods.iter().any(|known| known == method);
    let method = match has_secret {
        false => "none",
        true if knows("client_secret_post") && !knows("client_secret_basic") => "client_secret_post",
        true => "client_secret_basic",
    };
    method.to_owned()
}

/// Registers a client.
async fn register(
    http: &reqwest::Client,
    at: &AuthorizationServer,
    redirect: &str,
) -> Result<RegisteredClient, String> {
    let url = at.register.as_ref().ok_or(
        "its authorization server registers no clients: register one there, and put `client_id` into `oauth` of the entry",
    )?;
    let knows = |method: &str| at.auth_methods.iter().any(|known| known == method);
    let wanted = ["none", "client_secret_basic", "client_secret_post"];
    let wanted = wanted.into_iter().find(|method| knows(method)).unwrap_or("client_secret_basic");
    let is_native = Url::parse(redirect).is_ok_and(|redirect| is_local(&redirect));
    let mut body = json!({
        "client_name": "pudu",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": if is_native { "native" } else { "web" },
    });
    if let Some(scope) = &at.scope {
        body["scope"] = json!(scope);
    }
    let unreachable = |_: reqwest::Error| "its authorization server cannot be reached".to_owned();
    let response = http.post(url.clone()).timeout(TIMEOUT).json(&body).send().await.map_err(unreachable)?;
    let status = response.status();
    let too_large = |_| "the answer to the registration is too large".to_owned();
    let answer = read_body(response, MAX_ANSWER_BYTES, unreachable, too_large).await?;
    let answer = pudu_net::json::parse(&answer).unwrap_or_default();
    let text = |key: &str| {
        answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let Some(id) = text("client_id").filter(|_| status.is_success()) else {
        let why = text("error_description").or_else(|| text("error")).unwrap_or_default();
        return Err(scrub::hide_and_cut(
            &format!("its authorization server refused to register pudu ({status}) {why}"),
            300,
        ));
    };
    let secret = text("client_secret");
    let told = text("token_endpoint_auth_method").unwrap_or_else(|| wanted.to_owned());
    let method = if secret.is_none() { "none".to_owned() } else { told };
    Ok(RegisteredClient { id, secret, method })
}

/// Requests tokens with the authentication of a client.
async fn ask(
    http: &reqwest::Client,
    mut request: TokenRequest<'_>,
    client: &RegisteredClient,
) -> Result<Map<String, Value>, String> {
    let secret = client.secret.as_deref().unwrap_or_default();
    if client.method == "client_secret_basic" {
        return oauth::request_token(http, &request, Some((&client.id, secret))).await;
    }
    request.form.push(("client_id", &client.id));
    if client.method == "client_secret_post" {
        request.form.push(("client_secret", secret));
    }
    oauth::request_token(http, &request, None).await
}

impl StoredLogin {
    /// Returns the login with the tokens of an answer.
    fn renewed(mut self, answer: &Map<String, Value>) -> Result<Self, String> {
        let text = |key: &str| answer.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        self.access_token = text("access_token").ok_or("its answer has no `access_token`")?.to_owned();
        scrub::remember_issued(&self.access_token);
        if let Some(refresh) = text("refresh_token") {
            scrub::remember_issued(refresh);
            self.refresh_token = Some(refresh.to_owned());
        }
        let seconds = answer.get("expires_in").and_then(|seconds| match seconds {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        });
        let seconds: u64 = seconds.unwrap_or(DEFAULT_SECONDS);
        self.until = now().saturating_add(seconds.saturating_sub(SKEW_SECONDS.min(seconds / 2)));
        Ok(self)
    }

    fn serialized(&self) -> Result<SecretString, String> {
        serde_json::to_string(self).map(Into::into).map_err(|error| error.to_string())
    }

    fn header(&self) -> Result<HeaderValue, String> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", self.access_token))
            .map_err(|_| "its token cannot be sent in a header".to_owned())?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// The tokens of an operator's login at a server, which all its sessions share.
pub(crate) struct LoginTokens {
    pub(crate) server: String,
    url: Url,
    pub(crate) client: LoginClient,
    pub(crate) vault: Option<Arc<dyn LoginVault>>,
    /// The login, once it was read.
    held: Mutex<Option<Option<StoredLogin>>>,
}

impl LoginTokens {
    pub(crate) fn new(server: &str, url: Url, client: LoginClient) -> Self {
        Self { server: server.to_owned(), url, client, vault: None, held: Mutex::default() }
    }

    /// Returns the same source with the logins of a vault.
    pub(crate) fn kept_in(&self, vault: Arc<dyn LoginVault>) -> Self {
        let fresh = Self::new(&self.server, self.url.clone(), self.client.clone());
        Self { vault: Some(vault), ..fresh }
    }

    /// Returns the value of the `Authorization` header; `None` without a login. `refused` is a value that the server has
    /// just refused.
    ///
    /// # Errors
    /// The reason why the login cannot be used any more.
    pub(crate) async fn header(
        &self,
        http: &reqwest::Client,
        refused: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, String> {
        let mut held = self.held.lock().await;
        let login = match &*held {
            Some(login) => login.clone(),
            None => self.load().await?,
        };
        *held = Some(login.clone());
        let Some(login) = login else { return Ok(None) };
        let header = login.header()?;
        if now() < login.until && Some(&header) != refused {
            return Ok(Some(header));
        }
        let Some(refresh_token) = login.refresh_token.clone() else {
            // The server may still accept the token, and otherwise reports that a login is needed.
            return Ok(Some(header));
        };
        let token_url = Url::parse(&login.token_url).map_err(|error| error.to_string())?;
        let request = TokenRequest {
            url: &token_url,
            form: vec![
                ("grant_type", "refresh_token"),
                ("refresh_token", &refresh_token),
                ("resource", &login.resource),
            ],
        };
        let answer = ask(http, request, &login.client).await?;
        let login = login.renewed(&answer)?;
        if let Some(vault) = &self.vault {
            vault.store(&self.server, login.serialized()?).await?;
        }
        let header = login.header()?;
        *held = Some(Some(login));
        Ok(Some(header))
    }

    async fn load(&self) -> Result<Option<StoredLogin>, String> {
        let Some(vault) = &self.vault else { return Ok(None) };
        let Some(stored) = vault.load(&self.server).await? else { return Ok(None) };
        let login: StoredLogin = serde_json::from_str(stored.expose_secret())
            .map_err(|_| "the stored login cannot be read".to_owned())?;
        scrub::remember_issued(&login.access_token);
        login.refresh_token.as_deref().into_iter().for_each(scrub::remember_issued);
        // The entry may have another URL since.
        Ok(Some(login).filter(|login| login.url == self.url.as_str()))
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns 256 random bits as text.
fn random() -> Result<String, String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness: {error}"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
