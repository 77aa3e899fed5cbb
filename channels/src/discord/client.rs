//! Calls to Discord's REST API, version 10. Rate limits in responses are returned to the caller, which records them.
//!
//! This is a custom client on top of the shared HTTP client, because rate limits have to be returned to the caller,
//! files are streamed from disk, and `api_url` may have a path.

use super::facts::{DiscordError, failure};
use crate::{
    recovery::CALL_TIMEOUT,
    transport::{AccountTransport, CallEffect, CallError, RawResponse, below_escaped},
};
use pudu_net::reqwest::{Method, RequestBuilder, header, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use url::Url;

/// Maximum size of an API response, in bytes. A page of a history has a few hundred kilobytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// User agent, in the form that Discord requires.
const AGENT: &str =
    concat!("DiscordBot (", env!("CARGO_PKG_REPOSITORY"), ", ", env!("CARGO_PKG_VERSION"), ")");
/// Hosts that serve Discord's files.
const FILES: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// Discord's API with one bot's token.
pub(super) struct DiscordClient {
    pub(super) transport: AccountTransport,
    api_url: Url,
    pub(super) token: SecretString,
}

/// A successful response.
pub(super) struct DiscordResponse<T> {
    pub(super) body: T,
    /// How long the next call of this kind has to wait, if this one used up the rate limit.
    pub(super) full: Option<Duration>,
    /// Time of the response, by Discord's clock.
    pub(super) date: Option<SystemTime>,
}

impl DiscordClient {
    pub(super) fn new(api_url: Url, token: SecretString) -> Result<Self, String> {
        Ok(Self { transport: AccountTransport::new()?, api_url, token })
    }

    /// Builds a request. Escapes each segment of the path.
    pub(super) fn request(&self, verb: Method, path: &[&str]) -> RequestBuilder {
        let url = below_escaped(&self.api_url, ["v10"].into_iter().chain(path.iter().copied()));
        // The token of an interaction is in the path and authenticates its answer.
        let open = matches!(path.first(), Some(&("webhooks" | "interactions")));
        let request = self.transport.http.request(verb, url).header(header::USER_AGENT, AGENT);
        let request = request.timeout(CALL_TIMEOUT);
        match open {
            true => request,
            false => request.header(header::AUTHORIZATION, format!("Bot {}", self.token.expose_secret())),
        }
    }

    /// Makes a GET call.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<DiscordResponse<T>, DiscordError> {
        self.send(CallEffect::Reads, self.request(Method::GET, path).query(query)).await
    }

    /// Makes a call with a form that contains files.
    pub(super) async fn call_with_files<T: DeserializeOwned>(
        &self,
        verb: Method,
        path: &[&str],
        form: Form,
        timeout: Duration,
    ) -> Result<DiscordResponse<T>, DiscordError> {
        let request = self.request(verb, path).multipart(form);
        self.send(CallEffect::Writes, request.timeout(timeout)).await
    }

    /// Sends a request and reads the response.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        effect: CallEffect,
        request: RequestBuilder,
    ) -> Result<DiscordResponse<T>, DiscordError> {
        self.transport.exchange(effect, request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }

    /// Builds the request to download a file. Its URL alone grants access, so the token, which is only for
    /// the API, is not sent.
    pub(super) fn get_file(&self, url: &str) -> Result<RequestBuilder, DiscordError> {
        let url = Url::parse(url).map_err(|_| CallError::Refused("the file has no valid URL".to_owned()))?;
        if !self.keeps(&url) {
            return Err(CallError::Refused("the file is not hosted by Discord".to_owned()));
        }
        Ok(self.transport.http.get(url))
    }

    /// Returns whether a file's URL is on one of Discord's hosts, or on the configured API's.
    fn keeps(&self, url: &Url) -> bool {
        let discords = url.scheme() == "https" && url.port().is_none();
        let host = url.host_str().unwrap_or_default();
        url.origin() == self.api_url.origin() || (discords && FILES.contains(&host))
    }
}

fn read<T: DeserializeOwned>(response: &RawResponse) -> Result<DiscordResponse<T>, DiscordError> {
    if !(200..300).contains(&response.status) {
        return Err(failure(response));
    }
    let full = match response.header("x-ratelimit-remaining") {
        Some("0") => seconds(response.header("x-ratelimit-reset-after")),
        _ => None,
    };
    let body = match response.body.as_slice() {
        [] => serde_json::from_value(Value::Null).map_err(|_| response.unreadable())?,
        _ => response.json()?,
    };
    Ok(DiscordResponse { body, full, date: response.date() })
}

fn seconds(word: Option<&str>) -> Option<Duration> {
    word?.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(api: &str) -> DiscordClient {
        DiscordClient::new(api.parse().unwrap(), "secret".into()).unwrap()
    }

    #[test]
    fn files_come_from_discord_only() {
        let discord = client("https://discord.com/api");
        let cases = [
            ("https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1", true),
            ("https://media.discordapp.net/attachments/1/2/a.png", true),
            ("http://cdn.discordapp.com/attachments/1/2/a.txt", false),
            ("https://cdn.discordapp.com:8443/a", false),
            ("https://cdn.discordapp.com.evil.example/a", false),
            ("https://cdn.discordapp.com@evil.example/a", false),
            ("http://169.254.169.254/latest/meta-data", false),
            ("http://127.0.0.1:80/x", false),
        ];
        for (url, own) in cases {
            assert_eq!(discord.keeps(&url.parse().unwrap()), own, "{url}");
        }
        let local = client("http://127.0.0.1:8083/api");
        assert!(local.keeps(&"http://127.0.0.1:8083/attachments/x".parse().unwrap()));
        assert!(!local.keeps(&"http://127.0.0.1:8084/attachments/x".parse().unwrap()));
    }

    #[test]
    fn the_token_is_sent_only_to_the_api_and_never_in_a_url() {
        let cases = [
            ("https://discord.com/api", vec!["users", "@me"], "https://discord.com/api/v10/users/@me", true),
            (
                "http://proxy:1/a/b/",
                vec!["channels", "1/../2"],
                "http://proxy:1/a/b/v10/channels/1%2F..%2F2",
                true,
            ),
            ("http://x", vec!["webhooks", "1", "tok"], "http://x/v10/webhooks/1/tok", false),
            (
                "http://x",
                vec!["interactions", "1", "tok", "callback"],
                "http://x/v10/interactions/1/tok/callback",
                false,
            ),
        ];
        for (api, path, url, shown) in cases {
            let request = client(api).request(Method::GET, &path).build().unwrap();
            assert_eq!(request.url().as_str(), url);
            assert_eq!(request.headers().contains_key(header::AUTHORIZATION), shown, "{url}");
        }
    }
}
