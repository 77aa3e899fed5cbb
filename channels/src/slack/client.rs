//! Calls to Slack's Web API: forms for reads, JSON for writes, errors as HTTP 200.

use super::{
    facts::{SlackError, failure},
    wire::{HistoryPage, SlackMessage},
};
use crate::{
    recovery::CALL_TIMEOUT,
    transport::{AccountTransport, CallEffect, CallError, RawResponse, below, send},
};
use pudu_net::{
    reqwest::{RequestBuilder, header},
    retry,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::time::SystemTime;
use url::{Url, form_urlencoded};

/// Maximum size of an API response, in bytes. A page of a history with its blocks has at most a few megabytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

const FORM: &str = "application/x-www-form-urlencoded";

/// Slack's Web API with the tokens of one app.
pub(super) struct SlackClient {
    pub(super) transport: AccountTransport,
    api_url: Url,
    bot_token: SecretString,
    app_token: Option<SecretString>,
}

/// Token of a call.
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

/// A response, with the scopes and the time from its headers.
pub(super) struct SlackResponse<T> {
    pub(super) body: T,
    /// `x-oauth-scopes`
    pub(super) scopes: Option<String>,
    pub(super) date: Option<SystemTime>,
}

impl SlackClient {
    pub(super) fn new(
        api_url: Url,
        bot_token: SecretString,
        app_token: Option<SecretString>,
    ) -> Result<Self, String> {
        Ok(Self { transport: AccountTransport::new()?, api_url, bot_token, app_token })
    }

    /// Calls a method that reads. Slack accepts parameters of these methods only in forms.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &[(&str, &str)],
    ) -> Result<T, SlackError> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let request = self.post(method).header(header::CONTENT_TYPE, FORM).body(form);
        Ok(self.send(CallEffect::Reads, request, SlackToken::Bot).await?.body)
    }

    /// Calls a method that writes.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, SlackError> {
        Ok(self.send(CallEffect::Writes, self.post(method).json(params), SlackToken::Bot).await?.body)
    }

    /// Calls a method without parameters. Also returns data from the headers.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
    ) -> Result<SlackResponse<T>, SlackError> {
        self.send(CallEffect::Reads, self.post(method), SlackToken::Bot).await
    }

    /// Requests the URL of a connection.
    pub(super) async fn open<T: DeserializeOwned>(&self) -> Result<T, SlackError> {
        Ok(self.send(CallEffect::Reads, self.post("apps.connections.open"), SlackToken::App).await?.body)
    }

    /// Answers a slash command at its response URL, without the token: the URL itself grants access.
    pub(super) async fn respond(&self, url: &Url, answer: &Value) -> Result<(), SlackError> {
        let request = self.transport.http.post(url.clone()).json(answer).timeout(CALL_TIMEOUT);
        // The body is irrelevant: the status alone shows that the answer was accepted.
        let response = send(request).await?;
        match response.status().as_u16() {
            200..300 => Ok(()),
            status @ (429 | 500..) => {
                let wait = retry::after(response.headers(), SystemTime::now());
                Err(CallError::of_status(status, wait))
            }
            status => {
                Err(CallError::Refused(format!("the command can no longer be answered (HTTP {status})")))
            }
        }
    }

    /// Builds the request to download a file from Slack, with the token. The token is never sent to other hosts.
    pub(super) fn get_file(&self, url: &str) -> Result<RequestBuilder, SlackError> {
        let url = Url::parse(url).map_err(|_| CallError::Refused("the file has no valid URL".to_owned()))?;
        if !self.is_slacks(&url) {
            return Err(CallError::Refused("the file is not hosted by Slack".to_owned()));
        }
        Ok(self.transport.http.get(url).bearer_auth(self.bot_token.expose_secret()))
    }

    /// Reads at most `max_pages` pages of a channel's or a thread's history, while there are further pages and `more`
    /// returns true.
    pub(super) async fn history(
        &self,
        method: &str,
        params: &[(&str, &str)],
        max_pages: usize,
        more: impl Fn(&[SlackMessage]) -> bool,
    ) -> Result<Vec<SlackMessage>, SlackError> {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        for _ in 0..max_pages {
            let params = [params, &[("cursor", cursor.as_str())]].concat();
            let page: HistoryPage = self.read(method, &params).await?;
            let wanted = more(&page.messages);
            found.extend(page.messages);
            cursor = page.response_metadata.next_cursor;
            if !wanted || cursor.is_empty() {
                break;
            }
        }
        Ok(found)
    }

    /// Returns whether a URL is on one of Slack's hosts, or on the configured API's.
    pub(super) fn is_slacks(&self, url: &Url) -> bool {
        let own = url.origin() == self.api_url.origin();
        let host = url.host_str().unwrap_or_default();
        let slack = host == "slack.com" || host.ends_with(".slack.com");
        let files = host == "slack-files.com" || host.ends_with(".slack-files.com");
        own || (url.scheme() == "https" && url.port().is_none() && (slack || files))
    }

    fn post(&self, method: &str) -> RequestBuilder {
        self.transport.http.post(below(&self.api_url, method))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        effect: CallEffect,
        request: RequestBuilder,
        token: SlackToken,
    ) -> Result<SlackResponse<T>, SlackError> {
        let token = match token {
            SlackToken::Bot => &self.bot_token,
            SlackToken::App => self
                .app_token
                .as_ref()
                .ok_or_else(|| CallError::Auth("no `app_token` is configured".to_owned()))?,
        };
        let request = request.bearer_auth(token.expose_secret()).timeout(CALL_TIMEOUT);
        self.transport.exchange(effect, request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }
}

fn read<T: DeserializeOwned>(response: &RawResponse) -> Result<SlackResponse<T>, SlackError> {
    let head: SlackResponseHead = response.json()?;
    if response.status == 429 {
        return Err(response.unreadable());
    }
    if !head.ok {
        let error = head.error.unwrap_or_else(|| format!("nothing (HTTP {})", response.status));
        return Err(failure(&error, response.wait(), head.needed.as_deref()));
    }
    let scopes = response.header("x-oauth-scopes").map(str::to_owned);
    Ok(SlackResponse { body: response.json()?, scopes, date: response.date() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_sent_only_to_slack() {
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
