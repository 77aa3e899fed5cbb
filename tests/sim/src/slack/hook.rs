//! Events by POST: signed, and repeated unless accepted.

use super::{core::Core, envelopes::Envelope, world::unix_now};
use axum::http::{Request, header};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use sha2::Sha256;
use std::{fmt::Write, sync::Arc};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use url::form_urlencoded;

/// Maximum number of concurrent posts.
const MAX_CONCURRENT_POSTS: usize = 16;

type Sender = Client<HttpConnector, Full<Bytes>>;

/// Posts events while it is polled; does nothing without a URL.
pub(crate) async fn deliver(core: Arc<Core>) {
    let client: Sender = Client::builder(TokioExecutor::new()).build_http();
    let mut under_way = JoinSet::new();
    let mut changed = core.watch();
    loop {
        changed.borrow_and_update();
        let url = core.look(|world| world.events_url.clone());
        let mut next = None;
        if let Some(url) = &url {
            while under_way.len() < MAX_CONCURRENT_POSTS
                && let Some(envelope) = core.lock().next_post(Instant::now())
            {
                under_way.spawn(post(Arc::clone(&core), client.clone(), url.clone(), envelope));
            }
            next = core.look(super::world::World::next_post_at);
        }
        let room = under_way.len() < MAX_CONCURRENT_POSTS;
        tokio::select! {
            told = changed.changed() => if told.is_err() { return },
            Some(_) = under_way.join_next() => {}
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() && room => {}
        }
    }
}

async fn post(core: Arc<Core>, client: Sender, url: String, envelope: Envelope) {
    let (patience, pause) = core.look(|world| (world.options.ack_within, world.options.post_again));
    let (kind, body) = body(&envelope);
    let request = core.look(|world| request(&url, kind, body, &world.options.signing_secret, &envelope));
    let Ok(request) = request else { return };
    let (mut taken, mut again) = (false, true);
    if let Ok(Ok(response)) = timeout(patience, client.request(request)).await {
        taken = response.status().is_success();
        again = response.headers().get("x-slack-no-retry").is_none();
        let body = response.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        if taken {
            let response = serde_json::from_slice(&body).unwrap_or_default();
            core.act(|world| world.answered(&envelope.id, &response));
        }
    }
    core.act(|world| world.posted(&envelope.id, taken, again, pause));
}

/// Events are JSON; commands and clicks are forms.
fn body(envelope: &Envelope) -> (&'static str, String) {
    const FORM: &str = "application/x-www-form-urlencoded";
    let mut form = form_urlencoded::Serializer::new(String::new());
    match envelope.kind {
        "slash_commands" => {
            for (name, value) in envelope.payload.as_object().into_iter().flatten() {
                form.append_pair(name, value.as_str().unwrap_or_default());
            }
            (FORM, form.finish())
        }
        "interactive" => (FORM, form.append_pair("payload", &envelope.payload.to_string()).finish()),
        _ => ("application/json", envelope.payload.to_string()),
    }
}

fn request(
    url: &str,
    kind: &str,
    body: String,
    secret: &str,
    envelope: &Envelope,
) -> Result<Request<Full<Bytes>>, axum::http::Error> {
    let at = unix_now();
    let mut request = Request::post(url)
        .header(header::CONTENT_TYPE, kind)
        .header("X-Slack-Request-Timestamp", at)
        .header("X-Slack-Signature", sign(secret, at, body.as_bytes()));
    if let Some((attempt, reason)) = envelope.retry() {
        request = request.header("X-Slack-Retry-Num", attempt).header("X-Slack-Retry-Reason", reason);
    }
    request.body(Full::from(body))
}

/// Signs a body like the platform.
pub(crate) fn sign(secret: &str, at: u64, body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    let mut signature = "v0=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}
