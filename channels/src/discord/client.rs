//! Calls of Discord's REST API, version 10. What its answers tell of limits goes to whoever keeps them.
//!
//! Our own, over the HTTP client that everything shares: a wait has to come back to the caller as such, files
//! are streamed from the disk, and `api_url` may have a path.

use super::failure::{DiscordApiError, failure, unreachable, unread, unreadable};
use crate::{
    http,
    recovery::{CALL_TIMEOUT, Recovery},
};
use pudu_net::reqwest::{self, Method, RequestBuilder, Response, header, multipart::Form};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
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
    http: reqwest::Client,
    api_url: Url,
    token: SecretString,
    recovery: Recovery,
    reads: Recovery,
}

/// An answer.
pub(super) struct DiscordResponse<T> {
    pub(super) body: T,
    /// How long calls of this kind have to wait now: the last that may go was this one.
    pub(super) full: Option<Duration>,
    /// When Discord answered, by its clock.
    pub(super) date: Option<String>,
}

impl DiscordClient {
    pub(super) fn new(api_url: Url, token: SecretString) -> Result<Self, String> {
        let http = pudu_net::client().map_err(|error| error.without_url().to_string())?;
        Ok(Self { http, api_url, token, recovery: Recovery::default(), reads: Recovery::default() })
    }

    pub(super) fn token(&self) -> &SecretString {
        &self.token
    }

    /// Returns what tells when Discord takes messages again.
    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Returns what tells when Discord answers again, whatever it is asked.
    pub(super) fn reads(&self) -> &Recovery {
        &self.reads
    }

    /// Begins a call. Parts of the path that came from outside are escaped.
    pub(super) fn request(&self, verb: Method, path: &[&str]) -> Result<RequestBuilder, DiscordApiError> {
        let mut url = self.api_url.clone();
        url.path_segments_mut()
            .map_err(|()| DiscordApiError::Refused("api_url is no base".to_owned()))?
            .pop_if_empty()
            .push("v10")
            .extend(path);
        // Whoever answers an interaction shows the interaction's own token, which stands in the path.
        let open = matches!(path.first(), Some(&("webhooks" | "interactions")));
        let request = self.http.request(verb, url).header(header::USER_AGENT, AGENT).timeout(CALL_TIMEOUT);
        if open {
            return Ok(request);
        }
        Ok(request.header(header::AUTHORIZATION, format!("Bot {}", self.token.expose_secret())))
    }

    /// Reads something.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<DiscordResponse<T>, DiscordApiError> {
        let told = exchange(self.request(Method::GET, path)?.query(query)).await;
        self.recovery.note_read(&told, DiscordApiError::is_outage);
        self.reads.note(&told, DiscordApiError::is_outage);
        told
    }

    /// Makes a call with a form that brings files.
    pub(super) async fn bring<T: DeserializeOwned>(
        &self,
        verb: Method,
        path: &[&str],
        form: Form,
        patience: Duration,
    ) -> Result<DiscordResponse<T>, DiscordApiError> {
        self.send(self.request(verb, path)?.multipart(form).timeout(patience)).await
    }

    /// Sends a call and reads the answer.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<DiscordResponse<T>, DiscordApiError> {
        let told = exchange(request).await;
        self.recovery.note(&told, DiscordApiError::is_outage);
        self.reads.note(&told, DiscordApiError::is_outage);
        told
    }

    /// Fetches a file. Its address is the right to it: the token goes nowhere but to the API.
    pub(super) async fn file(&self, url: &str, patience: Duration) -> Result<Response, DiscordApiError> {
        let url =
            Url::parse(url).map_err(|_| DiscordApiError::Refused("the file has no address".to_owned()))?;
        if !self.keeps(&url) {
            return Err(DiscordApiError::Refused("the file is not kept by Discord".to_owned()));
        }
        self.http.get(url).timeout(patience).send().await.map_err(unreachable)
    }

    /// Returns whether a file's address is Discord's own, or that of the configured stand-in.
    fn keeps(&self, url: &Url) -> bool {
        let discords = url.scheme() == "https" && url.port().is_none();
        let host = url.host_str().unwrap_or_default();
        url.origin() == self.api_url.origin() || (discords && FILES.contains(&host))
    }
}

async fn exchange<T: DeserializeOwned>(
    request: RequestBuilder,
) -> Result<DiscordResponse<T>, DiscordApiError> {
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status().as_u16();
    let header_wait = pudu_net::retry::after(response.headers(), SystemTime::now());
    let word = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let full = match word("x-ratelimit-remaining") {
        Some("0") => seconds(word("x-ratelimit-reset-after")),
        _ => None,
    };
    let date = word("date").map(str::to_owned);
    let bytes = http::body(response, MAX_RESPONSE_BYTES).await.map_err(unread)?;
    if !(200..300).contains(&status) {
        return Err(failure(status, &bytes, header_wait));
    }
    let bytes = if bytes.is_empty() { b"null" } else { bytes.as_slice() };
    let body = serde_json::from_slice(bytes).map_err(|_| unreadable(status, header_wait))?;
    Ok(DiscordResponse { body, full, date })
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
            let request = client(api).request(Method::GET, &path).unwrap().build().unwrap();
            assert_eq!(request.url().as_str(), url);
            assert_eq!(request.headers().contains_key(header::AUTHORIZATION), shown, "{url}");
        }
    }
}
