//! Tavily: <https://docs.tavily.com>.

use super::{FetchedPage, Hit, ProviderClient};
use pudu_base::ToolError;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

const BASE: &str = "https://api.tavily.com";

#[derive(Deserialize)]
struct TavilyResponse {
    #[serde(default)]
    results: Vec<TavilyItem>,
    #[serde(default)]
    failed_results: Vec<Failed>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct TavilyItem {
    title: Option<String>,
    url: String,
    content: Option<String>,
    raw_content: Option<String>,
}

#[derive(Deserialize)]
struct Failed {
    error: Option<String>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let found = ask(desk, "/search", &json!({"query": query, "max_results": most.min(20)})).await?;
    let hit = |item: TavilyItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.url,
        snippet: item.content.unwrap_or_default(),
    };
    Ok(found.results.into_iter().map(hit).collect())
}

pub(super) async fn fetch(desk: &ProviderClient, url: &str) -> Result<FetchedPage, ToolError> {
    let mut found = ask(desk, "/extract", &json!({"urls": [url], "format": "markdown"})).await?;
    if let Some(item) = found.results.pop() {
        let (title, text) = (item.title.unwrap_or_default(), item.raw_content.unwrap_or_default());
        return Ok(FetchedPage { url: url.to_owned(), title, text });
    }
    let why = found.failed_results.into_iter().find_map(|failed| failed.error).unwrap_or_default();
    Err(ToolError(format!("Tavily could not read {url}: {}", super::foreign::line(&why, 300))))
}

async fn ask(
    desk: &ProviderClient,
    path: &str,
    body: &serde_json::Value,
) -> Result<TavilyResponse, ToolError> {
    let (key, endpoint) = (desk.key()?.expose_secret(), desk.endpoint(BASE, path));
    let answer = desk.exchange.json(|client| client.post(&endpoint).bearer_auth(key).json(body)).await?;
    desk.exchange.read(answer)
}
