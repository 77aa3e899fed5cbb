//! The operator's SearXNG instance: <https://docs.searxng.org/dev/search_api.html>. Its `search.formats` has to contain
//! `json`.

use super::{Hit, ProviderClient};
use pudu_base::ToolError;
use serde::Deserialize;

const BASE: &str = "http://localhost:8088";

#[derive(Deserialize)]
struct SearxngResponse {
    #[serde(default)]
    results: Vec<SearxngItem>,
}

#[derive(Deserialize)]
struct SearxngItem {
    title: Option<String>,
    url: String,
    content: Option<String>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let endpoint = desk.endpoint(BASE, "/search");
    let parameters =
        [("q", query), ("format", "json"), ("pageno", "1"), ("safesearch", desk.settings.safe.number())];
    let answer = desk.exchange.json(|client| client.get(&endpoint).query(&parameters)).await?;
    let found: SearxngResponse = desk.exchange.read(answer)?;
    let hit = |item: SearxngItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.url,
        snippet: item.content.unwrap_or_default(),
    };
    Ok(found.results.into_iter().take(most).map(hit).collect())
}
