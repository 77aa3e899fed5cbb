//! Brave Search: <https://api-dashboard.search.brave.com/documentation>.

use super::{Hit, ImageResult, ProviderClient, Safe};
use pudu_base::ToolError;
use secrecy::ExposeSecret;
use serde::{Deserialize, de::DeserializeOwned};

const BASE: &str = "https://api.search.brave.com";

#[derive(Deserialize)]
struct BraveResponse {
    web: Option<BraveList<BraveItem>>,
}

#[derive(Deserialize)]
struct BraveList<T> {
    #[serde(default = "Vec::new")]
    results: Vec<T>,
}

#[derive(Deserialize)]
struct BraveItem {
    title: Option<String>,
    url: String,
    description: Option<String>,
}

#[derive(Deserialize)]
struct BraveImage {
    title: Option<String>,
    url: Option<String>,
    thumbnail: Option<Thumbnail>,
    properties: Option<Properties>,
}

#[derive(Deserialize)]
struct Thumbnail {
    src: Option<String>,
}

#[derive(Deserialize)]
struct Properties {
    url: Option<String>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let safe = desk.settings.safe.word();
    let found: BraveResponse = ask(desk, "/res/v1/web/search", query, most.min(20), safe).await?;
    let hit = |item: BraveItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.url,
        snippet: item.description.unwrap_or_default(),
    };
    Ok(found.web.into_iter().flat_map(|web| web.results).map(hit).collect())
}

pub(super) async fn images(
    desk: &ProviderClient,
    query: &str,
    most: usize,
) -> Result<Vec<ImageResult>, ToolError> {
    // Brave's image search has no moderate level.
    let safe = if desk.settings.safe == Safe::Off { "off" } else { "strict" };
    let found: BraveList<BraveImage> = ask(desk, "/res/v1/images/search", query, most.min(200), safe).await?;
    let image = |picture: BraveImage| ImageResult {
        title: picture.title.unwrap_or_default(),
        image_url: picture.properties.and_then(|properties| properties.url).unwrap_or_default(),
        thumbnail_url: picture.thumbnail.and_then(|thumbnail| thumbnail.src).unwrap_or_default(),
        source_url: picture.url.unwrap_or_default(),
    };
    Ok(found.results.into_iter().map(image).collect())
}

async fn ask<T: DeserializeOwned>(
    desk: &ProviderClient,
    path: &str,
    query: &str,
    count: usize,
    safe: &str,
) -> Result<T, ToolError> {
    let (key, endpoint) = (desk.key()?.expose_secret(), desk.endpoint(BASE, path));
    let count = count.to_string();
    let mut parameters = vec![("q", query), ("count", &count), ("safesearch", safe)];
    if path.contains("/web/") {
        parameters.push(("text_decorations", "false"));
    }
    if let Some(country) = &desk.settings.region {
        parameters.push(("country", country));
    }
    let answer = desk.exchange.json(|client| {
        let request = client.get(&endpoint).query(&parameters);
        request.header("x-subscription-token", key).header("accept", "application/json")
    });
    desk.exchange.read(answer.await?)
}
