//! Queries of requests.

use super::{errors::refuse, urlencoded};
use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use serde::de::DeserializeOwned;

/// The query of a request.
pub(super) struct Query<T>(pub(super) T);

/// A query that cannot be read.
#[derive(Debug)]
pub(super) struct QueryRejection(String);

impl IntoResponse for QueryRejection {
    fn into_response(self) -> Response {
        refuse(StatusCode::UNPROCESSABLE_ENTITY, &self.0)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = QueryRejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, QueryRejection> {
        urlencoded::read(parts.uri.query().unwrap_or_default().as_bytes()).map(Self).map_err(QueryRejection)
    }
}
