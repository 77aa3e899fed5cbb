//! Paths of the API: discovery, namespaces, Pods and network policies.

use super::{
    Asked, TOKEN, VERSION, World, exec,
    pod::{self, Pod, list, word},
    status,
};
use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::Method,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Maximum size of a request, in bytes.
const BODY: usize = 3 << 20;
/// Time until a deleted Pod with a grace period is gone.
const GOING: Duration = Duration::from_millis(50);
/// Default duration of a watch.
const WATCH: Duration = Duration::from_secs(30 * 60);

pub(super) fn router(world: &Arc<World>) -> Router {
    // The world ends with its handles, not with its server.
    Router::new().fallback(serve).with_state(Arc::downgrade(world))
}

async fn serve(State(world): State<std::sync::Weak<World>>, request: Request) -> Response {
    let Some(world) = world.upgrade() else { return crate::http::cut() };
    let what = format!("{} {}", request.method(), request.uri().path());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let allowed =
        request.headers().get("authorization").is_some_and(|value| value == &format!("Bearer {TOKEN}"));
    let path = request.uri().path().trim_matches('/').to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    if let ["api", "v1", "namespaces", space, "pods", name, "exec"] = parts.as_slice() {
        if let Err(response) = note(&world, &what, &query, Value::Null, allowed) {
            return *response;
        }
        return exec::open(world, ((*space).to_owned(), (*name).to_owned()), request).await;
    }
    let method = request.method().clone();
    let body = to_bytes(request.into_body(), BODY).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Err(response) = note(&world, &what, &query, body.clone(), allowed) {
        return *response;
    }
    answer(&world, &method, &parts, &query, body)
}

/// Records a request, and returns its planned failure.
fn note(world: &World, what: &str, query: &str, body: Value, allowed: bool) -> Result<(), Box<Response>> {
    let mut state = world.state();
    state.asked.push(Asked { what: what.to_owned(), query: query.to_owned(), body });
    if let Some(at) = state.troubles.iter().position(|(begin, ..)| what.starts_with(begin.as_str())) {
        let (_, code, message) = state.troubles.remove(at);
        return Err(Box::new(match code {
            0 => crate::http::cut(),
            200 => message.into_response(),
            code => status::failure(code, &message, &json!({})),
        }));
    }
    if !allowed {
        return Err(Box::new(status::failure(401, "Unauthorized", &json!({}))));
    }
    Ok(())
}

fn answer(world: &Arc<World>, method: &Method, parts: &[&str], query: &str, body: Value) -> Response {
    match (method.as_str(), parts) {
        ("GET", ["version"]) => Json(json!({
            "major": "1", "minor": "35", "gitVersion": VERSION, "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z", "goVersion": "go1.25", "compiler": "gc", "platform": "linux/amd64",
        }))
        .into_response(),
        ("GET", ["healthz" | "readyz" | "livez"]) => "ok".into_response(),
        ("GET", ["api"]) => Json(json!({"kind": "APIVersions", "versions": ["v1"]})).into_response(),
        ("GET", ["apis"]) => Json(groups()).into_response(),
        ("GET", ["api", "v1"]) => Json(resources("v1", &[
            ("namespaces", "Namespace", false), ("pods", "Pod", true), ("pods/exec", "PodExecOptions", true),
        ]))
        .into_response(),
        ("GET", ["apis", "networking.k8s.io", "v1"]) => {
            Json(resources("networking.k8s.io/v1", &[("networkpolicies", "NetworkPolicy", true)])).into_response()
        }
        ("GET", ["api", "v1", "namespaces", name]) => namespace(world, name),
        (_, ["api", "v1", "namespaces", space, "pods", rest @ ..]) => pods(world, method, space, rest, query, body),
        ("GET", ["api", "v1", "pods"]) => listed(world, None, query),
        (_, ["apis", "networking.k8s.io", "v1", "namespaces", space, "networkpolicies", rest @ ..]) => {
            policies(world, method, space, rest, body)
        }
        _ => status::unknown(),
    }
}

fn groups() -> Value {
    let version = json!({"groupVersion": "networking.k8s.io/v1", "version": "v1"});
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
        {"name": "networking.k8s.io", "versions": [version], "preferredVersion": version}
    ]})
}

fn resources(version: &str, all: &[(&str, &str, bool)]) -> Value {
    let one = |(name, kind, namespaced): &(&str, &str, bool)| {
        let singular = kind.to_lowercase();
        json!({"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind,
               "verbs": ["create", "delete", "get", "list", "watch"]})
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
           "resources": all.iter().map(one).collect::<Vec<_>>()})
}

fn namespace(world: &World, name: &str) -> Response {
    if !world.state().namespaces.contains(name) {
        return status::missing("namespaces", name);
    }
    Json(json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "status": {"phase": "Active"}}))
        .into_response()
}

fn pods(
    world: &Arc<World>,
    method: &Method,
    space: &str,
    rest: &[&str],
    query: &str,
    body: Value,
) -> Response {
    match (method.as_str(), rest) {
        ("GET", []) => listed(world, Some(space), query),
        ("POST", []) => create(world, space, body),
        ("GET", [name]) => match world.state().pods.get(&(space.to_owned(), (*name).to_owned())) {
            Some(pod) => Json(pod.shown.clone()).into_response(),
            None => status::missing("pods", name),
        },
        ("DELETE", [name]) => delete(world, space, name, query, &body),
        (_, [] | [_]) => status::failure(
            405,
            "the server does not allow this method on the requested resource",
            &json!({}),
        ),
        _ => status::unknown(),
    }
}

fn create(world: &Arc<World>, space: &str, mut pod: Value) -> Response {
    let name = word(&pod["metadata"]["name"]).to_owned();
    if let Some(why) = invalid(&pod) {
        let text = format!("Pod \"{name}\" is invalid: {why}");
        return status::failure(422, &text, &json!({"name": name, "kind": "Pod"}));
    }
    let key = (space.to_owned(), name.clone());
    let mut state = world.state();
    if !state.namespaces.contains(space) {
        return status::missing("namespaces", space);
    }
    if state.pods.contains_key(&key) {
        return status::failure(
            409,
            &format!("pods \"{name}\" already exists"),
            &json!({"name": name, "kind": "pods"}),
        );
    }
    state.version += 1;
    pod["kind"] = json!("Pod");
    pod["apiVersion"] = json!("v1");
    let meta = &mut pod["metadata"];
    meta["namespace"] = json!(space);
    meta["uid"] = json!(format!("00000000-0000-4000-8000-{:012x}", state.version));
    meta["resourceVersion"] = json!(state.version.to_string());
    meta["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod["status"] = json!({"phase": "Pending", "qosClass": "Burstable"});
    state.pods.insert(key.clone(), Pod::new(pod.clone()));
    world.changes.send(("ADDED".to_owned(), pod.clone())).ok();
    drop(state);
    let weak = Arc::downgrade(world);
    world.tasks.spawn(async move {
        if let Some(world) = weak.upgrade() {
            pod::start(world, key).await;
        }
    });
    (axum::http::StatusCode::CREATED, Json(pod)).into_response()
}

/// Returns the reason why the API would refuse a Pod.
fn invalid(pod: &Value) -> Option<String> {
    let name = word(&pod["metadata"]["name"]);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.len() > 253
        || !name.chars().all(plain)
        || !edge(name.chars().next())
        || !edge(name.chars().next_back())
    {
        return Some(format!(
            "metadata.name: Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        ));
    }
    for (label, value) in pod["metadata"]["labels"].as_object().into_iter().flatten() {
        let value = word(value);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if value.len() > 63 || !value.chars().all(plain) {
            return Some(format!(
                "metadata.labels: Invalid value: \"{value}\": a valid label must be 63 characters or less ({label})"
            ));
        }
    }
    let containers = list(&pod["spec"]["containers"]);
    if containers.is_empty() {
        return Some("spec.containers: Required value".to_owned());
    }
    let volumes: Vec<&str> =
        list(&pod["spec"]["volumes"]).iter().map(|volume| word(&volume["name"])).collect();
    for container in containers {
        if word(&container["image"]).is_empty() {
            return Some("spec.containers[0].image: Required value".to_owned());
        }
        for mount in list(&container["volumeMounts"]) {
            if !volumes.contains(&word(&mount["name"])) {
                return Some(format!(
                    "spec.containers[0].volumeMounts[0].name: Not found: {}",
                    mount["name"]
                ));
            }
            if word(&mount["subPath"]).starts_with('/')
                || word(&mount["subPath"]).split('/').any(|part| part == "..")
            {
                return Some(
                    "spec.containers[0].volumeMounts[0].subPath: must be a relative path".to_owned(),
                );
            }
        }
    }
    let dns = &pod["spec"];
    if dns["dnsPolicy"] == "None" && list(&dns["dnsConfig"]["nameservers"]).is_empty() {
        return Some("spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None".to_owned());
    }
    None
}

fn delete(world: &Arc<World>, space: &str, name: &str, query: &str, body: &Value) -> Response {
    let key = (space.to_owned(), name.to_owned());
    let asked = parameter(query, "gracePeriodSeconds").and_then(|text| text.parse().ok());
    let grace = asked.or_else(|| body["gracePeriodSeconds"].as_u64());
    let shown = {
        let mut state = world.state();
        let Some(pod) = state.pods.get_mut(&key) else { return status::missing("pods", name) };
        pod.shown["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod.shown["metadata"]["deletionGracePeriodSeconds"] = json!(grace.unwrap_or(30));
        pod.shown.clone()
    };
    if grace == Some(0) {
        world.forget(&key);
        return Json(shown).into_response();
    }
    world.change(&key, |_| ());
    let weak = Arc::downgrade(world);
    world.tasks.spawn(async move {
        tokio::time::sleep(GOING).await;
        if let Some(world) = weak.upgrade() {
            world.forget(&key);
        }
    });
    Json(shown).into_response()
}

fn listed(world: &Arc<World>, space: Option<&str>, query: &str) -> Response {
    let selector = parameter(query, "labelSelector").unwrap_or_default();
    let fields = parameter(query, "fieldSelector").unwrap_or_default();
    let space = space.map(str::to_owned);
    let wanted = move |pod: &Value| {
        space.as_deref().is_none_or(|space| pod["metadata"]["namespace"] == space)
            && selects(&selector, |name| pod["metadata"]["labels"][name].as_str().map(str::to_owned))
            && selects(&fields, |name| {
                let inner = name.split('.').fold(pod, |value, part| &value[part]);
                inner.as_str().map(str::to_owned)
            })
    };
    if matches!(parameter(query, "watch").as_deref(), Some("true" | "1")) {
        return watch(world, query, wanted);
    }
    let state = world.state();
    let items: Vec<Value> = state.pods.values().map(|pod| pod.shown.clone()).filter(wanted).collect();
    Json(json!({
        "kind": "PodList", "apiVersion": "v1",
        "metadata": {"resourceVersion": state.version.to_string()}, "items": items,
    }))
    .into_response()
}

/// Streams changes, after the existing objects if no version is given.
fn watch(world: &Arc<World>, query: &str, wanted: impl Fn(&Value) -> bool + Send + 'static) -> Response {
    let seconds = parameter(query, "timeoutSeconds").and_then(|text| text.parse().ok());
    let until = Instant::now() + seconds.map_or(WATCH, Duration::from_secs);
    let changes = world.changes.subscribe();
    let fresh = matches!(parameter(query, "resourceVersion").as_deref(), None | Some("" | "0"));
    let first: Vec<(String, Value)> = if fresh {
        world.state().pods.values().map(|pod| ("ADDED".to_owned(), pod.shown.clone())).collect()
    } else {
        Vec::new()
    };
    let events = stream::unfold(
        (first.into_iter(), changes, wanted),
        move |(mut first, mut changes, wanted)| async move {
            loop {
                let (kind, object) = match first.next() {
                    Some(event) => event,
                    None => tokio::time::timeout_at(until, changes.recv()).await.ok()?.ok()?,
                };
                if wanted(&object) {
                    let line = format!("{}\n", json!({"type": kind, "object": object}));
                    return Some((Ok::<_, std::io::Error>(Bytes::from(line)), (first, changes, wanted)));
                }
            }
        },
    );
    ([("content-type", "application/json")], Body::from_stream(events)).into_response()
}

/// Returns whether a selector matches: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a`, `!a`, separated by commas.
fn selects(selector: &str, value: impl Fn(&str) -> Option<String>) -> bool {
    let (mut terms, mut depth, mut term) = (Vec::new(), 0, String::new());
    for c in selector.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 {
            terms.push(std::mem::take(&mut term));
        } else {
            term.push(c);
        }
    }
    terms.push(term);
    terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty()).all(|term| {
        if let Some((name, wanted)) = term.split_once("!=") {
            value(name.trim()).as_deref() != Some(wanted.trim())
        } else if let Some((name, wanted)) = term.split_once('=') {
            value(name.trim()).as_deref() == Some(wanted.trim_start_matches('=').trim())
        } else if let Some((name, set)) = term.split_once(" in ") {
            let set = set.trim().trim_start_matches('(').trim_end_matches(')');
            value(name.trim()).is_some_and(|value| set.split(',').any(|one| one.trim() == value))
        } else if let Some(name) = term.strip_prefix('!') {
            value(name).is_none()
        } else {
            value(term).is_some()
        }
    })
}

fn policies(world: &World, method: &Method, space: &str, rest: &[&str], mut body: Value) -> Response {
    let mut state = world.state();
    match (method.as_str(), rest) {
        ("POST", []) => {
            let name = word(&body["metadata"]["name"]).to_owned();
            let key = (space.to_owned(), name.clone());
            if state.policies.contains_key(&key) {
                let text = format!("networkpolicies.networking.k8s.io \"{name}\" already exists");
                return status::failure(409, &text, &json!({"name": name, "kind": "networkpolicies"}));
            }
            body["metadata"]["namespace"] = json!(space);
            state.policies.insert(key, body.clone());
            (axum::http::StatusCode::CREATED, Json(body)).into_response()
        }
        ("GET", []) => {
            let items: Vec<Value> = state
                .policies
                .iter()
                .filter(|((at, _), _)| at == space)
                .map(|(_, policy)| policy.clone())
                .collect();
            let kind = "NetworkPolicyList";
            Json(json!({"kind": kind, "apiVersion": "networking.k8s.io/v1", "metadata": {}, "items": items}))
                .into_response()
        }
        ("GET", [name]) => match state.policies.get(&(space.to_owned(), (*name).to_owned())) {
            Some(policy) => Json(policy.clone()).into_response(),
            None => status::missing("networkpolicies.networking.k8s.io", name),
        },
        _ => status::unknown(),
    }
}

fn parameter(query: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select_as_documented() {
        let value = |name: &str| (name == "a").then(|| "b".to_owned());
        for (selector, expect) in [
            ("", true),
            ("a=b", true),
            ("a==b", true),
            ("a=c", false),
            ("a!=c", true),
            ("x!=y", true),
            ("a", true),
            ("!a", false),
            ("x", false),
            ("a in (c, b),a=b", true),
            ("a in (c)", false),
            ("a=b,x=y", false),
        ] {
            assert_eq!(selects(selector, value), expect, "{selector}");
        }
    }
}
