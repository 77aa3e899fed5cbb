//! Serper, which returns Google's results: <https://serper.dev>.

use super::{Hit, ImageResult, ProviderClient};
use pudu_base::ToolError;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

const BASE: &str = "https://google.serper.dev";
/// Maximum number of results. A request for more costs twice as much.
const MAX_RESULTS: usize = 10;

#[derive(Deserialize)]
struct SerperResponse {
    organic: Option<Vec<SerperItem>>,
    images: Option<Vec<SerperImage>>,
}

#[derive(Deserialize)]
struct SerperItem {
    title: Option<String>,
    link: String,
    snippet: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SerperImage {
    title: Option<String>,
    image_url: String,
    thumbnail_url: Option<String>,
    link: Option<String>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let found = ask(desk, "/search", query, most).await?;
    let hit = |item: SerperItem| Hit {
        title: item.title.unwrap_or_default(),
        url: item.link,
        snippet: item.snippet.unwrap_or_default(),
    };
    Ok(found.organic.unwrap_or_default().into_iter().map(hit).collect())
}

pub(super) async fn images(
    desk: &ProviderClient,
    query: &str,
    most: usize,
) -> Result<Vec<ImageResult>, ToolError> {
    let found = ask(desk, "/images", query, most).await?;
    let image = |picture: SerperImage| ImageResult {
        title: picture.title.unwrap_or_default(),
        image_url: picture.image_url,
        thumbnail_url: picture.thumbnail_url.unwrap_or_default(),
        source_url: picture.link.unwrap_or_default(),
    };
    Ok(found.images.unwrap_or_default().into_iter().map(image).collect())
}

async fn ask(
    desk: &ProviderClient,
    path: &str,
    query: &str,
    most: usize,
) -> Result<SerperResponse, ToolError> {
    let (key, endpoint) = (desk.key()?.expose_secret(), desk.endpoint(BASE, path));
    let body = json!({"q": query, "num": most.min(MAX_RESULTS)});
    let answer = desk.exchange.json(|client| client.post(&endpoint).header("x-api-key", key).json(&body));
    desk.exchange.read(answer.await?)
}
