//! No secret leaks: servers in place of platforms, model providers or MCP servers repeat whole requests in their
//! errors, and their secrets must not appear in an API response, in a log or in the output of a command. The secrets
//! have no recognizable format.

use crate::house::{House, SOON, Talker};
use axum::{Json, Router, body::Bytes, extract::Request, http::StatusCode, response::IntoResponse};
use pudu_sim::model::Reply;
use serde_json::json;
use std::time::Duration;
use tokio::net::TcpListener;

/// Secrets that must not appear anywhere. The first looks ordinary and is no prefix of another.
const SECRETS: [&str; 12] = [
    "31:telegrams-own-word-of-the-right-shape",
    "xoxb-botword/with+signs=",
    "xapp-appword-of-slack",
    "discords-own-word",
    "feishus-own-word",
    "dingtalks-own-word",
    "the-models-own-key",
    "headers-own-value",
    "mcp-servers-token",
    "edited-in-later",
    "tokens-of-the-gateway",
    "searchs-own-key",
];

/// Responds to everything with an error that contains the whole request, in the format of each platform.
async fn parrot() -> String {
    let repeat = |request: Request| async move {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_else(|_| Bytes::new());
        let headers: Vec<_> =
            parts.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        let all = format!(
            "{} {} {} {}",
            parts.method,
            parts.uri,
            headers.join(" "),
            String::from_utf8_lossy(&body)
        );
        let told = json!({
            "ok": false, "error_code": 400, "description": all, "error": all, "code": 1, "msg": all, "message": all,
        });
        (StatusCode::BAD_REQUEST, Json(told)).into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(repeat)).await });
    format!("http://{address}")
}

fn accounts(parrot: &str, discord: &str) -> String {
    let [telegram, bot, app, _, feishu, dingtalk, ..] = SECRETS;
    format!(
        "  t: {{type: telegram, bot_token: '{telegram}', api_url: {parrot}}}\n  \
         s: {{type: slack, bot_token: '{bot}', app_token: '{app}', api_url: {parrot}}}\n  \
         d: {{type: discord, bot_token: '{discord}', api_url: {parrot}}}\n  \
         f: {{type: feishu, app_id: cli_1, app_secret: '{feishu}', domain: {parrot}}}\n  \
         g: {{type: dingtalk, client_id: ding1, client_secret: '{dingtalk}', api_url: {parrot}, oapi_url: {parrot}}}\n"
    )
}

/// Fails if a text contains one of the secrets in any spelling.
fn innocent(place: &str, text: &str) {
    for secret in SECRETS {
        let spelt = secret.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D").replace(' ', "%20");
        assert!(!text.contains(secret) && !text.contains(&spelt), "{place} has {secret}:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_repeats_the_request_gives_no_secret_away() {
    let parrot = parrot().await;
    let mut house = House::build("").await;
    let rest = |discord: &str| {
        format!(
            "{}gateway: {{token: {}}}\nlog_level: trace\ntools:\n  - {{use: 'deerflow.community.tavily.tools:web_search_tool', \
             base_url: '{parrot}', api_key: {}}}\n",
            accounts(&parrot, discord),
            SECRETS[10],
            SECRETS[11],
        )
    };
    house.configure("", &rest(SECRETS[3]));
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let model = format!(
        "models:\n  - {{name: sim, model: m, use: 'langchain_openai:ChatOpenAI', base_url: '{parrot}/v1', api_key: {}, \
         max_retries: 0, default_headers: {{X-Token: {}}}}}\nchannels:\n",
        SECRETS[6], SECRETS[7],
    );
    let (head, channels) =
        (config.split_once("models:").unwrap().0, config.split_once("channels:\n").unwrap().1);
    house.write_config(&format!("{head}{model}{channels}"));
    let servers = json!({ "mcpServers": { "p": { "url": format!("{parrot}/mcp"), "headers": { "X-Key": SECRETS[8] } } } });
    std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.set("RUST_LOG", "trace");
    house.start();
    let seen = async |wanted: usize| {
        let client = crate::house::http();
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let url = format!("http://{}/api/channels/", house.address);
            let told = client.get(url).bearer_auth(SECRETS[10]).send().await.unwrap().text().await.unwrap();
            if told.matches("[secret]").count() >= wanted {
                return told;
            }
            assert!(tokio::time::Instant::now() < deadline, "{told}\n{}", house.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let told = seen(5).await;
    innocent("/api/channels", &told);
    let (_, said) = house.pudu(&["chat", "--new", "hello"]);
    innocent("pudu chat", &said);
    // An account with an outdated secret.
    let edited = std::fs::read_to_string(house.path("config.yaml")).unwrap().replace(SECRETS[3], SECRETS[9]);
    house.write_config(&edited);
    house.logs("connecting").await;
    innocent("/api/channels", &seen(5).await);
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("[secret]"), "{doctor}");
    innocent("pudu doctor", &doctor);
    innocent("the log", &house.log());
}

/// The model's key, which a tool may read if the operator exposes it.
#[tokio::test]
async fn what_the_model_repeats_of_the_configuration_reaches_no_chat() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let key = "sk-simulated-key-0123456789";
    house
        .model
        .next(Reply::text(&format!("The key is {key}, and yours may look like sk-another-key-000111222.")));
    let answer =
        ada.says("what is it?", "The key is [secret], and yours may look like sk-another-key-000111222.");
    answer.await;
}

#[tokio::test]
async fn a_key_in_the_wrong_place_is_not_shown() {
    let house = House::build("").await;
    let key = "a8Xk20dPq7Lm55Zr93Tb";
    for wrong in [
        format!("models: [{{name: {key}, model: m}}]\n"),
        format!("models: [{{name: tvly-{key}, model: m}}]\n"),
        format!("models: [{{name: m, model: {key}}}]\n"),
        format!("models: [{{name: m, model: m, use: {key}}}]\n"),
        format!("models: [{{name: m, model: m, base_url: {key}}}]\n"),
        format!("models: [{{name: m, model: m, temperature: {key}}}]\n"),
        format!("log_level: {key}\n"),
        format!("channels: {{telegram: {{bot_token: '1:x', allowed_users: [{key}]}}}}\n"),
        format!("channels: {{telegram: {{bot_token: '1:x', mode: {key}}}}}\n"),
        format!("tools: [{{use: {key}}}]\n"),
        format!("gateway: {{host: {key}, public_url: {key}}}\n"),
        format!("sandbox: {{use: {key}}}\n"),
        format!("web: {{allowed_hosts: [{key}]}}\n"),
        format!("database: {{backend: {key}}}\n"),
        "log_level: sk-abcdefghijklmnopqrstuvwxyz\n".to_owned(),
        "sk-abcdefghijklmnopqrstuvwxyz: 1\n".to_owned(),
    ] {
        std::fs::write(house.path("config.yaml"), format!("config_version: 34\n{wrong}")).unwrap();
        let (_, told) = house.pudu(&["config", "check"]);
        assert!(!told.contains(key) && !told.contains("sk-abcdef"), "{wrong}: {told}");
    }
}
