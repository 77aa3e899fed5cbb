//! Limits of requests' bodies, and the refusals that name them.

use axum::{
    Extension,
    extract::{DefaultBodyLimit, Request},
    http::header,
};
use bytesize::ByteSize;

/// Maximum size of a body that nothing else is said of, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The limit of a route's bodies, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimit(usize);

/// Returns the layers of a limit.
pub(crate) fn layers(bytes: usize) -> (DefaultBodyLimit, Extension<BodyLimit>) {
    (DefaultBodyLimit::max(bytes), Extension(BodyLimit(bytes)))
}

/// Writes a limit for people, and to the byte.
pub(crate) fn text(bytes: u64) -> String {
    format!("{} ({bytes} bytes)", ByteSize(bytes))
}

/// Size of a body, as far as it is known before reading.
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
            Some(size) => format!("the body has {size} bytes; {limit} are the most here"),
            None => format!("the body has more than {limit}, the most here"),
        }
    }
}
