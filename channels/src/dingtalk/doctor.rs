//! Doctor checks of an account, made against DingTalk's API.

use super::{
    DingTalkChannel,
    card::DingTalkCard,
    failure::{DingTalkCase, DingTalkError},
    listen::KEEPALIVE,
};
use crate::{Check, socket::Socket, transport::CallError};
use pudu_net::reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::json;
use std::time::SystemTime;

/// A topic whose events this app does not use: a socket that only tests the connection must not take messages of
/// people.
const UNUSED: &str = "/v1.0/graph/api/invoke";

/// Looks at credentials, clock, stream, and the permissions to send.
pub(super) async fn check(dingtalk: &DingTalkChannel) -> Vec<Check> {
    let clock = match dingtalk.api.ask_token().await {
        Ok((_, clock)) => clock,
        Err(error) => return vec![credentials(&error)],
    };
    let mut found = vec![Check::good("credentials", "client id and secret are good")];
    found.extend(clock.map(|there| {
        Check::clock(there, SystemTime::now(), "addresses for answers look good or bad that are not")
    }));
    found.push(stream(dingtalk).await);
    let body = json!({"robotCode": dingtalk.state.robot_code});
    let sending = dingtalk.api.call(Method::POST, "/v1.0/robot/groupMessages/send", &body).await;
    found.push(permission(
        "sending messages",
        "qyapi_robot_sendmsg (企业内机器人发送消息权限)",
        sending.err(),
    ));
    found.push(cards(dingtalk).await);
    found
}

fn credentials(error: &DingTalkError) -> Check {
    match error {
        CallError::Auth(why) => Check::bad(
            "credentials",
            why,
            "copy Client ID and Client Secret from the app's page \"Credentials and basic information\"",
        ),
        other => Check::unreachable("api_url", other),
    }
}

async fn stream(dingtalk: &DingTalkChannel) -> Check {
    let what = "stream";
    let help =
        "open the app's page \"Events and callbacks\", choose Stream mode, and publish the app's version";
    let (mut url, ticket) = match dingtalk.api.open(&[UNUSED]).await {
        Ok(opened) => opened,
        Err(error) => return Check::bad(what, error.to_string(), help),
    };
    url.query_pairs_mut().append_pair("ticket", ticket.expose_secret());
    match Socket::connect(url.as_str(), KEEPALIVE).await {
        Ok(socket) => {
            socket.close().await;
            Check::good(what, "a socket opens")
        }
        Err(error) => Check::bad(
            what,
            error.to_string(),
            "let this machine open WebSockets to the outside (proxy, firewall)",
        ),
    }
}

async fn cards(dingtalk: &DingTalkChannel) -> Check {
    let what = "cards";
    let Some(style) = &dingtalk.state.style else {
        let help = "make an AI card template and set `card_template_id`: answers then grow in place";
        return Check::poor(what, "no `card_template_id`: answers come whole, at the end", help);
    };
    // A card without a receiver: it is made and finished like the card of an answer.
    let name = format!("pudu-doctor-{:016x}", fastrand::u64(..));
    let card =
        DingTalkCard { api: &dingtalk.api, style, robot_code: &dingtalk.state.robot_code, name: &name };
    match card.probe().await {
        Ok(()) => Check::good(what, "a card can be made and written"),
        Err(CallError::Special(DingTalkCase::Strange(why))) => Check::bad(
            what,
            why,
            "see that `card_content_key` is the name of the template's Markdown variable, and that streaming is on",
        ),
        Err(CallError::Refused(why)) => {
            Check::bad(what, why, "see that `card_template_id` is the id of a published template of this app")
        }
        Err(error) => permission(what, "Card.Streaming.Write and Card.Instance.Write", Some(error)),
    }
}

/// Any answer but one about permissions says that there is the permission.
fn permission(what: &str, name: &str, error: Option<DingTalkError>) -> Check {
    match error {
        Some(CallError::Special(DingTalkCase::Forbidden(why))) => {
            let help =
                format!("apply for {name} on the app's page \"Permissions\", then publish the app's version");
            Check::bad(what, why, help)
        }
        Some(CallError::Unconnected(why) | CallError::Unknown(why)) => {
            Check::poor(what, why, "run the doctor again")
        }
        _ => Check::good(what, "permitted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
        let good = |check: Check| matches!(check.found, CheckResult::Good(_));
        assert!(good(permission("x", "y", None)));
        assert!(good(permission("x", "y", Some(CallError::Refused("a part is missing".into())))));
        let check = permission("x", "y", Some(CallError::Special(DingTalkCase::Forbidden("no".into()))));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("apply for y")));
        let check = credentials(&CallError::Auth("no".into()));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("Client Secret")));
    }
}
