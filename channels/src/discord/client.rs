//! Calls of Discord's REST API, version 10. Rate limits in its answers are returned to the caller that records them.
//!
//! Our own, over the HTTP client that everything shares: a wait has to come back to the caller as such, files
//! are streamed from the disk, and `api_url` may have a path.

use super::failure::{DiscordError, failure};
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

/// Maximum size of an API response, in bytes: a page of a history has some hundred kilobytes.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;
/// Discord lets in only who calls itself like this.
const AGENT: &str =
    concat!("DiscordBot (", env!("CARGO_PKG_REPOSITORY"), ", ", env!("CARGO_PKG_VERSION"), ")");
/// Hosts on which Discord keeps files.
const FILES: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];

/// Discord's API with one bot's token.
pub(super) struct DiscordClient {
    pub(super) transport: AccountTransport,
    api_url: Url,
    pub(super) token: SecretString,
}

/// An answer.
pub(super) struct DiscordResponse<T> {
    pub(super) body: T,
    /// How long calls of this kind have to wait now: the last that may go was this one.
    pub(super) full: Option<Duration>,
    /// When Discord answered, by its clock.
    pub(super) date: Option<SystemTime>,
}

impl DiscordClient {
    pub(super) fn new(api_url: Url, token: SecretString) -> Result<Self, String> {
        Ok(Self { transport: AccountTransport::new()?, api_url, token })
    }

    /// Begins a call. Parts of the path that came from outside are escaped.
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

    /// Reads something.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<DiscordResponse<T>, DiscordError> {
        self.send(CallEffect::Reads, self.request(Method::GET, path).query(query)).await
    }

    /// Makes a call with a form that brings files.
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

    /// Sends a call and reads the answer.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        effect: CallEffect,
        request: RequestBuilder,
    ) -> Result<DiscordResponse<T>, DiscordError> {
        self.transport.exchange(effect, request, MAX_RESPONSE_BYTES, |response| read(&response)).await
    }

    /// Begins to fetch a file. Its address is the right to it: the token goes nowhere but to the API.
    pub(super) fn get_file(&self, url: &str) -> Result<RequestBuilder, DiscordError> {
        let url = Url::parse(url).map_err(|_| CallError::Refused("the file has no address".to_owned()))?;
        if !self.keeps(&url) {
            return Err(CallError::Refused("the file is not kept by Discord".to_owned()));
        }
        Ok(self.transport.http.get(url))
    }

    /// Returns whether a file's address is Discord's own, or that of the configured replacement.
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
    fn the_token_is_shown_to_the_api_and_stands_in_no_address() {
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
