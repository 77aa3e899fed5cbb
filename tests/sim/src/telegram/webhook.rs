//! Delivery by webhook: setting, querying, and executing it.
//!
//! Deliveries run concurrently, but those of one chat in order. Without a 2xx response they are repeated. Deliberately
//! absent: TLS (a loopback address may be plain here), refusing ports other than the platform's, and a method in the
//! response's body.

use super::{
    core::Core,
    error::{Answer, Refusal},
    params::Params,
    types::{ChatId, UpdateId},
    updates::Update,
    world::{World, unix_now},
};
use axum::http::{Request, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use url::Url;

/// Target of updates.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    url: Url,
    secret: Option<String>,
    connections: usize,
    failed: Option<(i64, String)>,
}

/// Timeout of a delivery.
const POST_TIMEOUT: Duration = Duration::from_secs(60);

/// `setWebhook`; without a URL it is `deleteWebhook`.
pub(crate) fn set(world: &mut World, params: &Params) -> Answer {
    let Some(address) = params.text("url") else { return delete(world, params) };
    let url = Url::parse(address).map_err(|_| Refusal::bad("bad webhook: can't parse URL"))?;
    let local = matches!(url.host_str(), Some("127.0.0.1" | "localhost"));
    if url.scheme() != "http" || !local {
        return Err(Refusal::bad("bad webhook: the simulator delivers to http on loopback only"));
    }
    let secret = params.text("secret_token").map(str::to_owned);
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if secret.as_ref().is_some_and(|secret| secret.len() > 256 || !secret.chars().all(fits)) {
        return Err(Refusal::bad("secret token contains unallowed characters"));
    }
    let connections = params.int("max_connections")?.unwrap_or(40).clamp(1, 100);
    world.updates.allow(params.object("allowed_updates")?);
    drop_pending(world, params);
    world.updates.end_poll("terminated by setWebhook request");
    let connections = usize::try_from(connections).unwrap_or(1);
    world.webhook = Some(Webhook { url, secret, connections, failed: None });
    Ok(true.into())
}

/// `deleteWebhook`.
pub(crate) fn delete(world: &mut World, params: &Params) -> Answer {
    drop_pending(world, params);
    world.webhook = None;
    Ok(true.into())
}

fn drop_pending(world: &mut World, params: &Params) {
    if params.flag("drop_pending_updates") {
        world.updates.clear();
    }
}

/// `getWebhookInfo`.
pub(crate) fn info(world: &mut World, _: &Params) -> Answer {
    let waiting = world.updates.waiting();
    let mut info = json!({"url": "", "has_custom_certificate": false, "pending_update_count": waiting});
    if let Some(hook) = &world.webhook {
        info["url"] = hook.url.as_str().into();
        info["max_connections"] = hook.connections.into();
        info["ip_address"] = "127.0.0.1".into();
        if let Some((date, message)) = &hook.failed {
            info["last_error_date"] = (*date).into();
            info["last_error_message"] = message.as_str().into();
        }
    }
    if let Some(allowed) = world.updates.allowed() {
        info["allowed_updates"] = json!(allowed);
    }
    Ok(info)
}

type Sender = Client<HttpConnector, Full<Bytes>>;

/// Delivers while it is polled; does nothing without a webhook.
pub(crate) async fn deliver(core: Arc<Core>) {
    let client: Sender = Client::builder(TokioExecutor::new()).build_http();
    let mut under_way = JoinSet::new();
    let mut busy = BTreeSet::new();
    let mut changed = core.watch();
    loop {
        changed.borrow_and_update();
        while let Some((hook, update)) = core.look(|world| next(world, &busy)) {
            busy.insert(update.chat);
            under_way.spawn(send(client.clone(), hook, update));
        }
        let retry = core.look(|world| world.updates.next_try(Instant::now()));
        tokio::select! {
            told = changed.changed() => if told.is_err() { return },
            Some(Ok((chat, id, failure))) = under_way.join_next() => {
                busy.remove(&chat);
                core.act(|world| settle(world, id, failure));
            }
            () = sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => {}
        }
    }
}

fn next(world: &World, busy: &BTreeSet<ChatId>) -> Option<(Webhook, Update)> {
    let hook = world.webhook.as_ref().filter(|hook| busy.len() < hook.connections)?;
    Some((hook.clone(), world.updates.due(busy, Instant::now())?))
}

async fn send(client: Sender, hook: Webhook, update: Update) -> (ChatId, UpdateId, Option<String>) {
    let failure = match request(&hook, &update.body) {
        Ok(request) => match timeout(POST_TIMEOUT, client.request(request)).await {
            Ok(Ok(response)) if response.status().is_success() => None,
            Ok(Ok(response)) => Some(format!("Wrong response from the webhook: {}", response.status())),
            Ok(Err(_)) => Some("Connection refused or broken".to_owned()),
            Err(_) => Some("Read timeout expired".to_owned()),
        },
        Err(error) => Some(error.to_string()),
    };
    (update.chat, update.id, failure)
}

fn request(hook: &Webhook, body: &Value) -> Result<Request<Full<Bytes>>, axum::http::Error> {
    let mut request = Request::post(hook.url.as_str()).header(header::CONTENT_TYPE, "application/json");
    if let Some(secret) = &hook.secret {
        request = request.header("X-Telegram-Bot-Api-Secret-Token", secret);
    }
    request.body(Full::from(body.to_string()))
}

fn settle(world: &mut World, id: UpdateId, failure: Option<String>) {
    match failure {
        None => world.updates.delivered(id),
        Some(message) => {
            world.updates.refused(id, world.options.webhook_retry, Instant::now());
            if let Some(hook) = &mut world.webhook {
                hook.failed = Some((unix_now(), message));
            }
        }
    }
}
