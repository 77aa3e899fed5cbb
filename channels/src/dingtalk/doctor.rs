//! Doctor checks of a bot against DingTalk's API.

use super::{
    DingTalkChannel,
    card::DingTalkCard,
    facts::{CARD_PERMISSIONS, DOCTOR, DingTalkCase, DingTalkError, SEND_PERMISSION},
    listen::KEEPALIVE,
};
use crate::{Check, socket::Socket, transport::CallError};
use pudu_net::reqwest::Method;
use secrecy::ExposeSecret;
use serde_json::json;

/// Topic whose events pudu does not use: the socket that tests the connection must not receive users' messages.
const UNUSED: &str = "/v1.0/graph/api/invoke";

/// Checks credentials, clock, stream, and the permissions to send.
pub(super) async fn check(dingtalk: &DingTalkChannel) -> Vec<Check> {
    let clock = match dingtalk.api.ask_token().await {
        Ok((_, clock)) => clock,
        Err(error) => return vec![DOCTOR.first_call_failed(&error)],
    };
    let mut found = vec![Check::good("credentials", "client id and secret are valid")];
    found.extend(clock.map(|there| DOCTOR.clock(there)));
    found.push(stream(dingtalk).await);
    let body = json!({"robotCode": dingtalk.state.robot_code});
    let sending = dingtalk.api.call(Method::POST, "/v1.0/robot/groupMessages/send", &body).await;
    found.push(permission("sending messages", SEND_PERMISSION, sending.err()));
    found.push(cards(dingtalk).await);
    found
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
            Check::good(what, "a connection can be opened")
        }
        Err(error) => Check::bad(
            what,
            error.to_string(),
            "allow this machine to open WebSocket connections (check the proxy and the firewall)",
        ),
    }
}

async fn cards(dingtalk: &DingTalkChannel) -> Check {
    let what = "cards";
    let Some(style) = &dingtalk.state.style else {
        let help = "create an AI card template and set `card_template_id`: answers are then streamed";
        return Check::poor(
            what,
            "no `card_template_id`: answers are sent only when they are complete",
            help,
        );
    };
    // A card without a receiver, created and finished like the card of an answer.
    let name = format!("pudu-doctor-{:016x}", fastrand::u64(..));
    let card =
        DingTalkCard { api: &dingtalk.api, style, robot_code: &dingtalk.state.robot_code, name: &name };
    match card.probe().await {
        Ok(()) => Check::good(what, "a card can be created and updated"),
        Err(CallError::Special(DingTalkCase::Strange(why))) => Check::bad(
            what,
            why,
            "set `card_content_key` to the name of the template's Markdown variable, and turn on streaming for it",
        ),
        Err(CallError::Refused(why)) => {
            Check::bad(what, why, "set `card_template_id` to the id of a published template of this app")
        }
        Err(error) => permission(what, CARD_PERMISSIONS, Some(error)),
    }
}

/// Returns the check of a permission. Any outcome other than a permission error means that it is granted.
fn permission(what: &str, name: &str, error: Option<DingTalkError>) -> Check {
    match error {
        Some(CallError::Special(DingTalkCase::Forbidden(why))) => {
            Check::bad(what, why, DOCTOR.help_for(name))
        }
        Some(CallError::Unconnected(why) | CallError::Unknown(why)) => {
            Check::poor(what, why, "run `pudu doctor` again")
        }
        _ => Check::good(what, "permitted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn a_missing_permission_comes_with_its_fix() {
        let good = |check: Check| matches!(check.found, CheckResult::Good(_));
        assert!(good(permission("x", "y", None)));
        assert!(good(permission("x", "y", Some(CallError::Refused("a part is missing".into())))));
        let check = permission("x", "y", Some(CallError::Special(DingTalkCase::Forbidden("no".into()))));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("apply for y")));
    }
}
