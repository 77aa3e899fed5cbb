//! The network in memory: each request of the daemon is answered by the simulated platform or the simulated model, with
//! delays and faults by the seed.

use crate::{
    faults::{Fault, Plan},
    world::with,
};
use axum::{
    body::Body,
    http::{Request as HttpRequest, Response as HttpResponse},
};
use futures_util::StreamExt;
use pudu_net::{
    self as net, SimulatedAnswer,
    reqwest::{
        self, Client, Request, Response,
        dns::{Name, Resolve, Resolving},
    },
};
use std::{future::pending, io, sync::Arc, sync::LazyLock, time::Duration};
use tokio::time::{sleep, timeout};

/// Host of the platform.
pub const PLATFORM: &str = "http://platform.invalid";
/// Host of the model.
pub const MODEL: &str = "http://model.invalid";

/// Answers a request of the daemon.
pub fn answer(request: Request) -> SimulatedAnswer {
    Box::pin(async move {
        match request.timeout().copied() {
            Some(limit) => match timeout(limit, exchange(request)).await {
                Ok(answered) => answered,
                Err(_) => Err(failure(&SILENT).await),
            },
            None => exchange(request).await,
        }
    })
}

async fn exchange(request: Request) -> Result<Response, reqwest::Error> {
    let is_model = request.url().host_str() == Some("model.invalid");
    let name = request.url().path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let name = if is_model { "model".to_owned() } else { name.to_owned() };
    let text = described(&request);
    let Plan { fault, there, back } = with(|world| {
        let plan = world.faults.plan(&mut world.random);
        world.note(format!(
            "call {name} {text}{}",
            plan.fault.map_or(String::new(), |fault| format!(" {fault:?}"))
        ));
        plan
    });
    pause(there).await;
    match fault {
        Some(Fault::Unconnected) => return Err(failure(&REFUSING).await),
        Some(Fault::Lost) => return pending().await,
        Some(Fault::TooMany(seconds)) => return Ok(refused(429, seconds)),
        Some(Fault::Internal) => return Ok(refused(500, 0)),
        Some(Fault::Unanswered | Fault::Cut) | None => {}
    }
    alive(&format!("arrive {name}")).await;
    let (telegram, model) = with(|world| (world.telegram.clone(), world.model.clone()));
    let request = HttpRequest::try_from(request)?.map(Body::new);
    let response = match is_model {
        true => model.answer(request).await,
        false => telegram.answer(request).await,
    };
    let response = response.unwrap();
    if name == "GetUpdates" && with(|world| world.confirms_early) {
        let next = telegram.last_update().map_or(0, |update| update.0 + 1);
        telegram.call("getUpdates", serde_json::json!({"offset": next, "timeout": 0})).await;
    }
    alive(&format!("answer {name} {}", response.status().as_u16())).await;
    pause(back).await;
    match fault {
        Some(Fault::Unanswered) => pending().await,
        Some(Fault::Cut) => Ok(cut(response)),
        _ => Ok(response.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).into()),
    }
}

/// Notes an event. A crashed daemon does not continue.
async fn alive(event: &str) {
    with(|world| world.note(event));
    if with(|world| world.is_dead) {
        pending::<()>().await;
    }
}

async fn pause(delay: Duration) {
    match delay.is_zero() {
        true => tokio::task::yield_now().await,
        false => sleep(delay).await,
    }
}

/// Describes the content of a request for the record.
fn described(request: &Request) -> String {
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    match last {
        Some(last) => last["content"].to_string(),
        None => ["chat_id", "message_id", "offset", "text"]
            .into_iter()
            .filter(|key| !body[key].is_null())
            .map(|key| format!("{key}={} ", body[key]))
            .collect(),
    }
}

/// Returns a refusal in the form of the platform, which the model's client reads as well.
fn refused(status: u16, wait: u64) -> Response {
    let parameters =
        if wait > 0 { serde_json::json!({"retry_after": wait}) } else { serde_json::Value::Null };
    let body = serde_json::json!({
        "ok": false, "error_code": status, "description": "simulated", "parameters": parameters,
        "error": {"message": "simulated"},
    });
    let mut response = HttpResponse::builder().status(status).header("content-type", "application/json");
    if wait > 0 {
        response = response.header("retry-after", wait);
    }
    response.body(body.to_string()).unwrap().into()
}

/// Returns a response that breaks off after its first bytes.
fn cut(response: HttpResponse<Body>) -> Response {
    let broken = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let first = |body: Body| {
        let whole = body.into_data_stream().map(|chunk| chunk.map_err(io::Error::other)).take(1);
        let half = whole.map(|chunk| chunk.map(|bytes| bytes.slice(..bytes.len() / 2)));
        reqwest::Body::wrap_stream(half.chain(futures_util::stream::once(async move { broken() })))
    };
    response.map(first).into()
}

/// A client that reaches no host, for its errors.
static REFUSING: LazyLock<Client> = LazyLock::new(|| client(Nowhere { is_silent: false }));
/// A client that gets no answer, for its errors.
static SILENT: LazyLock<Client> = LazyLock::new(|| client(Nowhere { is_silent: true }));

fn client(resolver: Nowhere) -> Client {
    let limit = Duration::from_millis(1);
    net::builder().no_proxy().timeout(limit).dns_resolver(Arc::new(resolver)).build().unwrap()
}

async fn failure(client: &Client) -> reqwest::Error {
    client.get(PLATFORM).send().await.unwrap_err()
}

/// Finds no host.
struct Nowhere {
    is_silent: bool,
}

impl Resolve for Nowhere {
    fn resolve(&self, _: Name) -> Resolving {
        let is_silent = self.is_silent;
        Box::pin(async move {
            if is_silent {
                pending::<()>().await;
            }
            Err(io::Error::from(io::ErrorKind::NotFound).into())
        })
    }
}
