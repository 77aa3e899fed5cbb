//! Responses of handlers, as described by their types.

use crate::{ApiError, Created, Json, Scrubbed};
use axum::{
    http::StatusCode,
    response::{Redirect, Response},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A response type that describes itself.
pub(crate) trait DescribedAnswer {
    /// Returns the status and the schema, if the response is JSON of a type.
    fn describe(_schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        None
    }
}

impl DescribedAnswer for ApiError {}
impl DescribedAnswer for Redirect {}
impl DescribedAnswer for Response {}
impl DescribedAnswer for StatusCode {}

impl<T: JsonSchema> DescribedAnswer for Json<T> {
    fn describe(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        Some((200, schemas.subschema_for::<T>()))
    }
}

impl<T: JsonSchema> DescribedAnswer for Scrubbed<T> {
    fn describe(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        Some((200, schemas.subschema_for::<T>()))
    }
}

impl<T: JsonSchema> DescribedAnswer for Created<T> {
    fn describe(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        Some((201, schemas.subschema_for::<T>()))
    }
}

impl<T: DescribedAnswer> DescribedAnswer for Result<T, ApiError> {
    fn describe(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        T::describe(schemas)
    }
}

/// A response with one or several headers.
impl<Headers, T: DescribedAnswer> DescribedAnswer for (Headers, T) {
    fn describe(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
        T::describe(schemas)
    }
}
