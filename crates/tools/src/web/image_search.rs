//! Searches for images.

use super::{
    ImageResult, Provider, ProviderClient, brave,
    duckduckgo::{self, ImageFilters},
    foreign,
    query::{most, nothing, pretty, query},
    serper,
};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Maximum length of a title, in characters.
const TITLE: usize = 300;

pub(super) struct ImageSearch(pub(super) ProviderClient);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The subject of the images, in a few specific words.
    query: String,
    /// Maximum number of images to return.
    max_results: Option<usize>,
    /// The size: Small, Medium, Large or Wallpaper. Not every provider supports it.
    size: Option<String>,
    /// The kind: photo, clipart, gif, transparent or line. Not every provider supports it.
    type_image: Option<String>,
    /// The shape: Square, Tall or Wide. Not every provider supports it.
    layout: Option<String>,
}

impl Args {
    fn filters(&self) -> ImageFilters<'_> {
        let [size, kind, layout] =
            [&self.size, &self.type_image, &self.layout].map(|wanted| wanted.as_deref().unwrap_or_default());
        ImageFilters { size, kind, layout }
    }
}

impl TypedTool for ImageSearch {
    type Args = Args;
    const NAME: &'static str = "image_search";
    const DESCRIPTION: &'static str = "Searches the web for images. Returns JSON with the title, the URLs of \
                                       the image and its thumbnail, and the page that shows it. Check the \
                                       page for the author and the licence of the image.";
    const IDEMPOTENT: bool = true;

    async fn run(&self, args: Args, _cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let Self(desk) = self;
        let query = query(&args.query)?;
        let limit = most(args.max_results, desk.settings.max_results);
        let images = match desk.provider {
            Provider::DuckDuckGo => duckduckgo::images(desk, query, &args.filters()).await,
            Provider::Brave => brave::images(desk, query, limit).await,
            Provider::Serper => serper::images(desk, query, limit).await,
            // `tool` does not create an image search with these.
            _ => Ok(Vec::new()),
        }?;
        let listed: Vec<_> = images.iter().filter_map(listed).take(limit).collect();
        if listed.is_empty() {
            return Ok(nothing("No images found", query).into());
        }
        let found = json!({
            "query": query,
            "total_results": listed.len(),
            "results": listed,
            "usage_hint": "An image_url can be a reference for generating an image; download it first if \
                           needed.",
        });
        Ok(pretty(&found).into())
    }
}

fn listed(image: &ImageResult) -> Option<Value> {
    let image_url = foreign::address(&image.image_url)?;
    let thumbnail = foreign::address(&image.thumbnail_url).unwrap_or_else(|| image_url.clone());
    Some(json!({
        "title": foreign::line(&image.title, TITLE),
        "image_url": image_url,
        "thumbnail_url": thumbnail,
        "source_url": foreign::address(&image.source_url).unwrap_or_default(),
    }))
}
