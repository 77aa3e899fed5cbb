//! Serves the web page: its document and its files.
//!
//! The URLs of files contain their version, so that browsers can cache them for good and never mix two versions.
//! Nothing is loaded from other hosts, the document contains no scripts or styles, and text never becomes markup.
//! Libraries are sent compressed. A library with its own styles runs in a sandboxed frame, without the page's origin.

use crate::{
    ApiError,
    console::{FRAME_FILES, PAGE, PAGE_FILES, vendor},
};
use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Length of a version, in characters.
const VERSION_CHARS: usize = 16;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; \
     font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Policy of a sandboxed frame: pudu's scripts run in an opaque origin, without network access.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Headers of all responses that belong to the page.
const GUARDS: [(HeaderName, &str); 3] = guards(POLICY);

const fn guards(policy: &'static str) -> [(HeaderName, &'static str); 3] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, policy),
    ]
}

/// The document with the URLs of its files, and their version.
static DOCUMENT: LazyLock<(String, String)> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    digest.update(PAGE);
    for (name, text) in PAGE_FILES.iter().chain(FRAME_FILES) {
        digest.update(name);
        digest.update(text);
    }
    digest.update(vendor::MANIFEST);
    let mut version: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    version.truncate(VERSION_CHARS);
    let links: Vec<String> = PAGE_FILES.iter().filter_map(|(name, _)| link(name, &version)).collect();
    (PAGE.replace("{links}", &links.join("\n")).replace("{version}", &version), version)
});

/// Returns the tag that links a file in the document. Scripts are preloaded, so that they load in parallel.
fn link(name: &str, version: &str) -> Option<String> {
    let url = format!("/page/{version}/{name}");
    match name.rsplit_once('.')?.1 {
        "css" => Some(format!("<link rel=\"stylesheet\" href=\"{url}\">")),
        "js" if name == "main.js" => Some(format!("<script type=\"module\" src=\"{url}\"></script>")),
        "js" => Some(format!("<link rel=\"modulepreload\" href=\"{url}\">")),
        _ => None,
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "woff2")) => "font/woff2",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}

/// Serves the document.
pub(super) async fn page(headers: HeaderMap) -> Response {
    let (document, version) = &*DOCUMENT;
    let tag = format!("\"{version}\"");
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let fresh = [(header::CACHE_CONTROL, "no-cache"), (header::CONTENT_TYPE, "text/html; charset=utf-8")];
    if known.is_some_and(|tags| tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)], GUARDS, fresh).into_response();
    }
    ([(header::ETAG, tag)], GUARDS, fresh, document.as_str()).into_response()
}

/// Serves a file of the page. A document of another version gets the current file, which it may not cache.
pub(super) async fn file(
    Path((version, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let keeps = if version == DOCUMENT.1 { "public, max-age=31536000, immutable" } else { "no-cache" };
    let about = [(header::CACHE_CONTROL, keeps), (header::CONTENT_TYPE, kind(&name))];
    if let Some(library) = name.strip_prefix("vendor/").and_then(vendor::find) {
        return Ok((GUARDS, about, library_file(library, &headers)?).into_response());
    }
    let policy = if name.ends_with(".html") { FRAME_POLICY } else { POLICY };
    match PAGE_FILES.iter().chain(FRAME_FILES).find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((guards(policy), about, *text).into_response()),
        None => Err(ApiError::not_found("the page has no file of this name")),
    }
}

/// Sends a file of a library: compressed, if the client accepts that.
fn library_file(file: vendor::VendorFile, headers: &HeaderMap) -> Result<Response, ApiError> {
    let vary = [(header::VARY, "accept-encoding")];
    if file.is_gzip && accepts_gzip(headers) {
        return Ok((vary, [(header::CONTENT_ENCODING, "gzip")], file.bytes).into_response());
    }
    let bytes = file.unpacked().map_err(|error| {
        tracing::error!(%error, "failed to unpack library of page");
        ApiError::internal("the file could not be unpacked")
    })?;
    Ok((vary, bytes).into_response())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        matches!(name.trim(), "gzip" | "*") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_no_inline_scripts_or_styles_and_links_every_file() {
        let (document, version) = &*DOCUMENT;
        for inner in
            ["style=", "<style", "<script>", "onclick", "http://", "https://", "{version}", "{links}"]
        {
            assert!(!document.contains(inner), "{inner}");
        }
        for (name, text) in PAGE_FILES {
            assert!(document.contains(&format!("/page/{version}/{name}")), "{name}");
            assert!(!text.contains("innerHTML") && !text.contains("insertAdjacentHTML"), "{name}");
        }
    }

    #[test]
    fn every_file_of_the_page_is_served() {
        let check = |folder: &str, prefix: &str, files: &[(&str, &str)]| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let names = std::fs::read_dir(folder).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> =
                names.filter(|name| name != "page.html").map(|name| format!("{prefix}{name}")).collect();
            let mut served: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            names.sort();
            served.sort_unstable();
            assert_eq!(names, served);
        };
        check("src/console/page", "", PAGE_FILES);
        check("src/console/frame", "frame/", FRAME_FILES);
    }

    #[test]
    fn gzip_is_sent_only_to_clients_that_accept_it() {
        let check = |accepts: &str, expect: bool| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepts.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expect, "{accepts}");
        };
        check("gzip, deflate, br", true);
        check("br;q=1.0, gzip;q=0.5", true);
        check("*", true);
        check("gzip;q=0, br", false);
        check("gzip; q=0.0", false);
        check("identity", false);
        check("", false);
    }
}
