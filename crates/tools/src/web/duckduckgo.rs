//! DuckDuckGo, through its web pages, because it has no search API. It sometimes answers a bot with a captcha; the
//! error then suggests waiting or another provider.

use super::{Hit, ImageResult, ProviderClient, Safe};
use dom_query::{Document, Selection};
use pudu_base::ToolError;
use pudu_net::reqwest::{Client, RequestBuilder, Url};
use serde::Deserialize;

/// Site with results for browsers without scripts.
const HTML: &str = "https://html.duckduckgo.com";
/// Site that provides the token for an image search, and the images.
const HOME: &str = "https://duckduckgo.com";
/// User agent of a browser, because DuckDuckGo rejects others.
const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// Strings that only the captcha page contains.
const CAPTCHA_CLASSES: &[&str] = &["anomaly-modal", "challenge-form"];
/// Region code for worldwide results.
const ALL_REGIONS: &str = "wt-wt";

#[derive(Deserialize)]
struct DuckDuckGoResponse {
    #[serde(default)]
    results: Vec<DuckDuckGoImage>,
}

#[derive(Deserialize)]
struct DuckDuckGoImage {
    title: Option<String>,
    image: String,
    thumbnail: Option<String>,
    url: Option<String>,
}

pub(super) async fn search(desk: &ProviderClient, query: &str, most: usize) -> Result<Vec<Hit>, ToolError> {
    let endpoint = desk.endpoint(HTML, "/html/");
    let region = desk.settings.region.as_deref().unwrap_or(ALL_REGIONS);
    let params = [("q", query), ("kl", region), ("kp", safe(desk.settings.safe))];
    let page = page(desk, |client| client.get(&endpoint).query(&params)).await?;
    let document = Document::from(page.as_str());
    let mut hits = Vec::new();
    for result in document.select("div.result").iter().filter(|result| !result.has_class("result--ad")) {
        let link = result.select("a.result__a");
        let address = link.attr("href").and_then(|href| target(&href));
        if let (Some(url), true) = (address, hits.len() < most) {
            hits.push(Hit {
                title: collapsed_text(&link),
                url,
                snippet: collapsed_text(&result.select(".result__snippet")),
            });
        }
    }
    Ok(hits)
}

/// Filters of an image search. Empty ones are omitted.
pub(super) struct ImageFilters<'a> {
    pub(super) size: &'a str,
    pub(super) kind: &'a str,
    pub(super) layout: &'a str,
}

pub(super) async fn images(
    desk: &ProviderClient,
    query: &str,
    filters: &ImageFilters<'_>,
) -> Result<Vec<ImageResult>, ToolError> {
    let home = desk.endpoint(HOME, "/");
    let params = [("q", query), ("iax", "images"), ("ia", "images")];
    let page = page(desk, |client| client.get(&home).query(&params)).await?;
    let token = token(&page).ok_or_else(|| robot(desk))?;
    let filter = |name: &str, value: &str| match value.trim() {
        "" => String::new(),
        value if value.len() <= 20 && value.chars().all(|c| c.is_ascii_alphabetic()) => {
            format!("{name}:{value}")
        }
        _ => String::new(),
    };
    let ImageFilters { size, kind, layout } = filters;
    let filters =
        format!(",{},,{},{},", filter("size", size), filter("type", kind), filter("layout", layout));
    let region = desk.settings.region.as_deref().unwrap_or(ALL_REGIONS);
    let strict = if desk.settings.safe == Safe::Off { "-1" } else { "1" };
    let endpoint = desk.endpoint(HOME, "/i.js");
    let params =
        [("o", "json"), ("q", query), ("l", region), ("vqd", token), ("p", strict), ("f", filters.as_str())];
    let answer =
        desk.exchange.json(|client| browser(client.get(&endpoint).query(&params)).header("referer", &home));
    let found: DuckDuckGoResponse = desk.exchange.read(answer.await?)?;
    let image = |picture: DuckDuckGoImage| ImageResult {
        title: picture.title.unwrap_or_default(),
        image_url: picture.image,
        thumbnail_url: picture.thumbnail.unwrap_or_default(),
        source_url: picture.url.unwrap_or_default(),
    };
    Ok(found.results.into_iter().map(image).collect())
}

/// Fetches a web page. Fails if the response is the captcha.
async fn page(
    desk: &ProviderClient,
    request: impl Fn(&Client) -> RequestBuilder,
) -> Result<String, ToolError> {
    let answer = desk.exchange.send(|client| browser(request(client))).await?;
    let page = String::from_utf8_lossy(&answer.body).into_owned();
    if answer.status == 202 || CAPTCHA_CLASSES.iter().any(|mark| page.contains(mark)) {
        return Err(robot(desk));
    }
    Ok(page)
}

fn browser(request: RequestBuilder) -> RequestBuilder {
    request.header("user-agent", USER_AGENT).header("accept-language", "en,*;q=0.5")
}

fn robot(desk: &ProviderClient) -> ToolError {
    ToolError(format!(
        "{} currently blocks automated requests; try again in a few minutes. The bot's admin can configure \
         another provider",
        desk.provider.title()
    ))
}

fn safe(safe: Safe) -> &'static str {
    match safe {
        Safe::On => "1",
        Safe::Moderate => "-1",
        Safe::Off => "-2",
    }
}

/// Returns the target of a result's link. Links redirect through DuckDuckGo with the target in `uddg`; other links to
/// DuckDuckGo are advertisements.
fn target(href: &str) -> Option<String> {
    let base = Url::parse(HOME).ok()?;
    let url = base.join(href).ok()?;
    let theirs =
        url.domain().is_some_and(|name| name == "duckduckgo.com" || name.ends_with(".duckduckgo.com"));
    if !theirs {
        return Some(url.into());
    }
    let (_, target) = url.query_pairs().find(|(key, _)| key == "uddg")?;
    (url.path() == "/l/").then(|| target.into_owned())
}

fn collapsed_text(selection: &Selection<'_>) -> String {
    selection.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Finds the token that an image search requires: `vqd="…"`, `vqd='…'` or `vqd=…&`.
fn token(page: &str) -> Option<&str> {
    let (_, after) = page.split_once("vqd=")?;
    let after = after.trim_start_matches(['"', '\'']);
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))?;
    let (token, _) = after.split_at(end);
    (!token.is_empty() && token.len() <= 200).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_and_advertisements_are_dropped() {
        for (href, expect) in [
            (
                "//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1&rut=abc",
                Some("https://a.example/x?y=1"),
            ),
            ("/l/?uddg=https%3A%2F%2Fa.example%2F", Some("https://a.example/")),
            ("https://a.example/", Some("https://a.example/")),
            ("https://duckduckgo.com/y.js?ad_domain=a.example&uddg=x", None),
            ("//duckduckgo.com/settings", None),
            ("http://[", None),
        ] {
            assert_eq!(target(href).as_deref(), expect, "{href}");
        }
    }

    #[test]
    fn the_token_is_found_in_every_notation() {
        for (page, expect) in [
            ("x vqd=\"4-123_a\",", Some("4-123_a")),
            ("vqd='4-1'", Some("4-1")),
            ("&vqd=4-12&p=1", Some("4-12")),
            ("vqd=\"\"", None),
            ("vqd=", None),
            ("nothing", None),
        ] {
            assert_eq!(token(page), expect, "{page}");
        }
    }
}
