//! The document: its operations, the authentication that they require, and their errors.

use super::{
    about::Content,
    input::RequestParts,
    parameters,
    routes::{RouteAccess, RouteList, RouteOperation},
    shapes,
};
use crate::auth;
use axum::{
    Extension,
    body::Bytes,
    http::{Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Description of the API at the top of the document.
const INTRODUCTION: &str = "The HTTP API of pudu: its chats, and the threads and runs of LangGraph's clients and \
    DeerFlow's web frontend. On a loopback address, requests need no credentials until the first account exists. On \
    other addresses, and for operations of administrators, each request needs a session, an API token or the operator's \
    token. \
    Every error is `{\"detail\": …}`.";

/// Error statuses, with their names and causes.
const ERRORS: &[(u16, &str, &str)] = &[
    (400, "BadRequest", "A part of the request is malformed."),
    (401, "Unauthorized", "The credentials are missing or wrong."),
    (403, "Forbidden", "The caller may not do this, or the request comes from another site."),
    (404, "NotFound", "It does not exist, or it belongs to another user."),
    (408, "TooSlow", "The body arrived too slowly."),
    (409, "Conflict", "The current state does not permit it."),
    (410, "Gone", "It has ended and no longer waits for this."),
    (412, "Changed", "The file has changed since it was read."),
    (413, "TooLarge", "The body, or a part of it, is too large."),
    (415, "WrongType", "The media type is not supported."),
    (416, "OutOfRange", "The range is outside of the file."),
    (422, "Invalid", "A value is missing or invalid."),
    (429, "TooMany", "Too many attempts from this address."),
    (500, "Failed", "An internal failure; the log has the reason."),
    (502, "ModelFailed", "The model returned nothing usable."),
    (503, "Unavailable", "The daemon or its database cannot respond at the moment; try again."),
];

/// The operations of a gateway, and the document generated from them at the first request.
pub(crate) struct OpenApiDocument {
    routes: RouteList,
    text: OnceLock<Bytes>,
    /// The page for people, generated from the document.
    page: OnceLock<Bytes>,
}

/// Serves the document. It contains nothing about any user, so every client that reaches the gateway may read it.
pub(crate) async fn document(Extension(document): Extension<Arc<OpenApiDocument>>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (headers, document.text.get_or_init(|| document.whole().to_string().into()).clone()).into_response()
}

impl OpenApiDocument {
    /// Creates the document of these routes.
    pub(crate) fn new(routes: RouteList) -> Self {
        Self { routes, text: OnceLock::new(), page: OnceLock::new() }
    }

    /// Returns the page for people, which is generated once.
    pub(super) fn page(&self, make: impl FnOnce(&Value) -> String) -> Bytes {
        self.page.get_or_init(|| make(&self.whole()).into()).clone()
    }

    /// Returns the document as JSON.
    fn whole(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let mut schemas = settings.clone().into_generator();
        let mut answers = settings.for_serialize().into_generator();
        let mut paths = Map::new();
        for operation in &self.routes.operations {
            let path = paths.entry(template(&operation.path)).or_insert_with(|| json!({}));
            path[operation.method.as_str().to_ascii_lowercase()] =
                described(operation, &mut schemas, &mut answers);
        }
        let missing = self.routes.missing.iter().map(|part| (template(&part.path), json!(part.why)));
        json!({
            "openapi": "3.1.0",
            "info": { "title": "pudu", "version": env!("CARGO_PKG_VERSION"), "description": INTRODUCTION },
            "paths": paths,
            "components": {
                "schemas": components([&mut schemas, &mut answers]),
                "responses": errors(),
                "securitySchemes": proofs(),
            },
            "x-not-there": missing.collect::<Map<_, _>>(),
        })
    }
}

/// Converts a path of the router to OpenAPI's notation.
fn template(path: &str) -> String {
    path.replace("{*", "{")
}

/// Describes an operation, with the schema generators of inputs and responses.
fn described(
    operation: &RouteOperation,
    inputs: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> Value {
    let about = &operation.about;
    let mut parts = RequestParts::default();
    (operation.inputs)(inputs, &mut parts);
    if parameters::checks_a_name(&operation.path) {
        parts.errors.insert(422);
    }
    let mut responses: Map<String, Value> = Map::new();
    for (status, content) in &about.answers {
        let response = responses
            .entry(status.to_string())
            .or_insert_with(|| json!({ "description": described_status(*status) }));
        if let Some((media_type, schema)) = content.media_type_and_schema() {
            response["content"][media_type] = schema;
        }
    }
    if let Some((status, schema)) = (operation.answer)(answers) {
        let content = json!({ "application/json": { "schema": schema } });
        let typed = || json!({ "description": described_status(status), "content": content });
        responses.entry(status.to_string()).or_insert_with(typed);
    }
    let refused = match operation.access {
        RouteAccess::Open => &[403, 503][..],
        RouteAccess::Known | RouteAccess::Admin => &[401, 403, 429, 503],
    };
    for status in refused.iter().chain(&about.errors).chain(&parts.errors) {
        let response = || match ERRORS.iter().find(|(known, ..)| known == status) {
            Some((_, name, _)) => json!({ "$ref": format!("#/components/responses/{name}") }),
            None => json!({ "description": described_status(*status) }),
        };
        responses.entry(status.to_string()).or_insert_with(response);
    }
    let mut described = json!({
        "operationId": id(operation),
        "summary": about.summary,
        "tags": [operation.tag],
        "security": security(operation),
        "parameters": parameters::parameters(operation, &parts),
        "responses": responses,
    });
    if let Some((media_type, schema)) = parts.body {
        let is_required = media_type != "application/json" || !is_any(&schema);
        described["requestBody"] =
            json!({ "required": is_required, "content": { media_type: { "schema": schema } } });
    }
    if operation.access == RouteAccess::Admin {
        described["description"] = json!("For administrators.");
    }
    described
}

/// Returns whether a body with this schema is optional, because its handler parses it.
fn is_any(schema: &Schema) -> bool {
    schema.as_object().is_some_and(|object| object.len() == 1 && object.contains_key("type"))
}

fn described_status(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("answer")
}

/// Returns a unique name for the operation.
fn id(operation: &RouteOperation) -> String {
    let mut id = operation.method.as_str().to_ascii_lowercase();
    for segment in
        operation.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|segment| !segment.is_empty())
    {
        id.push('_');
        id.push_str(segment);
    }
    if operation.path.len() > 1 && operation.path.ends_with('/') {
        id.push('_');
    }
    id
}

/// Returns the accepted proofs, each with the scope that a program's token needs.
fn security(operation: &RouteOperation) -> Value {
    if operation.access == RouteAccess::Open {
        return json!([]);
    }
    let changes = operation.method != Method::GET;
    let session = if changes { json!({ "session": [], "csrf": [] }) } else { json!({ "session": [] }) };
    json!([session, { "page": [] }, { "token": auth::scopes(&operation.method, &operation.path) }])
}

fn proofs() -> Value {
    json!({
        "session": {
            "type": "apiKey", "in": "cookie", "name": auth::SESSION_COOKIE, "description": "The session of a signed-in user.",
        },
        "csrf": {
            "type": "apiKey", "in": "header", "name": auth::CSRF_HEADER,
            "description": "The value of the cookie `csrf_token`; required for each change that a session makes.",
        },
        "page": { "type": "apiKey", "in": "cookie", "name": auth::PAGE_COOKIE, "description": "The operator's token, as set by `/api/session` in a browser." },
        "token": { "type": "http", "scheme": "bearer", "description": "An API token with the named scope, or the operator's token." },
    })
}

fn errors() -> Value {
    let content = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    let error = |text| json!({ "description": text, "content": content });
    ERRORS.iter().map(|(_, name, text)| ((*name).to_owned(), error(text))).collect::<Map<_, _>>().into()
}

fn components(schemas: [&mut SchemaGenerator; 2]) -> Value {
    let mut all: Map<String, Value> =
        schemas.into_iter().flat_map(|schemas| schemas.take_definitions(true)).collect();
    let named_shapes = shapes::NAMED
        .iter()
        .map(|(name, shape)| ((*name).to_owned(), shapes::schema(shape).unwrap_or_default()));
    all.extend(named_shapes);
    let detail = "A sentence for people, or an object with a code or a list of places for programs.";
    let error = json!({ "type": "object", "required": ["detail"], "properties": { "detail": { "description": detail } } });
    all.insert("Error".to_owned(), error);
    all.into()
}

impl Content {
    /// Returns the media type and its description for the document.
    fn media_type_and_schema(&self) -> Option<(&'static str, Value)> {
        match self {
            Self::Nothing => None,
            Self::Json(shape) => {
                Some(("application/json", json!({ "schema": shapes::schema(shape).unwrap_or_default() })))
            }
            // OpenAPI 3.1 has no schema for the events of a stream.
            Self::Events => Some(("text/event-stream", json!({}))),
            Self::Bytes(media_type) => Some((media_type, json!({}))),
        }
    }
}
