//! A page for people that lists the operations of the document. It has no scripts, and loads nothing.

use super::OpenApiDocument;
use axum::{
    Extension,
    http::header,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, fmt::Write, sync::Arc};

/// The page's only style.
const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;\
    color-scheme:light dark}table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;\
    padding:.3rem .6rem;border-bottom:1px solid #8884}code{font-size:.9em;overflow-wrap:anywhere}";

/// Serves the page.
pub(crate) async fn page(Extension(document): Extension<Arc<OpenApiDocument>>) -> Response {
    let hash = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, document.page(html)).into_response()
}

fn html(document: &Value) -> String {
    let mut options = comrak::Options::default();
    (options.extension.table, options.render.escape) = (true, true);
    let body = comrak::markdown_to_html(&markdown(document), &options);
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>pudu: HTTP API</title>\
         <style>{STYLE}</style><body>{body}</body></html>"
    )
}

/// Renders the document as Markdown.
fn markdown(document: &Value) -> String {
    let mut text = format!(
        "# The HTTP API of pudu {}\n\n{}\n\nThe same as OpenAPI, for programs: `/openapi.json`. Operations below \
         `/api/langgraph` are the same as those below `/api`, and not listed again.\n",
        document["info"]["version"].as_str().unwrap_or_default(),
        document["info"]["description"].as_str().unwrap_or_default(),
    );
    for (tag, rows) in rows(document) {
        let _ = write!(
            text,
            "\n## {tag}\n\n| operation | | parameters and body | answers |\n| --- | --- | --- | --- |\n{rows}"
        );
    }
    text.push_str("\n## Types\n\nRequired keys are bold.\n\n| type | keys |\n| --- | --- |\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "| `{name}` | {} |", keys(schema));
    }
    text
}

/// Returns the table rows for each heading.
fn rows(document: &Value) -> BTreeMap<&str, String> {
    let mut all = BTreeMap::<&str, String>::new();
    let paths = document["paths"].as_object().into_iter().flatten();
    for (path, methods) in paths.filter(|(path, _)| !path.starts_with("/api/langgraph/")) {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let query = parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
            let mut inputs: Vec<String> = query.map(|name| format!("`{name}`")).collect();
            let bodies = operation["requestBody"]["content"].as_object().into_iter().flatten();
            inputs.extend(bodies.map(|(kind, body)| shape(&body["schema"]).unwrap_or_else(|| kind.clone())));
            let answers = operation["responses"].as_object().into_iter().flatten();
            let answers: Vec<String> = answers.map(|(status, answer)| answered(status, answer)).collect();
            let _ = writeln!(
                all.entry(operation["tags"][0].as_str().unwrap_or_default()).or_default(),
                "| `{} {path}` | {} | {} | {} |",
                method.to_ascii_uppercase(),
                operation["summary"].as_str().unwrap_or_default(),
                inputs.join(", "),
                answers.join(", "),
            );
        }
    }
    all
}

fn answered(status: &str, answer: &Value) -> String {
    let contents = answer["content"].as_object().into_iter().flatten();
    let shapes = contents.filter_map(|(kind, content)| match kind.as_str() {
        "application/json" => shape(&content["schema"]),
        other => Some(format!("`{other}`")),
    });
    let shapes: Vec<String> = shapes.collect();
    format!("{status} {}", shapes.join(" or ")).trim_end().to_owned()
}

/// Describes a type by its name, or by its keys.
fn shape(schema: &Value) -> Option<String> {
    let schema_name =
        |schema: &Value| schema["$ref"].as_str()?.rsplit_once('/').map(|(_, name)| name.to_owned());
    if let Some(name) = schema_name(schema) {
        return Some(format!("`{name}`"));
    }
    match schema["type"].as_str()? {
        "array" => schema_name(&schema["items"]).map(|name| format!("list of `{name}`")),
        "object" if schema["properties"].is_object() => Some(keys(schema)),
        kind => Some(kind.to_owned()),
    }
}

fn keys(schema: &Value) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let keys = schema["properties"].as_object().into_iter().flatten().map(|(key, _)| {
        if required.iter().any(|one| one == key) { format!("**`{key}`**") } else { format!("`{key}`") }
    });
    keys.collect::<Vec<_>>().join(", ")
}
