//! Parameters of operations: in the path, in the query, and in headers.

use super::{input::RequestParts, routes::RouteOperation};
use serde_json::{Value, json};

/// Pattern of ids that are checked before any lookup; other text is refused with 422.
const PLAIN: &str = "^[A-Za-z0-9_-]{1,64}$";

/// Names of path parameters, each with its description and its pattern.
const NAMES: &[(&str, &str, Option<&str>)] = &[
    ("account", "The name of a bot in the configuration.", None),
    ("approval", "The id of a call that waits for an approval.", None),
    ("assistant", "The name of an assistant: `lead_agent`, or that of a custom agent.", None),
    ("chat", "A name for the conversation, chosen by the client.", Some(PLAIN)),
    ("checkpoint", "The id of a checkpoint.", None),
    ("connection", "The id of a connection, as listed.", None),
    ("fact", "The id of a fact.", None),
    ("feedback", "The id of a feedback entry.", None),
    ("file", "The name of a file of the page.", None),
    ("id", "The id of a token.", None),
    ("index", "The number of the file in the line, from 0.", None),
    ("line", "The id of a line of the chat.", None),
    ("name", "The name, as listed.", None),
    ("namespace", "A namespace of LangGraph.", None),
    ("path", "The path of a file as the agent sees it, with its slashes.", None),
    ("person", "The user id on the platform.", None),
    ("platform", "The platform's name.", None),
    ("provider", "The name of a provider.", None),
    ("run", "The id of a run.", None),
    ("task", "The id of a scheduled task.", None),
    ("thread", "The id of a thread.", Some(PLAIN)),
    ("token", "The signed part of a link.", None),
    ("user", "A user id, an e-mail address, a platform's user id, or a unique name.", None),
    ("version", "The version of the page.", None),
    ("who", "An account's e-mail address or id.", None),
];

/// Returns the parameter names of a path, in order.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.trim_start_matches('*')))
}

/// Returns whether a path has a parameter whose pattern is checked first.
pub(super) fn checks_a_name(path: &str) -> bool {
    names(path).any(|name| NAMES.iter().any(|(known, _, pattern)| *known == name && pattern.is_some()))
}

/// Returns the parameters of an operation.
pub(super) fn parameters(operation: &RouteOperation, parts: &RequestParts) -> Vec<Value> {
    let in_path = names(&operation.path).enumerate().map(|(at, name)| of_path(name, parts.path.get(at)));
    let query = parts.query.as_ref().map(|schema| json!(schema)).unwrap_or_default();
    let required = query["required"].as_array().cloned().unwrap_or_default();
    let properties = query["properties"].as_object().into_iter().flatten();
    let in_query = properties.map(|(name, schema)| {
        let is_required = required.iter().any(|one| one == name);
        let mut parameter = json!({ "name": name, "in": "query", "required": is_required, "schema": schema });
        if let Some(description) = schema.get("description") {
            parameter["description"] = description.clone();
        }
        parameter
    });
    let in_headers = operation.about.headers.iter().map(|(name, meaning)| {
        json!({ "name": name, "in": "header", "description": meaning, "schema": { "type": "string" } })
    });
    in_path.chain(in_query).chain(in_headers).collect()
}

fn of_path(name: &str, schema: Option<&schemars::Schema>) -> Value {
    let mut schema = schema.map_or_else(|| json!({ "type": "string" }), |schema| json!(schema));
    let known = NAMES.iter().find(|(known, ..)| *known == name);
    if let Some((_, _, Some(pattern))) = known {
        schema["pattern"] = json!(pattern);
    }
    let description = known.map_or("", |(_, description, _)| description);
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}
