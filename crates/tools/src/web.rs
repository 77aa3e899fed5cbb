//! The tools that reach out of the house: `web_search`, `web_fetch`, `image_search`, each by one of several
//! providers, a file each.
//!
//! Three rules hold for all of them. What the model or a page chose is fetched through the guard of `pudu-net`
//! (`own.rs`), or at least looked at by it before a provider is asked for it; only a provider's own endpoint,
//! which the operator configured, is trusted. What comes back is foreign: it is cleaned and marked
//! (`foreign.rs`). And what fails is told so that the model can go on, without the operator's keys in it
//! (`exchange.rs`).

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
    /// pudu itself: fetches pages and makes Markdown of them.
    Own,
    /// DuckDuckGo's pages for people; needs no key.
    DuckDuckGo,
    /// Tavily.
    Tavily,
    /// Jina's reader; works without a key, a little.
    Jina,
    /// Firecrawl, in the cloud or self-hosted.
    Firecrawl,
    /// A SearXNG of the operator's.
    SearXng,
    /// Brave Search.
    Brave,
    /// Serper: Google's results.
    Serper,
    /// Exa.
    Exa,
}

/// Kind of request to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebCapability {
    /// `web_search`.
    Search,
    /// `web_fetch`.
    Fetch,
    /// `image_search`.
    Images,
}

/// How strictly a search leaves out what is not for everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safe {
    /// Everything that is not for everybody.
    On,
    /// The provider's default.
    #[default]
    Moderate,
    /// Nothing.
    Off,
}

impl Safe {
    /// As most providers call it.
    fn word(self) -> &'static str {
        match self {
            Self::On => "strict",
            Self::Moderate => "moderate",
            Self::Off => "off",
        }
    }

    /// As SearXNG counts it.
    fn number(self) -> &'static str {
        match self {
            Self::On => "2",
            Self::Moderate => "1",
            Self::Off => "0",
        }
    }
}

/// How a tool is set up.
#[derive(Clone, Debug)]
pub struct WebSettings {
    /// Base URL of the provider, if not its usual one.
    pub base_url: Option<Url>,
    /// The key, for providers that want one.
    pub api_key: Option<SecretString>,
    /// How many results a search returns at most.
    pub max_results: usize,
    /// How many characters of a page, or of a search's snippet, the model reads at once.
    pub max_chars: usize,
    /// How long one request may take.
    pub timeout: Duration,
    /// Region of the results, for DuckDuckGo (`wt-wt` is everybody's) and Brave (a country).
    pub region: Option<String>,
    /// How strictly a search leaves out what is not for everybody.
    pub safe: Safe,
}

/// Makes a tool; none where the provider does not offer it.
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

/// Reads a page as `web_fetch` does, for fuzzers.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(kind: &str, body: &[u8]) -> Option<String> {
    let url = Url::parse("https://example.com/a").ok()?;
    web_fetch::shown(&page::read(&url, kind, body).ok()?, 0, 10_000).ok()
}

/// Client that every provider's file works with.
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

    /// Returns an address of the provider: its usual one, or the configured base with the same path.
    fn endpoint(&self, usual: &str, path: &str) -> String {
        let base = self.settings.base_url.as_ref().map_or(usual, Url::as_str);
        format!("{}{path}", base.trim_end_matches('/'))
    }

    /// Returns the key, or says who can help.
    fn key(&self) -> Result<&SecretString, ToolError> {
        self.settings.api_key.as_ref().ok_or_else(|| {
            ToolError(format!(
                "{} needs an API key and has none. Whoever runs this bot has to mend it; go on without",
                self.provider.title()
            ))
        })
    }
}

impl Provider {
    /// The name that people know it by.
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

/// One result of a search.
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
    /// The page that shows it.
    pub(crate) source_url: String,
}

/// A page as Markdown, or as whatever text it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FetchedPage {
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests;
