//! Exa: <https://exa.ai/docs>.

use super::{FetchedPage, Hit, ProviderClient};
use pudu_base::ToolError;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};

const BASE: &str = "https://api.exa.ai";
/// Maximum length of a requested page, in characters, because the provider charges for fetched text.
const MAX_PAGE_CHARS: usize = 200_000;

#[derive(Deserialize)]
struct ExaResponse {
    #[serde(default)]
    results: Vec<ExaItem>,
    #[serde(default)]
    statuses: Vec<Value>,
}

#[derive(Deserialize)]
struct ExaItem {
    title: Option<String>,
    url: String,
    text: Option<String>,
    highlights: Option<Vec<String>>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let highlights = json!({"maxCharacters": desk.settings.max_chars.min(10_000)});
    let body = json!({
        "query": query, "type": "auto", "numResults": most.min(100), "contents": {"highlights": highlights},
    });
    let hit = |item: ExaItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.url,
        snippet: item.highlights.unwrap_or_default().join(" … "),
    };
    Ok(ask(desk, "/search", &body).await?.results.into_iter().map(hit).collect())
}

/// Fetches a page. Exa reports an unreadable page in the body of a response with status 200.
pub(super) async fn fetch(desk: &ProviderClient, url: &str) -> Result<FetchedPage, ToolError> {
    let body = json!({"urls": [url], "text": {"maxCharacters": MAX_PAGE_CHARS}});
    let mut found = ask(desk, "/contents", &body).await?;
    if let Some(item) = found.results.pop() {
        let (title, text) = (item.title.unwrap_or_default(), item.text.unwrap_or_default());
        return Ok(FetchedPage { url: item.url, title, text });
    }
    let why = found.statuses.iter().find_map(|status| status.pointer("/error/tag")?.as_str());
    Err(ToolError(format!(
        "Exa could not read {url}: {}",
        super::foreign::line(why.unwrap_or_default(), 100)
    )))
}

async fn ask(desk: &ProviderClient, path: &str, body: &Value) -> Result<ExaResponse, ToolError> {
    let (key, endpoint) = (desk.key()?.expose_secret(), desk.endpoint(BASE, path));
    let answer = desk.exchange.json(|client| client.post(&endpoint).header("x-api-key", key).json(body));
    desk.exchange.read(answer.await?)
}
