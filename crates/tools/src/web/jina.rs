//! Jina's reader: <https://jina.ai/reader>. It renders a page in its own browser and returns the HTML, which is then
//! converted like any other page.

use super::{FetchedPage, ProviderClient, own};
use pudu_base::ToolError;
use pudu_net::reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::json;

const BASE: &str = "https://r.jina.ai";

pub(super) async fn fetch(desk: &ProviderClient, url: &str) -> Result<FetchedPage, ToolError> {
    let endpoint = desk.endpoint(BASE, "/");
    let patience = desk.settings.timeout.as_secs().clamp(1, 180);
    let answer = desk
        .exchange
        .send(|client| {
            let request = client
                .post(&endpoint)
                .header("x-return-format", "html")
                .header("x-timeout", patience)
                .json(&json!({"url": url}));
            match &desk.settings.api_key {
                Some(key) => request.bearer_auth(key.expose_secret()),
                None => request,
            }
        })
        .await?;
    let address = Url::parse(url).map_err(|error| ToolError(error.to_string()))?;
    own::read(address, "text/html; charset=utf-8".to_owned(), answer.body).await
}
