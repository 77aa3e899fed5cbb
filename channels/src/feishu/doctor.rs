//! Doctor checks of an account, made against Feishu's API. Scopes are tried on messages that do not exist: the platform
//! reports a missing scope before it looks for them. A card is made and not sent.

use super::{FeishuChannel, FeishuEventMode, card::FeishuPage, client::FeishuClient, failure::FeishuError};
use crate::{Check, transport::CallError};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::time::SystemTime;

const CONSOLE: &str =
    "in the developer console under Permissions & Scopes, then publish a version of the app";

/// Note about scopes that no API call can check.
const UNASKED: &str = "which messages come hangs on im:message.p2p_msg:readonly and im:message.group_at_msg:readonly, \
                       which cannot be asked for";

/// A scope, and a call that needs it and finds nothing.
struct ScopeProbe {
    scope: &'static str,
    /// The feature that needs the scope; `None` if everything does.
    without: Option<&'static str>,
    method: Method,
    path: &'static str,
    body: Value,
}

fn probes() -> Vec<ScopeProbe> {
    let text = json!({"msg_type": "text", "content": "{\"text\":\"?\"}"});
    let card = json!({"type": "card_json", "data": FeishuPage::sign().card(true).to_string()});
    let probe = |scope, without, method, path, body| ScopeProbe { scope, without, method, path, body };
    vec![
        probe("im:message:send_as_bot", None, Method::POST, "im/v1/messages/om_0/reply", text),
        probe(
            "cardkit:card:write",
            Some("answers do not stream, they are replaced as they grow"),
            Method::POST,
            "cardkit/v1/cards",
            card,
        ),
        probe(
            "im:resource",
            Some("no files go either way"),
            Method::GET,
            "im/v1/messages/om_0/resources/file_0?type=file",
            Value::Null,
        ),
        probe(
            "im:message.reactions:write_only",
            Some("messages that wait get no reaction"),
            Method::DELETE,
            "im/v1/messages/om_0/reactions/0",
            Value::Null,
        ),
        probe(
            "im:message",
            Some(
                "recalls and presses after a restart, forwarded messages and files that are answered cannot be looked up",
            ),
            Method::GET,
            "im/v1/messages/om_0",
            Value::Null,
        ),
        probe(
            "im:chat:readonly",
            Some("presses after a restart cannot be told from whom they come"),
            Method::GET,
            "im/v1/chats/oc_0",
            Value::Null,
        ),
        probe(
            "contact:user.base:readonly",
            Some("in groups the agent does not know who speaks by name"),
            Method::GET,
            "contact/v3/users/ou_0?user_id_type=open_id",
            Value::Null,
        ),
    ]
}

/// Looks at credentials, the bot, how events come, and scopes.
pub(super) async fn check(feishu: &FeishuChannel) -> Vec<Check> {
    let client = &feishu.state.client;
    if let Err(failure) = client.token().await {
        return vec![credentials(&failure)];
    }
    let mut found = vec![Check::good("credentials", client.app_id()), bot(client).await];
    found.push(events(feishu).await);
    found.extend(client.clock().await.map(clock));
    for probe in probes() {
        found.push(scope(client, &probe).await);
    }
    found
}

fn credentials(failure: &FeishuError) -> Check {
    let why = failure.to_string();
    if matches!(failure, CallError::Auth(_)) {
        let help = "copy App ID and App Secret from the developer console into `app_id` and `app_secret`; see that \
                    `domain` is Feishu's or Lark's, wherever the app is";
        return Check::bad("credentials", why, help);
    }
    Check::unreachable("domain", why)
}

async fn bot(client: &FeishuClient) -> Check {
    match client.call_top("bot/v3/info").await {
        Ok(told) if told.get("bot").is_some_and(|bot| bot["open_id"].is_string()) => {
            Check::good("bot", told["bot"]["app_name"].as_str().unwrap_or_default())
        }
        Ok(_) => Check::bad("bot", "the app has no bot", "add the Bot ability in the developer console"),
        Err(failure) => Check::bad(
            "bot",
            failure.to_string(),
            "add the Bot ability in the developer console, and publish a version of the app",
        ),
    }
}

/// Posts of another time are refused, and numbers of cards are times.
fn clock(there: SystemTime) -> Check {
    Check::clock(there, SystemTime::now(), "posts that are five minutes off are refused")
}

async fn events(feishu: &FeishuChannel) -> Check {
    let what = "events";
    match &feishu.config.mode {
        FeishuEventMode::Webhook { .. } => {
            Check::good(what, format!("by webhook, sealed and signed; {UNASKED}"))
        }
        // A connection that is opened takes events away from the one that works: the address is enough.
        FeishuEventMode::LongConnection => match feishu.state.client.endpoint().await {
            Ok(told) if told["URL"].is_string() => {
                Check::good(what, format!("by long connection; {UNASKED}"))
            }
            Ok(_) => {
                Check::bad(what, "the platform gave no address", "try again; if it stays, ask its support")
            }
            Err(failure) => Check::bad(
                what,
                failure.to_string(),
                "choose the long connection under Events & Callbacks in the developer console, for events and for \
                 callbacks",
            ),
        },
    }
}

async fn scope(client: &FeishuClient, probe: &ScopeProbe) -> Check {
    let what = format!("scope {}", probe.scope);
    let body = Some(&probe.body).filter(|body| !body.is_null());
    let result = client.call(probe.method.clone(), probe.path, body).await;
    match (result, probe.without) {
        (Err(failure), without) if failure.is_scope() => {
            let help = format!("add {} {CONSOLE}", probe.scope);
            match without {
                Some(without) => Check::poor(what, without, help),
                None => Check::bad(what, "pudu cannot write", help),
            }
        }
        (Err(failure), _) if failure.is_outage() => Check::poor(what, failure.to_string(), "try again"),
        _ => Check::good(what, "granted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckResult, feishu::failure::failure};

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
        let mends = |check: Check| match check.found {
            CheckResult::Good(_) => String::new(),
            CheckResult::Poor { help, .. } | CheckResult::Bad { help, .. } => help,
        };
        assert!(mends(credentials(&failure(200, 10_014, "app secret invalid", None))).contains("App Secret"));
        assert!(mends(credentials(&CallError::Unconnected("no".into()))).contains("proxy"));
    }
}
