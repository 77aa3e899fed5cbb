//! Responses with files: whole or in part, and never in the page's origin. Content that a browser would execute is sent
//! as a download, and every file is sent with a sandbox policy.

use super::guests::Visitor;
use crate::GatewayState;
use axum::{
    Extension,
    body::Body,
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_dispatch::sent;
use pudu_kit::clock;
use pudu_langgraph::{artifact, upload::in_address};
use std::{
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    ops::RangeInclusive,
    os::unix::fs::MetadataExt,
    time::SystemTime,
};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

/// Media types that a browser may execute, so that they are unsafe from any source. Any XML may be an image or a page
/// with scripts.
const ACTIVE: [&str; 8] = [
    "text/html",
    "text/xml",
    "application/xml",
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "message/rfc822",
    "multipart/related",
];

/// How a file is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileDisposition {
    /// As a download.
    Download,
    /// In the browser, unless it would be executed there.
    Inline,
    /// In a frame of the page, where it is executed without the page's origin and without network access.
    Framed,
}

/// Policy of a file that a browser shows: it executes and loads nothing. An image may contain styles and images.
const SHOWN_POLICY: &str =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:";
/// Policy of a page that is executed in a frame: it has an opaque origin and loads nothing.
const FRAMED_POLICY: &str = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; \
     img-src data: blob:; font-src data:; media-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// Sends the file of a signed link.
pub(crate) async fn linked(
    gateway: GatewayState,
    Path(token): Path<String>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    let shared = &gateway.0.shared;
    let not_found = || (StatusCode::NOT_FOUND, "this link is invalid or has expired\n").into_response();
    let Some(opened) = shared.links.read(&token, clock::now()) else { return not_found() };
    visitor.prove();
    if let Some(kept) = opened.kept() {
        let Some(path) = sent::kept(&shared.home, kept) else { return not_found() };
        let Ok(file) = tokio::fs::File::open(path).await else { return not_found() };
        let file = file.into_std().await;
        return send(&headers, file, sent::ASKED, FileDisposition::Download)
            .await
            .unwrap_or_else(|_| not_found());
    }
    let Ok(files) = shared.agent.files(&opened.thread).await else { return not_found() };
    let Ok((file, _)) = files.open(&opened.path).await else { return not_found() };
    let name = opened.path.rsplit('/').next().unwrap_or_default();
    send(&headers, file, name, FileDisposition::Download).await.unwrap_or_else(|_| not_found())
}

/// Sends an open file, or the requested part.
pub(crate) async fn send(
    headers: &HeaderMap,
    file: File,
    name: &str,
    show: FileDisposition,
) -> io::Result<Response> {
    let (file, meta, head) = tokio::task::spawn_blocking(move || examine(file)).await??;
    let kind = artifact::media_type(name, &head);
    let seal = FileValidator::from_metadata(&meta);
    let mut response = match wanted(headers, &seal, meta.len()) {
        FileRequest::Nothing => StatusCode::NOT_MODIFIED.into_response(),
        FileRequest::Impossible => {
            let all = [(header::CONTENT_RANGE, format!("bytes */{}", meta.len()))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, all).into_response());
        }
        FileRequest::All => whole(file, meta.len()),
        FileRequest::Part(range) => part(file, range, meta.len()).await?,
    };
    let into = response.headers_mut();
    for (name, value) in [(header::ETAG, &seal.tag), (header::LAST_MODIFIED, &seal.date)] {
        into.extend(value.parse().ok().map(|value| (name, value)));
    }
    into.insert(header::ACCEPT_RANGES, header::HeaderValue::from_static("bytes"));
    into.extend(described(name, kind, show));
    Ok(response)
}

/// Sends a whole file from memory, with the same headers.
pub(crate) fn send_bytes(bytes: Vec<u8>, name: &str, show: FileDisposition) -> Response {
    let head = usize::try_from(artifact::HEAD).unwrap_or(usize::MAX);
    let kind = artifact::media_type(name, bytes.get(..head).unwrap_or(&bytes));
    let mut response = bytes.into_response();
    response.headers_mut().extend(described(name, kind, show));
    response
}

/// Returns the headers that define how a browser treats a file.
fn described(name: &str, kind: &str, show: FileDisposition) -> HeaderMap {
    let runs = show == FileDisposition::Framed && is_active(kind);
    let attached = show == FileDisposition::Download || (is_active(kind) && !runs);
    let disposition = if attached { "attachment" } else { "inline" };
    let name = in_address(name);
    // A download is always bytes, so that browsers do not guess another type.
    let kind = match show {
        FileDisposition::Download => "application/octet-stream".to_owned(),
        _ if kind.starts_with("text/") => format!("{kind}; charset=utf-8"),
        _ => kind.to_owned(),
    };
    let pairs = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, format!("{disposition}; filename*=UTF-8''{name}")),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, if runs { FRAMED_POLICY } else { SHOWN_POLICY }.to_owned()),
        (header::CACHE_CONTROL, if attached { "private, no-store" } else { "private, no-cache" }.to_owned()),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

fn is_active(kind: &str) -> bool {
    ACTIVE.contains(&kind) || kind.ends_with("+xml")
}

fn examine(mut file: File) -> io::Result<(File, Metadata, Vec<u8>)> {
    let (meta, mut head) = (file.metadata()?, Vec::new());
    Read::by_ref(&mut file).take(artifact::HEAD).read_to_end(&mut head)?;
    file.rewind()?;
    Ok((file, meta, head))
}

/// Version of a file, for conditional requests.
struct FileValidator {
    tag: String,
    date: String,
}

impl FileValidator {
    fn from_metadata(meta: &Metadata) -> Self {
        let tag = format!("\"{:x}-{:x}-{:x}-{:x}\"", meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { tag, date: httpdate::fmt_http_date(modified) }
    }

    /// Returns whether a list of tags contains this one.
    fn is_in(&self, list: &str) -> bool {
        list.split(',')
            .any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == self.tag)
    }
}

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
enum FileRequest {
    /// The client already has the current version.
    Nothing,
    All,
    Part(RangeInclusive<u64>),
    Impossible,
}

fn wanted(headers: &HeaderMap, seal: &FileValidator, size: u64) -> FileRequest {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let same = match (text(header::IF_NONE_MATCH), text(header::IF_MODIFIED_SINCE)) {
        (Some(list), _) => seal.is_in(list),
        (None, since) => since == Some(&seal.date),
    };
    if same {
        return FileRequest::Nothing;
    }
    // A range of another version would be useless.
    let current = text(header::IF_RANGE).is_none_or(|have| have == seal.tag || have == seal.date);
    let Some(asked) = text(header::RANGE).filter(|_| current) else { return FileRequest::All };
    let Ok(parsed) = http_range_header::parse_range_header(asked) else { return FileRequest::All };
    match parsed.validate(size).map(<[_; 1]>::try_from) {
        Ok(Ok([range])) => FileRequest::Part(range),
        // A request for several ranges may be answered with the whole file.
        Ok(Err(_)) => FileRequest::All,
        Err(_) => FileRequest::Impossible,
    }
}

fn whole(file: File, size: u64) -> Response {
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
    ([(header::CONTENT_LENGTH, size.to_string())], body).into_response()
}

async fn part(mut file: File, range: RangeInclusive<u64>, size: u64) -> io::Result<Response> {
    let (first, last) = range.into_inner();
    let length = last.saturating_sub(first).saturating_add(1);
    let file = tokio::task::spawn_blocking(move || file.seek(SeekFrom::Start(first)).map(|_| file)).await??;
    let body = Body::from_stream(ReaderStream::new(tokio::fs::File::from_std(file).take(length)));
    let headers = [
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}")),
    ];
    Ok((StatusCode::PARTIAL_CONTENT, headers, body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn headers_select_the_whole_file_a_part_or_nothing() {
        let seal = FileValidator { tag: "\"a\"".into(), date: "Sun, 06 Nov 1994 08:49:37 GMT".into() };
        let check = |pairs: &[(header::HeaderName, &str)], expect: FileRequest| {
            assert_eq!(wanted(&headers(pairs), &seal, 100), expect, "{pairs:?}");
        };
        check(&[], FileRequest::All);
        check(&[(header::RANGE, "bytes=0-9")], FileRequest::Part(0..=9));
        check(&[(header::RANGE, "bytes=90-")], FileRequest::Part(90..=99));
        check(&[(header::RANGE, "bytes=-5")], FileRequest::Part(95..=99));
        check(&[(header::RANGE, "bytes=100-")], FileRequest::Impossible);
        check(&[(header::RANGE, "bytes=0-1,5-6")], FileRequest::All);
        check(&[(header::RANGE, "lines=1-2")], FileRequest::All);
        check(&[(header::RANGE, "bytes=0-9"), (header::IF_RANGE, "\"b\"")], FileRequest::All);
        check(&[(header::RANGE, "bytes=0-9"), (header::IF_RANGE, "\"a\"")], FileRequest::Part(0..=9));
        check(&[(header::IF_NONE_MATCH, "\"b\", W/\"a\"")], FileRequest::Nothing);
        check(&[(header::IF_NONE_MATCH, "\"b\"")], FileRequest::All);
        check(&[(header::IF_MODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT")], FileRequest::Nothing);
    }

    #[test]
    fn a_page_runs_only_in_a_frame_and_without_an_origin() {
        let policy = |name: &str, show| {
            let response = send_bytes(b"x".to_vec(), name, show);
            let text = |name| response.headers()[name].to_str().unwrap().to_owned();
            (text("content-disposition").starts_with("inline"), text("content-security-policy"))
        };
        let framed = |name| policy(name, FileDisposition::Framed);
        for name in ["a.html", "a.svg", "a.xhtml"] {
            let (inline, policy) = framed(name);
            assert!(inline && policy.starts_with("sandbox allow-scripts; default-src 'none'"), "{name}");
            assert!(
                !policy.contains("allow-same-origin") && policy.contains("frame-ancestors 'self'"),
                "{name}"
            );
        }
        assert_eq!(framed("a.pdf"), (true, SHOWN_POLICY.to_owned()));
        assert_eq!(policy("a.html", FileDisposition::Inline), (false, SHOWN_POLICY.to_owned()));
        assert!(!SHOWN_POLICY.contains("allow-") && !SHOWN_POLICY.contains("script-src"));
    }

    #[test]
    fn content_that_a_browser_would_execute_is_a_download() {
        let check = |name: &str, kind: &str, disposition: &str| {
            let response = send_bytes(b"x".to_vec(), name, FileDisposition::Inline);
            let text = |name| response.headers()[name].to_str().unwrap();
            let expect = format!("{disposition}; filename*=UTF-8''{name}");
            assert_eq!((text("content-type"), text("content-disposition")), (kind, expect.as_str()));
        };
        check("a.html", "text/html; charset=utf-8", "attachment");
        check("a.xhtml", "application/xhtml+xml", "attachment");
        check("a.svg", "image/svg+xml", "attachment");
        check("a.xml", "text/xml; charset=utf-8", "attachment");
        check("a.js", "text/javascript; charset=utf-8", "attachment");
        check("a.md", "text/markdown; charset=utf-8", "inline");
        check("a.png", "image/png", "inline");
        check("LICENSE", "text/plain; charset=utf-8", "inline");
    }
}
