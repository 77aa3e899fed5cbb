//! Size limits of request bodies, and the errors that name them.

use axum::{
    Extension,
    extract::{DefaultBodyLimit, Request},
    http::header,
};
use bytesize::ByteSize;

/// Default maximum size of a body, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The limit of a route's bodies, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimit(usize);

/// Returns the layers that enforce a limit.
pub(crate) fn layers(bytes: usize) -> (DefaultBodyLimit, Extension<BodyLimit>) {
    (DefaultBodyLimit::max(bytes), Extension(BodyLimit(bytes)))
}

/// Formats a limit for people, with the exact number of bytes.
pub(crate) fn text(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", ByteSize(bytes))
}

/// Size of a body, as far as it is known before the body is read.
pub(crate) struct LimitedBody {
    limit: usize,
    size: Option<u64>,
}

impl LimitedBody {
    pub(crate) fn new(request: &Request) -> Self {
        let limit = request.extensions().get().map_or(MAX_BODY_BYTES, |BodyLimit(limit)| *limit);
        let size =
            request.headers().get(header::CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
        Self { limit, size }
    }

    /// Returns the message about a body that is too large.
    pub(crate) fn exceeded(&self) -> String {
        let limit = text(self.limit as u64);
        match self.size {
            Some(size) => format!("the body has {size} bytes; the limit here is {limit}"),
            None => format!("the body is too large; the limit here is {limit}"),
        }
    }
}
