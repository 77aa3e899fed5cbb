//! Calls of Slack's Web API: forms for what reads, JSON for what writes, errors in HTTP 200.

use super::failure::{SlackApiError, failure, unreachable, unread, unreadable};
use crate::{
    http,
    recovery::{CALL_TIMEOUT, Recovery},
};
use pudu_net::reqwest::{self, RequestBuilder, Response, header};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::Duration;
use url::{Url, form_urlencoded};

/// Maximum size of an API response, in bytes: a page of a history with its blocks has some megabytes at
/// most.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";

/// Slack's Web API with the tokens of one app.
pub(super) struct SlackClient {
    http: reqwest::Client,
    api_url: Url,
    bot_token: SecretString,
    app_token: Option<SecretString>,
    recovery: Recovery,
    reads: Recovery,
}

/// Which token a call shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlackToken {
    Bot,
    App,
}

/// Common fields of every response.
#[derive(Deserialize)]
struct SlackResponseHead {
    #[serde(default)]
    ok: bool,
    error: Option<String>,
    needed: Option<String>,
}

/// An answer, and the scopes and the time that its headers tell.
pub(super) struct SlackResponse<T> {
    pub(super) body: T,
    /// `x-oauth-scopes`
    pub(super) scopes: Option<String>,
    /// `date`
    pub(super) date: Option<String>,
}

impl SlackClient {
    pub(super) fn new(
        api_url: Url,
        bot_token: SecretString,
        app_token: Option<SecretString>,
    ) -> Result<Self, String> {
        let http = pudu_net::client().map_err(|error| error.without_url().to_string())?;
        Ok(Self {
            http,
            api_url,
            bot_token,
            app_token,
            recovery: Recovery::default(),
            reads: Recovery::default(),
        })
    }

    /// Returns what tells when Slack takes messages again.
    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns what tells when Slack answers again, whatever it is asked.
    pub(super) fn reads(&self) -> &Recovery {
        &self.reads
    }

    /// Calls a method that reads: Slack sees parameters of those only in forms.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &[(&str, &str)],
    ) -> Result<T, SlackApiError> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let request = self.http.post(self.url(method)?).header(header::CONTENT_TYPE, FORM).body(form);
        Ok(self.send(request, SlackToken::Bot).await?.body)
    }

    /// Calls a method that writes.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, SlackApiError> {
        let request = self.http.post(self.url(method)?).json(params);
        let told = self.send(request, SlackToken::Bot).await;
        self.recovery.note(&told, SlackApiError::is_outage);
        Ok(told?.body)
    }

    /// Calls a method without parameters and returns the headers' words too.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
    ) -> Result<SlackResponse<T>, SlackApiError> {
        self.send(self.http.post(self.url(method)?), SlackToken::Bot).await
    }

    /// Asks for the address of a connection.
    pub(super) async fn open<T: DeserializeOwned>(&self) -> Result<T, SlackApiError> {
        let request = self.http.post(self.url("apps.connections.open")?);
        Ok(self.send(request, SlackToken::App).await?.body)
    }

    /// Answers a slash command at the address that came with it, without the token: the address is the proof.
    pub(super) async fn respond(&self, url: &Url, answer: &Value) -> Result<(), SlackApiError> {
        let request = self.http.post(url.clone()).json(answer).timeout(CALL_TIMEOUT);
        let response = request.send().await.map_err(unreachable)?;
        let wait = pudu_net::retry::after(response.headers(), std::time::SystemTime::now());
        match response.status().as_u16() {
            200..300 => Ok(()),
            status @ (429 | 500..) => Err(unreadable(status, wait)),
            status => Err(SlackApiError::Refused(format!(
                "no answer to the command is taken any more (HTTP {status})"
            ))),
        }
    }

    /// The client, for addresses that are not the API's.
    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Fetches a file of Slack's, with the token. Other hosts never see it.
    pub(super) async fn file(&self, url: &str, patience: Duration) -> Result<Response, SlackApiError> {
        let url =
            Url::parse(url).map_err(|_| SlackApiError::Refused("the file has no address".to_owned()))?;
        if !self.is_slacks(&url) {
            return Err(SlackApiError::Refused("the file is not kept by Slack".to_owned()));
        }
        let request = self.http.get(url).bearer_auth(self.bot_token.expose_secret()).timeout(patience);
        request.send().await.map_err(unreachable)
    }

    /// Returns whether an address is Slack's own, or that of the configured stand-in.
    pub(super) fn is_slacks(&self, url: &Url) -> bool {
        let own = url.origin() == self.api_url.origin();
        let host = url.host_str().unwrap_or_default();
        let slack = host == "slack.com" || host.ends_with(".slack.com");
        let files = host == "slack-files.com" || host.ends_with(".slack-files.com");
        own || (url.scheme() == "https" && url.port().is_none() && (slack || files))
    }

    fn url(&self, method: &str) -> Result<Url, SlackApiError> {
        let base = self.api_url.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}/{method}"))
            .map_err(|_| SlackApiError::Refused("api_url is no address".to_owned()))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        token: SlackToken,
    ) -> Result<SlackResponse<T>, SlackApiError> {
        let token = match token {
            SlackToken::Bot => &self.bot_token,
            SlackToken::App => self
                .app_token
                .as_ref()
                .ok_or_else(|| SlackApiError::Auth("there is no app_token".to_owned()))?,
        };
        let told = exchange(request.bearer_auth(token.expose_secret()).timeout(CALL_TIMEOUT)).await;
        self.recovery.note_read(&told, SlackApiError::is_outage);
        self.reads.note(&told, SlackApiError::is_outage);
        told
    }
}

async fn exchange<T: DeserializeOwned>(request: RequestBuilder) -> Result<SlackResponse<T>, SlackApiError> {
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let wait = pudu_net::retry::after(response.headers(), std::time::SystemTime::now());
    let word = |name: header::HeaderName| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
    };
    let (scopes, date) = (word(header::HeaderName::from_static("x-oauth-scopes")), word(header::DATE));
    let bytes = http::body(response, MAX_RESPONSE_BYTES).await.map_err(unread)?;
    let envelope: SlackResponseHead = serde_json::from_slice(&bytes).map_err(|_| unreadable(status, wait))?;
    if status == 429 {
        return Err(unreadable(status, wait));
    }
    if !envelope.ok {
        let error = envelope.error.unwrap_or_else(|| format!("nothing (HTTP {status})"));
        return Err(failure(&error, wait, envelope.needed.as_deref()));
    }
    let body = serde_json::from_slice(&bytes).map_err(|_| unreadable(status, wait))?;
    Ok(SlackResponse { body, scopes, date })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_slack_only() {
        let client = |api: &str| SlackClient::new(api.parse().unwrap(), "xoxb-1".into(), None).unwrap();
        let slack = client("https://slack.com/api");
        let cases = [
            ("https://files.slack.com/files-pri/T1-F1/download/a.txt", true),
            ("https://team.slack.com/x", true),
            ("https://hooks.slack.com/commands/T1/2/x", true),
            ("http://files.slack.com/x", false),
            ("https://files.slack.com:8443/x", false),
            ("https://files.slack.com.evil.example/x", false),
            ("https://evilslack.com/x", false),
            ("https://files.slack.com@evil.example/x", false),
            ("https://drive.example/x", false),
            ("http://127.0.0.1:80/x", false),
        ];
        for (url, own) in cases {
            assert_eq!(slack.is_slacks(&url.parse().unwrap()), own, "{url}");
        }
        let local = client("http://127.0.0.1:8083/api");
        assert!(local.is_slacks(&"http://127.0.0.1:8083/files/x".parse().unwrap()));
        assert!(!local.is_slacks(&"http://127.0.0.1:8084/files/x".parse().unwrap()));
    }
}
