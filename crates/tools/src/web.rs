//! The tools with network access: `web_search`, `web_fetch` and `image_search`. Each is backed by one of several
//! providers, which have one file each.
//!
//! Three rules apply to all. URLs chosen by the model or by a page are fetched through the guard of `pudu-net`
//! (`own.rs`), or at least checked by it before a provider gets them; only a provider's own endpoint, which the
//! operator configured, is trusted. Results are foreign text, which is sanitized and framed (`foreign.rs`). Errors let
//! the model continue and never contain the operator's keys (`exchange.rs`).

mod brave;
mod duckduckgo;
mod exa;
mod exchange;
mod firecrawl;
mod foreign;
mod image_search;
mod jina;
mod own;
mod page;
mod query;
mod searxng;
mod serper;
mod strip;
mod tavily;
mod web_fetch;
mod web_search;

use crate::web::exchange::Exchange;
use pudu_base::{Tool, ToolError, erase};
use pudu_net::{guard::Guard, reqwest::Url};
use secrecy::SecretString;
use std::{sync::Arc, time::Duration};

/// Service that searches or fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// pudu itself, which fetches pages and converts them to Markdown.
    Own,
    /// DuckDuckGo's web pages, which need no key.
    DuckDuckGo,
    /// Tavily.
    Tavily,
    /// Jina's reader, which needs no key at a low rate.
    Jina,
    /// Firecrawl, in the cloud or self-hosted.
    Firecrawl,
    /// The operator's SearXNG instance.
    SearXng,
    /// Brave Search.
    Brave,
    /// Serper, which returns Google's results.
    Serper,
    /// Exa.
    Exa,
}

/// Tool that a provider can back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebCapability {
    /// `web_search`.
    Search,
    /// `web_fetch`.
    Fetch,
    /// `image_search`.
    Images,
}

/// How strictly a search filters explicit results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safe {
    /// Filters all explicit results.
    On,
    /// The provider's default.
    #[default]
    Moderate,
    /// Filters none.
    Off,
}

impl Safe {
    /// Returns the name of the level that most providers use.
    fn word(self) -> &'static str {
        match self {
            Self::On => "strict",
            Self::Moderate => "moderate",
            Self::Off => "off",
        }
    }

    /// Returns SearXNG's number for the level.
    fn number(self) -> &'static str {
        match self {
            Self::On => "2",
            Self::Moderate => "1",
            Self::Off => "0",
        }
    }
}

/// Settings of a tool.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Base URL of the provider, if it differs from the default.
    pub base_url: Option<Url>,
    /// The key, for providers that need one.
    pub api_key: Option<SecretString>,
    /// Maximum number of results of a search.
    pub max_results: usize,
    /// Maximum length of a search result's snippet, or of the part of a page returned by one call, in characters.
    pub max_chars: usize,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Region of the results: DuckDuckGo's region code (`wt-wt` is worldwide) or Brave's country.
    pub region: Option<String>,
    /// How strictly a search filters explicit results.
    pub safe: Safe,
}

/// Creates a tool; `None` if the provider does not offer it.
///
/// # Errors
/// When the system's TLS roots cannot be loaded.
pub fn tool(
    kind: WebCapability,
    provider: Provider,
    settings: WebSettings,
    guard: &Guard,
) -> Result<Option<Arc<dyn Tool>>, pudu_net::reqwest::Error> {
    let desk = ProviderClient::new(provider, settings, guard.clone())?;
    Ok(match (kind, provider) {
        (
            WebCapability::Search,
            Provider::DuckDuckGo
            | Provider::Tavily
            | Provider::Firecrawl
            | Provider::SearXng
            | Provider::Brave
            | Provider::Serper
            | Provider::Exa,
        ) => Some(erase(web_search::WebSearch(desk))),
        (
            WebCapability::Fetch,
            Provider::Own | Provider::Jina | Provider::Tavily | Provider::Firecrawl | Provider::Exa,
        ) => Some(erase(web_fetch::WebFetch(desk))),
        (WebCapability::Images, Provider::DuckDuckGo | Provider::Brave | Provider::Serper) => {
            Some(erase(image_search::ImageSearch(desk)))
        }
        _ => None,
    })
}

/// Converts a page as `web_fetch` does, for fuzzers.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(kind: &str, body: &[u8]) -> Option<String> {
    let url = Url::parse("https://example.com/a").ok()?;
    web_fetch::render_page(&page::read(&url, kind, body).ok()?, 0, 10_000).ok()
}

/// Client that all providers share.
pub(crate) struct ProviderClient {
    provider: Provider,
    settings: WebSettings,
    exchange: Exchange,
    guard: Guard,
}

impl ProviderClient {
    fn new(
        provider: Provider,
        settings: WebSettings,
        guard: Guard,
    ) -> Result<Self, pudu_net::reqwest::Error> {
        let exchange = Exchange::new(provider.title(), settings.api_key.clone(), settings.timeout)?;
        Ok(Self { provider, settings, exchange, guard })
    }

    /// Returns the URL of an endpoint, with the provider's default base URL or the configured one.
    fn endpoint(&self, usual: &str, path: &str) -> String {
        let base = self.settings.base_url.as_ref().map_or(usual, Url::as_str);
        format!("{}{path}", base.trim_end_matches('/'))
    }

    /// Returns the API key. The error says that the operator has to set one.
    fn key(&self) -> Result<&SecretString, ToolError> {
        self.settings.api_key.as_ref().ok_or_else(|| {
            ToolError(format!(
                "{} needs an API key, which is not configured. The bot's admin has to fix it; continue \
                 without it",
                self.provider.title()
            ))
        })
    }
}

impl Provider {
    /// Returns the provider's public name.
    fn title(self) -> &'static str {
        match self {
            Self::Own => "pudu",
            Self::DuckDuckGo => "DuckDuckGo",
            Self::Tavily => "Tavily",
            Self::Jina => "Jina",
            Self::Firecrawl => "Firecrawl",
            Self::SearXng => "SearXNG",
            Self::Brave => "Brave Search",
            Self::Serper => "Serper",
            Self::Exa => "Exa",
        }
    }
}

/// A search result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) title: String,
    pub(crate) url: String,
    pub(crate) snippet: String,
}

/// An image that a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageResult {
    pub(crate) title: String,
    pub(crate) image_url: String,
    pub(crate) thumbnail_url: String,
    /// The page that shows the image.
    pub(crate) source_url: String,
}

/// A page as Markdown, or a file of another textual type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchedPage {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests;
