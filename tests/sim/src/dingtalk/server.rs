//! The HTTP server: both hosts, session webhooks, files, and the socket, on one port.

use super::{
    Core, cards,
    error::{Answer, Refusal},
    files, robot, session, stream,
    world::World,
};
use crate::{calls::Outcome, stage::Reply};
use axum::{
    Router,
    body::to_bytes,
    extract::{
        DefaultBodyLimit, FromRequest, FromRequestParts, Multipart, Request, State, ws::WebSocketUpgrade,
    },
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::{collections::HashMap, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Maximum size of a body, in bytes: the largest file and its framing.
const BODY: usize = files::MAX_FILE_BYTES + 1024 * 1024;

/// Content of a call.
#[derive(Default)]
pub(crate) struct Ask {
    pub(crate) query: HashMap<String, String>,
    pub(crate) body: Map<String, Value>,
    pub(crate) file: Option<(String, Bytes)>,
    pub(crate) token: Option<String>,
    pub(crate) json_wanted: bool,
}

impl Ask {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.body.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a required text.
    pub(crate) fn must(&self, name: &str) -> Answer<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty()).ok_or_else(|| Refusal::missing(name))
    }

    /// Returns the parameters for the record, without the token.
    fn record(&self) -> Map<String, Value> {
        let mut record = self.body.clone();
        if let Some((name, bytes)) = &self.file {
            record.insert("media".to_owned(), json!({"file": name, "bytes": bytes.len()}));
        }
        record
    }
}

/// Authentication of a call.
#[derive(Clone, Copy, PartialEq)]
enum Door {
    /// By its own content.
    Open,
    /// By the token in the header.
    Token,
    /// By the token in the query, on the older host.
    Query,
}

type Effect = fn(&mut World, &Ask) -> Answer;

/// Method, path, name in the record, authentication, and effect.
const CALLS: [(&str, &str, &str, Door, Effect); 14] = [
    ("POST", "/v1.0/gateway/connections/open", "gateway/connections/open", Door::Open, stream::open),
    ("POST", "/v1.0/oauth2/accessToken", "oauth2/accessToken", Door::Open, access_token),
    ("POST", "/v1.0/robot/oToMessages/batchSend", "robot/oToMessages/batchSend", Door::Token, robot::single),
    ("POST", "/v1.0/robot/groupMessages/send", "robot/groupMessages/send", Door::Token, robot::group),
    (
        "POST",
        "/v1.0/robot/otoMessages/batchRecall",
        "robot/otoMessages/batchRecall",
        Door::Token,
        robot::recall,
    ),
    ("POST", "/v1.0/robot/groupMessages/recall", "robot/groupMessages/recall", Door::Token, robot::recall),
    ("POST", "/v1.0/robot/messageFiles/download", "robot/messageFiles/download", Door::Token, files::locate),
    ("POST", "/v1.0/card/instances", "card/instances/create", Door::Token, cards::create),
    ("POST", "/v1.0/card/instances/deliver", "card/instances/deliver", Door::Token, cards::deliver),
    (
        "POST",
        "/v1.0/card/instances/createAndDeliver",
        "card/instances/createAndDeliver",
        Door::Token,
        cards::create_and_deliver,
    ),
    ("PUT", "/v1.0/card/instances", "card/instances", Door::Token, cards::update),
    ("PUT", "/v1.0/card/streaming", "card/streaming", Door::Token, cards::stream),
    ("POST", "/media/upload", "media/upload", Door::Query, files::upload),
    ("POST", "/robot/sendBySession", "sessionWebhook", Door::Open, session::send),
];

/// Routes of the platform.
pub(crate) fn router(core: Arc<Core>, stop: CancellationToken) -> Router {
    let connect = {
        let core = Arc::clone(&core);
        get(move |request| connect(core, stop, request))
    };
    Router::new()
        .route("/connect", connect)
        .fallback(route)
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(core)
}

async fn connect(core: Arc<Core>, stop: CancellationToken, request: Request) -> Response {
    let ticket = query(&request).remove("ticket").unwrap_or_default();
    let Some(ticket) = core.act(|world| stream::redeem(world, &ticket)) else {
        return (StatusCode::UNAUTHORIZED, "invalid ticket").into_response();
    };
    let (mut parts, _) = request.into_parts();
    match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade.on_upgrade(|socket| async move {
            stop.run_until_cancelled(stream::serve(core, socket, ticket)).await;
        }),
        Err(refused) => refused.into_response(),
    }
}

async fn route(State(core): State<Arc<Core>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().as_str().to_owned();
    if let Some(key) = path.strip_prefix("/oss/") {
        return download(&core, key, request.headers().contains_key("x-acs-dingtalk-access-token")).await;
    }
    let found = CALLS.iter().find(|(m, p, ..)| *m == method && *p == path).copied();
    let ask = match read(request).await {
        Ok(ask) => ask,
        Err(refusal) => return refusal.reply().0.into_response(),
    };
    let Some((_, _, name, door, effect)) = found else {
        let unknown = async { Refusal::api(404, "InvalidAction.NotFound", "no such API").reply() };
        return core.run(&format!("{method} {path}"), ask.record(), unknown).await.into_response();
    };
    let done = async {
        let words = Value::Object(ask.body.clone()).to_string();
        let passes = |world: &mut World| pass(world, name, door, &ask).and_then(|()| world.reads(&words));
        match core.act(|world| passes(world).and_then(|()| effect(world, &ask))) {
            Ok(value) => (Reply::Json(200, value.clone()), Outcome::Answered(value)),
            Err(refusal) => refusal.reply(),
        }
    };
    let reply = core.run(name, ask.record(), done).await;
    // The gateway answers in XML unless JSON is requested.
    if name == "gateway/connections/open" && !ask.json_wanted {
        return ([(header::CONTENT_TYPE, "application/xml")], "<result><endpoint/></result>").into_response();
    }
    reply.into_response()
}

/// Checks the address, the token and the app's budget of a call.
fn pass(world: &mut World, name: &str, door: Door, ask: &Ask) -> Answer<()> {
    if door == Door::Open {
        return if world.banned { Err(Refusal::Ban) } else { Ok(()) };
    }
    world.spend(name)?;
    let token = match door {
        Door::Query => ask.query.get("access_token"),
        _ => ask.token.as_ref(),
    };
    match (token.is_some_and(|token| world.knows(token)), door) {
        (true, _) => Ok(()),
        (false, Door::Query) => Err(Refusal::errcode(40014, "invalid access_token")),
        (false, _) => Err(Refusal::api(401, "InvalidAuthentication", "the access token is not valid")),
    }
}

fn access_token(world: &mut World, ask: &Ask) -> Answer {
    let (key, secret) = (ask.must("appKey")?, ask.must("appSecret")?);
    if key != world.options.client_id || secret != world.options.client_secret {
        return Err(Refusal::api(400, "invalidClientIdOrSecret", "the client id or secret is not right"));
    }
    let (token, lasts) = world.access_token();
    Ok(json!({"accessToken": token, "expireIn": lasts}))
}

/// Serves a file by its short-lived URL. A token must not be sent there: it would be leaked.
async fn download(core: &Core, key: &str, leaks: bool) -> Response {
    let params = Map::from_iter([("key".to_owned(), key.into()), ("token".to_owned(), leaks.into())]);
    let found = core.look(|world| world.files.get(key).map(|(_, bytes)| bytes.clone()));
    let done = async {
        match found {
            Some(bytes) => {
                let outcome = Outcome::Answered(bytes.len().into());
                (Reply::Bytes(bytes), outcome)
            }
            None => Refusal::api(404, "NoSuchKey", "no such file").reply(),
        }
    };
    core.run("download", params, done).await.into_response()
}

async fn read(request: Request) -> Answer<Ask> {
    let headers = request.headers();
    let word = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content = word("content-type").unwrap_or_default();
    let mut ask = Ask {
        query: query(&request),
        token: word("x-acs-dingtalk-access-token"),
        json_wanted: word("accept").is_some_and(|accept| accept.contains("application/json")),
        ..Ask::default()
    };
    if content.starts_with("multipart/form-data") {
        read_parts(request, &mut ask).await?;
        return Ok(ask);
    }
    let large = |_| Refusal::api(413, "RequestEntityTooLarge", "the body is too large");
    let body = to_bytes(request.into_body(), BODY).await.map_err(large)?;
    let broken = |_| Refusal::api(400, "InvalidParameter", "the body is no JSON object");
    if !body.is_empty() {
        ask.body = serde_json::from_slice(&body).map_err(broken)?;
    }
    Ok(ask)
}

async fn read_parts(request: Request, ask: &mut Ask) -> Answer<()> {
    let broken = || Refusal::errcode(40035, "the form cannot be read");
    let mut parts = Multipart::from_request(request, &()).await.map_err(|_| broken())?;
    while let Some(part) = parts.next_field().await.map_err(|_| broken())? {
        let name = part.name().unwrap_or_default().to_owned();
        let file = part.file_name().map(str::to_owned);
        let bytes = part.bytes().await.map_err(|_| broken())?;
        match file {
            Some(file) if name == "media" => ask.file = Some((file, bytes)),
            _ => {
                ask.body.insert(name, String::from_utf8_lossy(&bytes).into_owned().into());
            }
        }
    }
    Ok(())
}

fn query(request: &Request) -> HashMap<String, String> {
    let query = request.uri().query().unwrap_or_default();
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
