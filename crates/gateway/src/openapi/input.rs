//! Inputs of a request, as the extractors of its handler read them.

use super::answer::DescribedAnswer;
use crate::{
    Caller, GatewayState, Json, Query,
    http::{Form, language::PreferredLanguage},
};
use axum::{
    Extension,
    body::Bytes,
    extract::{ConnectInfo, Multipart, Path, RawQuery, Request, State},
    handler::Handler,
    http::{HeaderMap, Method},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::collections::BTreeSet;

/// Parts of a request that have a schema.
#[derive(Default)]
pub(crate) struct RequestParts {
    /// Schemas of the path's parameters, in the order of the path.
    pub(super) path: Vec<Schema>,
    /// Schema of the query: an object with a property for each parameter.
    pub(super) query: Option<Schema>,
    /// Media type and schema of the body.
    pub(super) body: Option<(&'static str, Schema)>,
    /// Statuses for requests whose parts are invalid.
    pub(super) errors: BTreeSet<u16>,
}

/// An extractor that describes its inputs.
pub(crate) trait Described {
    /// Adds the inputs that the extractor reads.
    fn describe(_schemas: &mut SchemaGenerator, _parts: &mut RequestParts) {}
}

impl<T> Described for State<T> {}
impl<T> Described for Extension<T> {}
impl<T> Described for ConnectInfo<T> {}
impl Described for Caller {}
impl Described for PreferredLanguage {}
impl Described for GatewayState {}
impl Described for HeaderMap {}
impl Described for Method {}
impl Described for RawQuery {}
impl Described for Request {}

impl RequestParts {
    fn takes(&mut self, media_type: &'static str, schema: Schema) {
        self.body = Some((media_type, schema));
        // Unreadable, too slow, too large, wrong media type, wrong keys.
        self.errors.extend([400, 408, 413, 415, 422]);
    }
}

impl<T: JsonSchema> Described for Json<T> {
    fn describe(schemas: &mut SchemaGenerator, parts: &mut RequestParts) {
        parts.takes("application/json", schemas.subschema_for::<T>());
    }
}

impl<T: JsonSchema> Described for Form<T> {
    fn describe(schemas: &mut SchemaGenerator, parts: &mut RequestParts) {
        parts.takes("application/x-www-form-urlencoded", schemas.subschema_for::<T>());
    }
}

impl Described for Multipart {
    fn describe(_: &mut SchemaGenerator, parts: &mut RequestParts) {
        let file = json_schema!({ "type": "string", "contentMediaType": "application/octet-stream" });
        let schema = json_schema!({
            "type": "object",
            "properties": { "files": { "type": "array", "items": file } },
            "required": ["files"],
        });
        parts.takes("multipart/form-data", schema);
    }
}

/// A body parsed by its handler: JSON, or nothing.
impl Described for Bytes {
    fn describe(_: &mut SchemaGenerator, parts: &mut RequestParts) {
        parts.takes("application/json", json_schema!({ "type": "object" }));
    }
}

impl<T: JsonSchema> Described for Query<T> {
    fn describe(_: &mut SchemaGenerator, parts: &mut RequestParts) {
        // Parameters are described inline, without components.
        let mut inline = schemars::generate::SchemaSettings::draft2020_12();
        inline.inline_subschemas = true;
        parts.query = Some(inline.into_generator().into_root_schema_for::<T>());
        parts.errors.insert(422);
    }
}

impl<T: Described, E> Described for Result<T, E> {
    fn describe(schemas: &mut SchemaGenerator, parts: &mut RequestParts) {
        T::describe(schemas, parts);
    }
}

impl<T: PathParameters> Described for Path<T> {
    fn describe(schemas: &mut SchemaGenerator, parts: &mut RequestParts) {
        T::add(schemas, &mut parts.path);
        parts.errors.extend([400, 404]);
    }
}

/// An extractor for the object named in the path.
pub(crate) trait NamesInPath {}

impl<T: NamesInPath> Described for T {
    fn describe(_: &mut SchemaGenerator, parts: &mut RequestParts) {
        parts.errors.extend([400, 404]);
    }
}

/// Parameters of a path: one, or several in order.
pub(crate) trait PathParameters {
    /// Adds the schema of each parameter.
    fn add(schemas: &mut SchemaGenerator, path: &mut Vec<Schema>);
}

impl PathParameters for String {
    fn add(schemas: &mut SchemaGenerator, path: &mut Vec<Schema>) {
        path.push(schemas.subschema_for::<Self>());
    }
}

impl PathParameters for usize {
    fn add(schemas: &mut SchemaGenerator, path: &mut Vec<Schema>) {
        path.push(schemas.subschema_for::<Self>());
    }
}

impl<A: PathParameters, B: PathParameters> PathParameters for (A, B) {
    fn add(schemas: &mut SchemaGenerator, path: &mut Vec<Schema>) {
        A::add(schemas, path);
        B::add(schemas, path);
    }
}

impl<A: PathParameters, B: PathParameters, C: PathParameters> PathParameters for (A, B, C) {
    fn add(schemas: &mut SchemaGenerator, path: &mut Vec<Schema>) {
        <(A, B)>::add(schemas, path);
        C::add(schemas, path);
    }
}

/// A handler whose types describe its inputs and its response.
pub(crate) trait RouteHandler<T>: Handler<T, GatewayState> {
    /// Adds the inputs that the extractors of the handler read.
    fn inputs(schemas: &mut SchemaGenerator, parts: &mut RequestParts);

    /// Returns the status and the schema of the response, if it is JSON of a type.
    fn answer(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)>;
}

/// Implements `RouteHandler` for a number of arguments. Like axum, puts a marker before the arguments.
macro_rules! route_handlers {
    ($($argument:ident)*) => {
        impl<H, Answering, Answered, Marker, $($argument),*> RouteHandler<(Marker, $($argument,)*)> for H
        where
            H: Fn($($argument),*) -> Answering + Handler<(Marker, $($argument,)*), GatewayState>,
            Answering: Future<Output = Answered>,
            Answered: DescribedAnswer,
            $($argument: Described,)*
        {
            fn inputs(_schemas: &mut SchemaGenerator, _parts: &mut RequestParts) {
                $($argument::describe(_schemas, _parts);)*
            }

            fn answer(schemas: &mut SchemaGenerator) -> Option<(u16, Schema)> {
                Answered::describe(schemas)
            }
        }
    };
}

route_handlers!();
route_handlers!(A);
route_handlers!(A B);
route_handlers!(A B C);
route_handlers!(A B C D);
route_handlers!(A B C D E);
route_handlers!(A B C D E F);
