//! Checks whether a model's provider is reachable, offers a model API and accepts the key. It requests the list of
//! models, or sends an empty request if there is no list. Neither costs anything.

use pudu_channels::Check;
use pudu_model::ModelSettings;
use pudu_net::{
    self as net,
    reqwest::{Client, Error, RequestBuilder, Response, header},
};
use serde_json::Value;
use std::time::Duration;

/// Timeout of a request to a provider.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a list of models, in bytes.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;

/// Checks one model.
pub(super) async fn check(settings: &ModelSettings) -> Check {
    let what = format!("model {}", settings.name);
    let Ok(http) = net::client() else {
        return Check::bad(what, "cannot create an HTTP client", "see the log");
    };
    let host = settings.base_url.host_str().unwrap_or_default();
    match detect_kind(&http, settings).await {
        Ok(ServerKind::Api) => Check::good(what, format!("{} at {host} answers", settings.model)),
        Ok(ServerKind::Refused) => {
            Check::bad(what, format!("{host} rejected the key"), "see `api_key` of this model")
        }
        Ok(ServerKind::Broken(status)) => {
            let help = "try again; see the provider's status page";
            Check::poor(what, format!("{host} answers {status}"), help)
        }
        Ok(ServerKind::NoApi) => {
            let mut longer = settings.base_url.clone();
            longer.set_path(&format!("{}/v1", longer.path().trim_end_matches('/')));
            let longer = ModelSettings { base_url: longer, ..settings.clone() };
            let help = match detect_kind(&http, &longer).await {
                Ok(ServerKind::Api | ServerKind::Refused) => {
                    format!("write `base_url: {}`", net::shown_url(&longer.base_url))
                }
                _ => "check `base_url` of this model; for most providers it ends in /v1".to_owned(),
            };
            let base = net::shown_url(&settings.base_url);
            Check::bad(what, format!("there is no model API at {base}"), help)
        }
        Err(error) => {
            let why = format!("{host} cannot be reached: {}", net::why(&error));
            Check::bad(what, why, "check `base_url` of this model, and the network of this machine")
        }
    }
}

/// Kind of server at an address.
enum ServerKind {
    /// A model API that accepts the key.
    Api,
    /// A server that rejects the key.
    Refused,
    /// A server that fails with this status.
    Broken(u16),
    /// No model API.
    NoApi,
}

/// Determines the kind of server.
async fn detect_kind(http: &Client, settings: &ModelSettings) -> Result<ServerKind, Error> {
    // A provider would also reject a key that is not a valid header value.
    let (Ok(list), Ok(empty)) = (settings.list_request(http), settings.empty_request(http)) else {
        return Ok(ServerKind::Refused);
    };
    let list = ask(list).await?;
    if let Some(kind) = kind_from_status(&list) {
        return Ok(kind);
    }
    if is_json(&list) && list.status().is_success() && is_list(&start_of(list).await?) {
        return Ok(ServerKind::Api);
    }
    let chat = ask(empty).await?;
    // A server that rejects an empty request with a JSON error is a model API, unless the status says that the path
    // does not exist.
    let is_api =
        is_json(&chat) && chat.status().is_client_error() && !matches!(chat.status().as_u16(), 404 | 405);
    Ok(kind_from_status(&chat).unwrap_or(if is_api { ServerKind::Api } else { ServerKind::NoApi }))
}

/// Returns the kind if the status alone determines it.
fn kind_from_status(answer: &Response) -> Option<ServerKind> {
    match answer.status().as_u16() {
        401 | 403 => Some(ServerKind::Refused),
        status @ 500.. => Some(ServerKind::Broken(status)),
        _ => None,
    }
}

async fn ask(request: RequestBuilder) -> Result<Response, Error> {
    request.timeout(REQUEST_TIMEOUT).send().await
}

/// Reads at most [`MAX_LIST_BYTES`] of a response.
async fn start_of(mut answer: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while body.len() <= MAX_LIST_BYTES
        && let Some(chunk) = answer.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns whether JSON is a list of models. Some servers answer unknown paths with 200.
fn is_list(body: &[u8]) -> bool {
    let answer_json: Value = serde_json::from_slice(body).unwrap_or_default();
    ["data", "models"].iter().any(|key| answer_json.get(key).is_some_and(Value::is_array))
}

fn is_json(answer: &Response) -> bool {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_of_models_tells_of_an_api() {
        let check = |body: &str, expect: bool| assert_eq!(is_list(body.as_bytes()), expect, "{body}");
        check(r#"{"object":"list","data":[{"id":"a"}]}"#, true);
        check(r#"{"models":[]}"#, true);
        check(r#"{"error":"Unexpected endpoint or method."}"#, false);
        check(r#"{"data":{"error":"no"}}"#, false);
        check("[]", false);
        check("hello", false);
    }
}
