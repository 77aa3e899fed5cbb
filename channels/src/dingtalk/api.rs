//! Calls to DingTalk's two hosts, with access tokens and size limits. Results contain no secrets.

use super::facts::{DingTalkCase, DingTalkError, read};
use crate::{
    ChannelError, OutFile,
    recovery::{CALL_TIMEOUT, LONG_CALL},
    transport::{
        AccountTransport, CallEffect, CallError, IssuedToken, OutgoingFile, TokenCache, begin_fetch, below,
        describe, transfer_timeout,
    },
};
use pudu_net::{
    guard::{AllowedTargets, Guard, GuardError},
    reqwest::{Method, RequestBuilder, Response, header, multipart::Form},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use url::Url;

/// Timeout for uploading the largest file.
const MAX_UPLOAD_TIME: Duration = Duration::from_secs(120);
/// Maximum size of an API response, in bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// How long before its expiry a token is renewed.
const TOKEN_RENEWAL: Duration = Duration::from_secs(5 * 60);
/// Lifetime of a token if DingTalk does not report it, in seconds.
const DEFAULT_TOKEN_LIFETIME: u64 = 7200;

/// API client of one app.
pub(super) struct DingTalkApi {
    pub(super) transport: AccountTransport,
    guard: Guard,
    pub(super) api_url: Url,
    pub(super) oapi_url: Url,
    client_id: String,
    secret: SecretString,
    token: TokenCache<DingTalkCase>,
}

impl DingTalkApi {
    pub(super) fn new(
        client_id: String,
        secret: SecretString,
        api_url: Url,
        oapi_url: Url,
    ) -> Result<Self, ChannelError> {
        let transport = AccountTransport::new().map_err(ChannelError::Config)?;
        let guard =
            Guard::new(AllowedTargets::default()).map_err(|error| ChannelError::Config(describe(error)))?;
        let token = TokenCache::new(TOKEN_RENEWAL);
        Ok(Self { transport, guard, api_url, oapi_url, client_id, secret, token })
    }

    /// Makes a call with the access token. Repeats it with a new token if the old one is no longer valid.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, DingTalkError> {
        self.ask(CallEffect::Writes, &method, path, body, CALL_TIMEOUT).await
    }

    /// Makes a call that only reads.
    pub(super) async fn look_up(&self, path: &str, body: &Value) -> Result<Value, DingTalkError> {
        self.ask(CallEffect::Reads, &Method::POST, path, body, CALL_TIMEOUT).await
    }

    /// Makes a POST call that is not idempotent.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, DingTalkError> {
        self.ask(CallEffect::Writes, &Method::POST, path, body, LONG_CALL).await
    }

    async fn ask(
        &self,
        effect: CallEffect,
        method: &Method,
        path: &str,
        body: &Value,
        timeout: Duration,
    ) -> Result<Value, DingTalkError> {
        self.with_token(|token| async move {
            let request = self.transport.http.request(method.clone(), below(&self.api_url, path)).json(body);
            let request = request.header("x-acs-dingtalk-access-token", token.expose_secret());
            self.send(effect, request.timeout(timeout)).await
        })
        .await
    }

    async fn with_token<T, F>(&self, call: impl Fn(SecretString) -> F) -> Result<T, DingTalkError>
    where
        F: Future<Output = Result<T, DingTalkError>>,
    {
        self.token.call(|| self.issue(), call).await
    }

    /// Requests an endpoint and a ticket for a connection.
    pub(super) async fn open(&self, topics: &[&str]) -> Result<(Url, SecretString), DingTalkError> {
        let topics: Vec<Value> =
            topics.iter().map(|topic| json!({"type": "CALLBACK", "topic": topic})).collect();
        let body = json!({
            "clientId": self.client_id, "clientSecret": self.secret.expose_secret(), "subscriptions": topics,
            "ua": concat!("pudu/", env!("CARGO_PKG_VERSION")), "localIp": "127.0.0.1",
        });
        let url = below(&self.api_url, "v1.0/gateway/connections/open");
        // Without this header the response is XML.
        let request = self.transport.http.post(url).header(header::ACCEPT, "application/json").json(&body);
        let answer = self.send(CallEffect::Reads, request.timeout(CALL_TIMEOUT)).await?;
        let unreadable = || CallError::Unknown("the response contains no endpoint".to_owned());
        let endpoint = answer["endpoint"].as_str().and_then(|text| Url::parse(text).ok());
        let endpoint = endpoint.ok_or_else(unreadable)?;
        let secure = self.api_url.scheme() != "https" || endpoint.scheme() == "wss";
        if !secure || !matches!(endpoint.scheme(), "ws" | "wss") {
            return Err(CallError::Refused("the endpoint is not a `wss://` URL of DingTalk".to_owned()));
        }
        let ticket = answer["ticket"].as_str().ok_or_else(unreadable)?;
        Ok((endpoint, ticket.into()))
    }

    async fn issue(&self) -> Result<IssuedToken, DingTalkError> {
        let (answer, _) = self.ask_token().await?;
        let text = answer["accessToken"].as_str().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| CallError::Unconnected("the response contains no token".to_owned()))?;
        let seconds = answer["expireIn"].as_u64().unwrap_or(DEFAULT_TOKEN_LIFETIME);
        Ok(IssuedToken { text: text.into(), lifetime: Duration::from_secs(seconds) })
    }

    /// Tests the credentials. Returns the response, and DingTalk's time if the response contains it.
    pub(super) async fn ask_token(&self) -> Result<(Value, Option<SystemTime>), DingTalkError> {
        let body = json!({"appKey": self.client_id, "appSecret": self.secret.expose_secret()});
        let request = self.transport.http.post(below(&self.api_url, "v1.0/oauth2/accessToken")).json(&body);
        let request = request.timeout(CALL_TIMEOUT);
        let answer = self.transport.exchange(CallEffect::Reads, request, MAX_RESPONSE_BYTES, |response| {
            Ok((read(&response)?, response.date()))
        });
        answer.await.map_err(|error| match error {
            // This call has no token, so the credentials are wrong.
            CallError::StaleToken(what) => CallError::Auth(what),
            error => error,
        })
    }

    /// Posts to a session's URL, which itself grants access.
    pub(super) async fn post_session(&self, url: Url, body: &Value) -> Result<(), DingTalkError> {
        let request = self.transport.http.post(url).json(body).timeout(LONG_CALL);
        self.send(CallEffect::Writes, request).await.map(drop)
    }

    async fn send(&self, effect: CallEffect, request: RequestBuilder) -> Result<Value, DingTalkError> {
        self.transport.exchange(effect, request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }

    /// Uploads a file and returns its media id. The file is not visible yet, so a failure leaves nothing behind.
    pub(super) async fn upload(&self, file: &OutFile, kind: &str) -> Result<String, DingTalkError> {
        let uploaded = self.with_token(|token| async move {
            let form = Form::new().text("type", kind.to_owned());
            let form = form.part("media", OutgoingFile::open(file).await?.part());
            let request = self.transport.http.post(below(&self.oapi_url, "media/upload"));
            let request = request.query(&[("access_token", token.expose_secret())]).multipart(form);
            let answer = self.send(CallEffect::Writes, request.timeout(MAX_UPLOAD_TIME)).await?;
            let id = answer["media_id"].as_str().filter(|id| !id.is_empty());
            id.map(str::to_owned)
                .ok_or_else(|| CallError::Unknown("the response contains no media id".to_owned()))
        });
        uploaded.await.map_err(DingTalkError::before)
    }

    /// Downloads a file by its URL, without a token: the URL itself grants access. Refuses URLs in private networks
    /// unless they are on the API's host.
    pub(super) async fn fetch(&self, url: Url, limit: u64) -> Result<Response, CallError> {
        if url.host_str() == self.api_url.host_str() {
            return begin_fetch(self.transport.http.get(url), limit).await;
        }
        self.guard.open(url.as_str(), transfer_timeout(limit)).await.map_err(|error| match error {
            GuardError::Refused(why) => CallError::Refused(why),
            other => CallError::Unconnected(other.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_net::guard::{Lookup, Resolver};
    use std::{
        net::{IpAddr, Ipv4Addr},
        sync::Arc,
    };

    /// A resolver for one name that no other resolver knows.
    struct SingleNameResolver;

    impl Resolver for SingleNameResolver {
        fn lookup<'a>(&'a self, _: &'a str) -> Lookup<'a> {
            Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
        }
    }

    /// A second lookup of the name could return another address.
    #[tokio::test]
    async fn a_file_is_fetched_from_the_address_that_was_checked() {
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
        let response = api.fetch(file, 1000).await.unwrap();
        assert_eq!(response.text().await.unwrap(), "bytes");
    }
}
