//! Firecrawl, version 2 of its API: <https://docs.firecrawl.dev>.

use super::{FetchedPage, Hit, ProviderClient};
use pudu_base::ToolError;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};

const BASE: &str = "https://api.firecrawl.dev";

#[derive(Deserialize)]
struct FirecrawlEnvelope<T> {
    data: Option<T>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct FirecrawlResults {
    #[serde(default)]
    web: Vec<FirecrawlItem>,
}

#[derive(Deserialize)]
struct FirecrawlItem {
    title: Option<String>,
    url: String,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Scraped {
    markdown: Option<String>,
    #[serde(default)]
    metadata: Value,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let found: FirecrawlResults =
        ask(desk, "/v2/search", &json!({"query": query, "limit": most.min(100)})).await?;
    let hit = |item: FirecrawlItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.url,
        snippet: item.description.unwrap_or_default(),
    };
    Ok(found.web.into_iter().map(hit).collect())
}

pub(super) async fn fetch(desk: &ProviderClient, url: &str) -> Result<FetchedPage, ToolError> {
    let scraped: Scraped = ask(desk, "/v2/scrape", &json!({"url": url, "formats": ["markdown"]})).await?;
    let title = scraped.metadata["title"].as_str().unwrap_or_default().to_owned();
    Ok(FetchedPage { url: url.to_owned(), title, text: scraped.markdown.unwrap_or_default() })
}

/// Sends a request. A self-hosted Firecrawl may not need a key, and the cloud reports a missing one.
async fn ask<T: serde::de::DeserializeOwned>(
    desk: &ProviderClient,
    path: &str,
    body: &Value,
) -> Result<T, ToolError> {
    let endpoint = desk.endpoint(BASE, path);
    let answer = desk.exchange.json(|client| {
        let request = client.post(&endpoint).json(body);
        match &desk.settings.api_key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    });
    let answer: FirecrawlEnvelope<T> = desk.exchange.read(answer.await?)?;
    answer.data.ok_or_else(|| {
        let why = super::foreign::line(&answer.error.unwrap_or_default(), 300);
        ToolError(format!("Firecrawl returned no results: {why}"))
    })
}
