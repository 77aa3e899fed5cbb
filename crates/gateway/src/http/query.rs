//! Queries of requests.

use super::{errors::ApiError, urlencoded};
use axum::{extract::FromRequestParts, http::request::Parts};
use serde::de::DeserializeOwned;

/// The query of a request.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        urlencoded::read(query.as_bytes()).map(Self).map_err(ApiError::invalid)
    }
}
