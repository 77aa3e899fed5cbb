//! CORS: lets pages of other origins read responses, if the operator named these origins.

use super::ignored;
use crate::threads::search;
use axum::http::{HeaderName, HeaderValue, header};
use std::time::Duration;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// How long browsers cache a preflight response.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Headers that scripts of such pages may read.
const EXPOSED: [HeaderName; 5] =
    [header::CONTENT_LOCATION, header::LOCATION, ignored::HEADER, search::NEXT_PAGE, search::NEXT_CURSOR];

/// Returns the CORS layer for these origins; `None` if there are none.
pub(crate) fn layer(origins: &[String]) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    let layer = CorsLayer::new()
        .allow_credentials(true)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE);
    (!origins.is_empty()).then(|| layer.allow_origin(AllowOrigin::list(origins)))
}
