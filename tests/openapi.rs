//! The OpenAPI document: it lists all routes, and each listed route behaves as described.

use crate::house::{House, http};
use reqwest::Method;
use serde_json::Value;
use std::{collections::BTreeSet, path::Path};

/// Error for an unknown address, and for a webhook without credentials.
const NOWHERE: &str = "not found: no route has this path";

/// An operation of the document.
pub struct Operation {
    pub method: Method,
    pub path: String,
    pub told: Value,
}

impl Operation {
    /// Returns whether no credentials are required.
    pub fn is_open(&self) -> bool {
        self.told["security"] == serde_json::json!([])
    }
}

/// Fills in each parameter of a path.
pub fn filled(path: &str) -> String {
    let part = |segment: &str| if segment.starts_with('{') { "x".to_owned() } else { segment.to_owned() };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Fetches the document.
pub async fn document(house: &House) -> Value {
    let answer = http().get(format!("http://{}/openapi.json", house.address)).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.json().await.unwrap()
}

/// Lists the document's operations.
pub fn operations(document: &Value) -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, told) in methods.as_object().unwrap() {
            let method = method.to_uppercase().parse().unwrap();
            all.push(Operation { method, path: path.clone(), told: told.clone() });
        }
    }
    assert!(all.len() > 200, "{}", all.len());
    all
}

/// Lists the addresses of missing nested paths.
pub fn missing(document: &Value) -> Vec<String> {
    document["x-not-there"].as_object().unwrap().keys().cloned().collect()
}

#[tokio::test]
async fn every_operation_answers_with_a_status_that_it_names() {
    let mut house = House::furnish(Default::default(), "", "agents_api: {enabled: true}\n").await;
    house.start();
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let document = document(&house).await;
    let mut wrong = Vec::new();
    for Operation { method, path, told } in operations(&document) {
        let address = format!("http://{}{}", house.address, filled(&path));
        let mut call = http().request(method.clone(), address).bearer_auth(token.trim());
        if told["requestBody"].is_object() {
            call = call.json(&serde_json::json!({}));
        }
        let answer = call.send().await.unwrap();
        let status = answer.status().as_u16();
        let is_stream = answer.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let body = if is_stream { String::new() } else { answer.text().await.unwrap() };
        let mut is_nowhere = status == 405;
        if body.contains(NOWHERE) {
            // An existing address does not accept every method.
            let address = format!("http://{}{}", house.address, filled(&path));
            let other = http().request(Method::OPTIONS, address).bearer_auth(token.trim());
            is_nowhere = other.send().await.unwrap().status() != 405;
        }
        if is_nowhere || told["responses"].get(status.to_string()).is_none() {
            wrong.push(format!("{method} {path}: {status} {body}"));
        }
    }
    for path in missing(&document) {
        let answer = http().get(format!("http://{}{}", house.address, filled(&path))).send().await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        if status != 404 || body.contains(NOWHERE) {
            wrong.push(format!("{path}: {status} {body}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_document_is_whole_and_the_page_shows_it() {
    let house = House::open("").await;
    let document = document(&house).await;
    let mut ids = BTreeSet::new();
    for Operation { method, path, told } in operations(&document) {
        let summary = told["summary"].as_str().unwrap();
        assert!(summary.len() > 5 && summary.ends_with('.'), "{method} {path}: {summary}");
        assert!(!told["tags"][0].as_str().unwrap().is_empty(), "{method} {path} has no tag");
        assert!(ids.insert(told["operationId"].to_string()), "{} twice", told["operationId"]);
        let named = path.matches('{').count();
        let parameters = told["parameters"].as_array().unwrap();
        let of_path: Vec<&Value> = parameters.iter().filter(|one| one["in"] == "path").collect();
        assert_eq!(of_path.len(), named, "{method} {path}");
        assert!(of_path.iter().all(|one| one["description"].as_str().unwrap().ends_with('.')), "{path}");
        assert!(of_path.iter().all(|one| path.contains(&format!("{{{}}}", one["name"].as_str().unwrap()))));
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
    }

    let answer = http().get(format!("http://{}/docs", house.address)).send().await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    let page = answer.text().await.unwrap();
    assert!(page.contains("<code>PUT /api/threads/{thread}/goal</code>"), "{page}");
    assert!(
        !["<script", "src=", "href=", "url("].iter().any(|part| page.contains(part)),
        "the page loads something"
    );
}

#[test]
fn no_route_is_registered_beside_the_document() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = ["src", "crates/gateway/src", "crates/daemon/src", "crates/dispatch/src"]
        .map(|at| root.join(at))
        .to_vec();
    let (mut files, mut wrong) = (0, Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            files += 1;
            let source = std::fs::read_to_string(&path).unwrap_or_default();
            let source = source.split("#[cfg(test)]").next().unwrap();
            let parts = [
                "Router::new(",
                ".route(",
                ".route_service(",
                ".nest_service(",
                ".fallback(",
                ".fallback_service(",
            ];
            let of_routes = path.ends_with("gateway/src/openapi/routes.rs");
            let found = parts.iter().filter(|part| source.contains(**part));
            wrong.extend(found.filter(|_| !of_routes).map(|part| format!("{}: {part}", path.display())));
        }
    }
    assert!(files > 100, "{files}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pages with tables of routes. Relative addresses are below `/api`.
const PAGES: [&str; 3] = ["docs/http-api.md", "docs/threads-and-runs.md", "docs/sign-in.md"];

/// Parses the rows with methods of a page: the methods and the addresses of each.
fn rows(page: &str) -> Vec<(BTreeSet<String>, BTreeSet<String>)> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let methods =
            cells[0].trim_start_matches("| ").split(", ").map(str::to_owned).collect::<BTreeSet<_>>();
        if methods.iter().all(|method| ["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str())) {
            let paths = cells[1].split(", ").map(|path| address(path.trim_matches('`')));
            rows.push((methods, paths.collect()));
        }
    }
    rows
}

/// Returns an address without its query and the names of its parameters.
fn address(path: &str) -> String {
    let path = path.split('?').next().unwrap();
    let is_whole = ["/api/", "/files/", "/page/"].iter().any(|start| path.starts_with(start))
        || ["/", "/health", "/ready", "/docs", "/openapi.json"].contains(&path);
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    format!("{}{}", if is_whole { "" } else { "/api" }, segments.collect::<Vec<_>>().join("/"))
}

#[tokio::test]
async fn the_pages_name_every_operation_and_no_other() {
    let house = House::open("").await;
    let document = document(&house).await;
    let there: BTreeSet<(String, String)> = operations(&document)
        .iter()
        .filter(|one| !one.path.starts_with("/api/langgraph/"))
        .map(|one| {
            (
                one.method.to_string(),
                address(if one.path == "/" { "/" } else { one.path.trim_end_matches('/') }),
            )
        })
        .collect();
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for page in PAGES {
        let rows = rows(page);
        assert!(rows.len() > 10, "{page}: {} rows", rows.len());
        for (methods, paths) in rows {
            let pairs =
                methods.iter().flat_map(|method| paths.iter().map(|path| (method.clone(), path.clone())));
            let here: BTreeSet<_> = pairs.filter(|pair| there.contains(pair)).collect();
            let unknown_path = paths.iter().find(|path| !here.iter().any(|(_, known)| known == *path));
            let unknown_method =
                methods.iter().find(|method| !here.iter().any(|(known, _)| known == *method));
            wrong.extend(unknown_path.map(|path| format!("{page}: {path} does not take {methods:?}")));
            wrong.extend(unknown_method.map(|method| format!("{page}: no {method} at {paths:?}")));
            named.extend(here);
        }
    }
    wrong.extend(there.difference(&named).map(|(method, path)| format!("{method} {path} is on no page")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_document_is_there_for_links_and_not_for_scripts_of_other_sites_and_can_be_switched_off() {
    let mut house = House::open("").await;
    let get = async |house: &House, path: &str, name: &'static str, value: &str| {
        let call = http().get(format!("http://{}{path}", house.address)).header(name, value);
        call.send().await.unwrap().status().as_u16()
    };
    for path in ["/docs", "/openapi.json"] {
        assert_eq!(get(&house, path, "sec-fetch-site", "cross-site").await, 200, "{path}");
        assert_eq!(get(&house, path, "origin", "https://evil.example").await, 403, "{path}");
    }
    house.kill();
    house.set("GATEWAY_ENABLE_DOCS", "false");
    house.start();
    for path in ["/docs", "/openapi.json"] {
        assert_eq!(get(&house, path, "accept", "*/*").await, 404, "{path}");
    }
}
