//! Doctor checks of a bot against Feishu's API.

use super::{
    FeishuChannel, FeishuEventMode,
    client::FeishuClient,
    facts::{DOCTOR, SCOPES, ScopeProbe},
};
use crate::Check;

/// Note about scopes that no API call can check.
const UNASKED: &str = "im:message.p2p_msg:readonly and im:message.group_at_msg:readonly determine which messages arrive; \
                       no API call can check them";

/// Checks credentials, the bot, the delivery of events, and scopes.
pub(super) async fn check(feishu: &FeishuChannel) -> Vec<Check> {
    let client = &feishu.state.client;
    if let Err(failure) = client.token().await {
        return vec![DOCTOR.first_call_failed(&failure)];
    }
    let mut found = vec![Check::good("credentials", client.app_id()), bot(client).await];
    found.push(events(feishu).await);
    found.extend(client.clock().await.map(|there| DOCTOR.clock(there)));
    for probe in &SCOPES {
        found.push(scope(client, probe).await);
    }
    found
}

async fn bot(client: &FeishuClient) -> Check {
    match client.call_top("bot/v3/info").await {
        Ok(response) if response.get("bot").is_some_and(|bot| bot["open_id"].is_string()) => {
            Check::good("bot", response["bot"]["app_name"].as_str().unwrap_or_default())
        }
        Ok(_) => Check::bad("bot", "the app has no bot", "add the Bot ability in the developer console"),
        Err(failure) => Check::bad(
            "bot",
            failure.to_string(),
            "add the Bot ability in the developer console, and publish a version of the app",
        ),
    }
}

async fn events(feishu: &FeishuChannel) -> Check {
    let what = "events";
    match &feishu.config.mode {
        FeishuEventMode::Webhook { .. } => {
            Check::good(what, format!("by webhook, encrypted and signed; {UNASKED}"))
        }
        // A second connection would take events away from the working one, so only fetch the endpoint.
        FeishuEventMode::LongConnection => match feishu.state.client.endpoint().await {
            Ok(response) if response["URL"].is_string() => {
                Check::good(what, format!("by long connection; {UNASKED}"))
            }
            Ok(_) => Check::bad(
                what,
                "the platform returned no URL",
                "try again later; if the problem persists, contact the platform's support",
            ),
            Err(failure) => Check::bad(
                what,
                failure.to_string(),
                "choose the long connection under Events & Callbacks in the developer console, for events and for \
                 callbacks",
            ),
        },
    }
}

async fn scope(client: &FeishuClient, ScopeProbe { scope, method, path, body }: &ScopeProbe) -> Check {
    let what = format!("scope {}", scope.name);
    match client.call(method.clone(), path, body().as_ref()).await {
        Err(failure) if failure.is_scope() => DOCTOR.missing(scope),
        Err(failure) if failure.is_outage() => Check::poor(what, failure.to_string(), "try again"),
        _ => Check::good(what, "granted"),
    }
}
