//! Converts a server's response to text for a model: a page becomes the Markdown of its main content, text is only
//! decoded, and anything else is an error that names its type.

use super::{FetchedPage, strip::strip};
use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use encoding_rs::Encoding;
use pudu_documents::text;
use pudu_net::reqwest::Url;

/// Minimum length of an article, in characters. Shorter text may not be the page's main content.
const MIN_ARTICLE_CHARS: usize = 200;
/// Elements that are skipped in a page without an article.
const ASIDE: &[&str] = &["title", "nav", "footer", "aside"];

/// Textual content types other than `text/…`.
const TEXTS: &[&str] = &[
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/javascript",
    "application/x-ndjson",
    "application/sql",
    "application/x-sh",
    "application/x-tex",
    "message/rfc822",
];

/// Parses a server's response. The error for an unsupported type names the type.
pub(crate) fn read(url: &Url, kind: &str, body: &[u8]) -> Result<FetchedPage, String> {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let essence = if essence.is_empty() || essence == "application/octet-stream" {
        guess(body).to_owned()
    } else {
        essence
    };
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(html(url, &decode(kind, body))),
        "application/pdf" => {
            Err("this is a PDF, which this tool cannot read; ask for it as a file in the chat, or look for \
                 the same content as a web page"
                .to_owned())
        }
        text if text.starts_with("text/")
            || TEXTS.contains(&text)
            || text.ends_with("+xml")
            || text.ends_with("+json") =>
        {
            if body.iter().take(8_192).any(|byte| *byte == 0) {
                return Err(format!("its type is {text}, but its content is binary"));
            }
            Ok(FetchedPage { url: url.to_string(), title: String::new(), text: decode(kind, body) })
        }
        other => Err(format!("its type is {other}; only web pages and text can be read")),
    }
}

/// Guesses the content type of a body that was sent without a specific one.
fn guess(body: &[u8]) -> &'static str {
    let start = body.trim_ascii_start();
    if start.starts_with(b"%PDF-") {
        return "application/pdf";
    }
    let head: Vec<u8> = start.iter().take(64).map(u8::to_ascii_lowercase).collect();
    if head.starts_with(b"<!doctype html") || head.starts_with(b"<html") || head.starts_with(b"<head") {
        return "text/html";
    }
    let text = !body.iter().take(8_192).any(|byte| *byte == 0) && std::str::from_utf8(body).is_ok();
    if text { "text/plain" } else { "something binary" }
}

/// Decodes a body with the encoding in its content type, or else with the detected one.
fn decode(kind: &str, body: &[u8]) -> String {
    let kind = kind.to_ascii_lowercase();
    let label = kind.split_once("charset=").map(|(_, label)| label.trim_start_matches(['"', '\'', ' ']));
    let charset = label.and_then(|label| label.split(['"', '\'', ';', ' ']).next());
    let encoding = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    encoding.map_or_else(|| text::decode(body), |encoding| encoding.decode(body).0.into_owned())
}

/// Converts a page to Markdown: its article, or the whole page if there is none.
pub(crate) fn html(url: &Url, html: &str) -> FetchedPage {
    let harmless = strip(html);
    let document = Document::from(harmless.as_str());
    let title = document.select("title").text().trim().to_owned();
    let article = article(url, &harmless).filter(|(_, text)| text.chars().count() >= MIN_ARTICLE_CHARS);
    let (title, text) = article.map_or_else(
        || (title.clone(), document.md(Some(ASIDE)).to_string()),
        |(said, text)| (if said.is_empty() { title.clone() } else { said }, text),
    );
    FetchedPage { url: url.to_string(), title, text: squeeze(&text) }
}

/// Collapses consecutive empty lines into one.
fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = false;
    for line in text.trim().lines() {
        let blank = line.trim().is_empty();
        if !(blank && empty) {
            out.push_str(line);
            out.push('\n');
        }
        empty = blank;
    }
    out.trim_end().to_owned()
}

fn article(url: &Url, html: &str) -> Option<(String, String)> {
    let config = Config { text_mode: TextMode::Markdown, disable_json_ld: true, ..Config::default() };
    let mut readability = Readability::new(html, Some(url.as_str()), Some(config)).ok()?;
    let article = readability.parse().ok()?;
    Some((article.title.trim().to_owned(), article.text_content.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    fn url() -> Url {
        Url::parse("https://example.com/a/b").unwrap()
    }

    #[test]
    fn a_page_is_converted_to_the_markdown_of_its_article() {
        let words =
            "Deer are shy, and the pudu is the shyest, as <a href='/deer'>everybody</a> knows. ".repeat(5);
        let page = format!(
            "<!doctype html><html><head><title>The pudu</title><script>track()</script></head><body>\
             <nav><a href=/>Home</a></nav><div class=ad>Buy now</div><article><h2>Where it lives</h2>\
             <p>{words}</p><ul><li>one</li><li>two</li></ul></article><footer>2026</footer></body></html>"
        );
        let read = read(&url(), "text/html; charset=utf-8", page.as_bytes()).unwrap();
        assert_eq!(read.title, "The pudu");
        assert!(read.text.contains("## Where it lives"), "{}", read.text);
        assert!(read.text.contains("[everybody](https://example.com/deer)"), "{}", read.text);
        assert!(read.text.contains("- one\n- two"), "{}", read.text);
        for gone in ["Home", "Buy now", "2026", "track"] {
            assert!(!read.text.contains(gone), "{gone}: {}", read.text);
        }
    }

    #[test]
    fn a_page_without_an_article_is_converted_as_a_whole() {
        let page = html(
            &url(),
            "<title>x &amp; y</title><p>Hello <b>you</b><nav>menu</nav><table><tr><th>a<th>b<tr><td>1<td>2</table>",
        );
        let expect = FetchedPage {
            url: "https://example.com/a/b".to_owned(),
            title: "x & y".to_owned(),
            text: "Hello **you**\n\n| a | b |\n| - | - |\n| 1 | 2 |".to_owned(),
        };
        assert_eq!(page, expect);
    }

    #[test]
    fn other_content_is_returned_as_text_or_named_in_the_error() {
        for (kind, body, expect) in [
            ("application/json", &b"{\"a\": 1}"[..], Ok("{\"a\": 1}")),
            ("text/markdown", b"# A <b>", Ok("# A <b>")),
            ("application/atom+xml", b"<feed/>", Ok("<feed/>")),
            ("", b"plain", Ok("plain")),
            ("text/plain; charset=gbk", b"\xc2\xb9\xce\xf7", Ok("鹿西")),
            ("text/plain", b"gr\xfc\xdfe", Ok("grüße")),
            ("text/plain", b"\xef\xbb\xbfgr\xc3\xbc\xc3\x9fe", Ok("grüße")),
            ("text/html", b"<meta charset='shift_jis'><p>\x8e\xad", Ok("鹿")),
            ("application/octet-stream", b"<!DOCTYPE html><p>x", Ok("x")),
            ("image/png", b"\x89PNG", Err("its type is image/png; only web pages and text can be read")),
            ("", b"\x00\x01", Err("its type is something binary; only web pages and text can be read")),
            ("text/plain", b"a\x00b", Err("its type is text/plain, but its content is binary")),
        ] {
            let said = read(&url(), kind, body).map(|page| page.text);
            assert_eq!(said, expect.map(str::to_owned).map_err(str::to_owned), "{kind} {body:?}");
        }
        assert!(read(&url(), "", b"%PDF-1.7").unwrap_err().starts_with("this is a PDF"));
    }

    #[test]
    fn hostile_pages_are_harmless() {
        let paragraph = "<p>Some words, and <a href='/x'>a link</a>, and more.</p>";
        let pages = [
            "<div>".repeat(400_000),
            "<ul><li>".repeat(200_000) + "x",
            "<div><table></div></table>".repeat(70_000),
            format!("{}{}", "<div>".repeat(90), paragraph.repeat(35_000)),
            format!("<table>{}", "<tr><td>1<td>2".repeat(100_000)),
            "<".repeat(2_000_000),
            "&".repeat(2_000_000),
        ];
        for page in pages {
            let began = Instant::now();
            let start: String = page.chars().take(40).collect();
            html(&url(), &page);
            let took = began.elapsed();
            println!("{took:>10.1?} {start}");
            // A debug build is about twenty times slower than a release.
            assert!(took < Duration::from_secs(30), "{start} took {took:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn garbage_never_panics(
            kind in "(text/html|text/plain|)(; charset=[a-z0-9-]{0,9})?",
            body in prop::collection::vec(any::<u8>(), 0..300),
            html in "(</?(p|div|table|td|ul|li|a href=x|h1|pre|code|blockquote|img src=y)>|[a-z`*_|#\\[\\] \n]){0,60}",
        ) {
            let _ = read(&url(), &kind, &body);
            let _ = read(&url(), "text/html", html.as_bytes());
        }
    }
}
