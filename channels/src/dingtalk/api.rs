//! Calls to DingTalk's two hosts: tokens, bounds, and nothing secret in what comes back of them.

use super::failure::{DingError, read, unreachable, unread};
use crate::{ChannelError, OutFile, http, recovery::Recovery};
use pudu_net::{
    guard::{AllowedTargets, Guard, GuardError},
    reqwest::{Client, Method, RequestBuilder, Response, header, multipart},
    scrub,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};
use tokio::time::Instant;
use url::Url;

/// How long a call may take.
const CALL_TIMEOUT: Duration = crate::recovery::CALL_TIMEOUT;
/// How long the sending of an ordinary message may take: DingTalk knows no repetition of it.
const UNKEYED: Duration = crate::recovery::LONG_CALL;
/// How long an upload of the largest file may take.
const UPLOAD: Duration = Duration::from_secs(120);
/// Maximum size of an API response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// A token is made anew so long before its end.
const RESERVE: Duration = Duration::from_secs(5 * 60);
/// How long a token is good where DingTalk does not say it.
const TOKEN: u64 = 7200;

/// The app's calls.
pub(super) struct DingTalkApi {
    http: Client,
    guard: Guard,
    pub(super) api_url: Url,
    pub(super) oapi_url: Url,
    client_id: String,
    secret: SecretString,
    token: Mutex<Option<AccessToken>>,
    recovery: Recovery,
}

struct AccessToken {
    text: SecretString,
    until: Instant,
}

/// Clock reading from the token endpoint's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// DingTalk's time, where it tells it.
    pub(super) there: Option<SystemTime>,
}

impl DingTalkApi {
    pub(super) fn new(
        client_id: String,
        secret: SecretString,
        api_url: Url,
        oapi_url: Url,
    ) -> Result<Self, ChannelError> {
        let broken = |error: pudu_net::reqwest::Error| ChannelError::Config(error.to_string());
        let (http, guard) =
            (pudu_net::client().map_err(broken)?, Guard::new(AllowedTargets::default()).map_err(broken)?);
        let (token, recovery) = (Mutex::default(), Recovery::default());
        Ok(Self { http, guard, api_url, oapi_url, client_id, secret, token, recovery })
    }

    /// Returns what tells when DingTalk answers again.
    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Makes a call with the access token; once more with a new one if the old is not good any more.
    pub(super) async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, DingError> {
        self.ask(method, path, body, CALL_TIMEOUT).await
    }

    /// Posts what is there twice if it is posted twice.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, DingError> {
        self.ask(Method::POST, path, body, UNKEYED).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Value, DingError> {
        match self.once(method.clone(), path, body, patience).await {
            Err(DingError::Token(_)) => {
                self.forget();
                self.once(method, path, body, patience).await
            }
            result => result,
        }
    }

    async fn once(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        patience: Duration,
    ) -> Result<Value, DingError> {
        let token = self.token().await?;
        let request = self.http.request(method, join(&self.api_url, path)?).json(body);
        self.send(request.header("x-acs-dingtalk-access-token", token.expose_secret()), patience).await
    }

    /// Asks for the right to connect: an endpoint and a ticket.
    pub(super) async fn open(&self, topics: &[&str]) -> Result<(Url, SecretString), DingError> {
        let topics: Vec<Value> =
            topics.iter().map(|topic| json!({"type": "CALLBACK", "topic": topic})).collect();
        let body = json!({
            "clientId": self.client_id, "clientSecret": self.secret.expose_secret(), "subscriptions": topics,
            "ua": concat!("pudu/", env!("CARGO_PKG_VERSION")), "localIp": "127.0.0.1",
        });
        let url = join(&self.api_url, "/v1.0/gateway/connections/open")?;
        // Without this header the answer is XML.
        let request = self.http.post(url).header(header::ACCEPT, "application/json").json(&body);
        let answer = self.send(request, CALL_TIMEOUT).await?;
        let unreadable = || DingError::Unknown("the answer names no endpoint".to_owned());
        let endpoint = answer["endpoint"].as_str().and_then(|text| Url::parse(text).ok());
        let endpoint = endpoint.ok_or_else(unreadable)?;
        let secure = self.api_url.scheme() != "https" || endpoint.scheme() == "wss";
        if !secure || !matches!(endpoint.scheme(), "ws" | "wss") {
            return Err(DingError::Refused("the endpoint is not a safe WebSocket address".to_owned()));
        }
        let ticket = answer["ticket"].as_str().ok_or_else(unreadable)?;
        Ok((endpoint, ticket.into()))
    }

    /// Returns a good token.
    async fn token(&self) -> Result<SecretString, DingError> {
        if let Some(token) = self.kept() {
            return Ok(token);
        }
        // Two that ask at once get the same token: nothing is gained by a lock.
        let (answer, _) = self.ask_token().await.map_err(DingError::unseen)?;
        let text = answer["accessToken"].as_str().filter(|text| !text.is_empty());
        let text: SecretString =
            text.ok_or_else(|| DingError::Unconnected("the answer has no token".to_owned()))?.into();
        let lasts = Duration::from_secs(answer["expireIn"].as_u64().unwrap_or(TOKEN));
        let until = Instant::now() + lasts.saturating_sub(RESERVE).max(lasts / 2);
        scrub::remember_issued(text.expose_secret());
        let token = AccessToken { text: text.clone(), until };
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        Ok(text)
    }

    /// Tries the credentials.
    pub(super) async fn ask_token(&self) -> Result<(Value, Clock), DingError> {
        let body = json!({"appKey": self.client_id, "appSecret": self.secret.expose_secret()});
        let request = self.http.post(join(&self.api_url, "/v1.0/oauth2/accessToken")?).json(&body);
        let response = request.timeout(CALL_TIMEOUT).send().await.map_err(unreachable);
        let response = response.inspect_err(|_| self.recovery.failed())?;
        let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
        let there = date.and_then(|date| httpdate::parse_http_date(date).ok());
        match self.noted(answer(response).await) {
            Ok(answer) => Ok((answer, Clock { there })),
            // It is the credentials here that are not good, whatever it says.
            Err(DingError::Token(what)) => Err(DingError::Credentials(what)),
            Err(error) => Err(error),
        }
    }

    fn kept(&self) -> Option<SecretString> {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        token.as_ref().filter(|token| token.until > Instant::now()).map(|token| token.text.clone())
    }

    fn forget(&self) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Posts to a session's own address, which carries its right in itself.
    pub(super) async fn post_session(&self, url: Url, body: &Value) -> Result<(), DingError> {
        self.send(self.http.post(url).json(body), UNKEYED).await.map(drop)
    }

    async fn send(&self, request: RequestBuilder, patience: Duration) -> Result<Value, DingError> {
        self.noted(send(request.timeout(patience)).await)
    }

    /// Notes what a call that was made says of DingTalk.
    fn noted<T>(&self, result: Result<T, DingError>) -> Result<T, DingError> {
        self.recovery.note(&result, |failure| {
            matches!(failure, DingError::Unconnected(_) | DingError::Unknown(_) | DingError::Strange(_))
        });
        result
    }

    /// Uploads a file; returns its media id. Nobody sees it yet: a failure leaves nothing behind.
    pub(super) async fn upload(&self, file: &OutFile, size: u64, kind: &str) -> Result<String, DingError> {
        let uploaded = match self.upload_once(file, size, kind).await {
            Err(DingError::Token(_)) => {
                self.forget();
                self.upload_once(file, size, kind).await
            }
            result => result,
        };
        uploaded.map_err(DingError::unseen)
    }

    async fn upload_once(&self, file: &OutFile, size: u64, kind: &str) -> Result<String, DingError> {
        let token = self.token().await?;
        let mut url = join(&self.oapi_url, "/media/upload")?;
        url.query_pairs_mut().append_pair("access_token", token.expose_secret());
        let content =
            tokio::fs::File::open(&file.path).await.map_err(|error| DingError::Refused(error.to_string()))?;
        let stream = tokio_util::io::ReaderStream::new(content);
        let body = pudu_net::reqwest::Body::wrap_stream(stream);
        let part = multipart::Part::stream_with_length(body, size).file_name(file.name.clone());
        let form = multipart::Form::new().text("type", kind.to_owned()).part("media", part);
        let answer = self.noted(send(self.http.post(url).multipart(form).timeout(UPLOAD)).await)?;
        let id = answer["media_id"].as_str().filter(|id| !id.is_empty());
        id.map(str::to_owned).ok_or_else(|| DingError::Unknown("the answer has no media id".to_owned()))
    }

    /// Asks for a file by its address, without any token: the address is the right to it. One that leads into
    /// somebody's own network is not DingTalk's.
    pub(super) async fn fetch(&self, url: Url, patience: Duration) -> Result<Response, DingError> {
        if url.host_str() == self.api_url.host_str() {
            return self.http.get(url).timeout(patience).send().await.map_err(unreachable);
        }
        self.guard.open(url.as_str(), patience).await.map_err(|error| match error {
            GuardError::Refused(why) => DingError::Refused(why),
            other => DingError::Unconnected(other.to_string()),
        })
    }
}

async fn send(request: RequestBuilder) -> Result<Value, DingError> {
    answer(request.send().await.map_err(unreachable)?).await
}

async fn answer(response: Response) -> Result<Value, DingError> {
    let status = response.status().as_u16();
    let wait = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = wait.and_then(|value| value.trim().parse().ok());
    let body = http::body(response, MAX_RESPONSE_BYTES).await.map_err(unread)?;
    read(status, wait, &body)
}

/// Puts a path behind a base, which may have a path of its own (a proxy).
fn join(base: &Url, path: &str) -> Result<Url, DingError> {
    let text = format!("{}{path}", base.as_str().trim_end_matches('/'));
    Url::parse(&text).map_err(|error| DingError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_net::guard::{Lookup, Resolver};
    use std::{
        net::{IpAddr, Ipv4Addr},
        sync::Arc,
    };

    /// Knows one name, which nobody else knows.
    struct SingleNameResolver;

    impl Resolver for SingleNameResolver {
        fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
            Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
        }
    }

    /// A name that is resolved once more could be somewhere else by then.
    #[tokio::test]
    async fn a_file_is_fetched_from_the_very_address_that_was_judged() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = axum::Router::new().fallback(|| async { "bytes" });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = |text: &str| Url::parse(text).unwrap();
        let (base, other) = (url("https://api.dingtalk.com"), url("https://oapi.dingtalk.com"));
        let allowed = AllowedTargets::new(["127.0.0.1"]);
        let api = DingTalkApi {
            guard: Guard::with(allowed, Arc::new(SingleNameResolver)).unwrap(),
            ..DingTalkApi::new("id".into(), "s".into(), base, other).unwrap()
        };
        let file = url(&format!("http://files.pudu.invalid:{port}/a"));
        let response = api.fetch(file, Duration::from_secs(5)).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "bytes");
    }
}
