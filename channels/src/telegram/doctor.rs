//! Doctor checks of a bot against Telegram's API.

use super::{
    TelegramChannel, TelegramConfig, TelegramUpdateMode, client::CALL_TIMEOUT, facts::DOCTOR, listen::GET_ME,
    wire::TelegramUser,
};
use crate::Check;
use serde::Deserialize;
use serde_json::json;

/// Telegram's state of the webhook.
#[derive(Deserialize)]
struct WebhookInfo {
    #[serde(default)]
    url: String,
    #[serde(default)]
    pending_update_count: u64,
    last_error_message: Option<String>,
}

/// Checks token, privacy mode, and the delivery of updates.
pub(super) async fn check(telegram: &TelegramChannel) -> Vec<Check> {
    let me = match telegram.client.ask::<_, TelegramUser>(&GET_ME, CALL_TIMEOUT).await {
        Ok(me) => me,
        Err(error) => return vec![DOCTOR.first_call_failed(&error)],
    };
    let name = me.username.clone().unwrap_or_default();
    let mut found = vec![Check::good("token", format!("@{name}")), privacy(&telegram.config, &me)];
    let info =
        telegram.client.ask_by_name::<_, WebhookInfo>("GetWebhookInfo", &json!({}), CALL_TIMEOUT).await;
    if let Ok(info) = info {
        found.push(updates(&telegram.config.mode, &info));
    }
    found
}

/// How to let the bot receive all messages in its groups.
const OPEN_GROUPS: &str = "send /setprivacy to @BotFather, choose Disable, and add the bot to the group again; or make it an administrator there";

fn privacy(config: &TelegramConfig, me: &TelegramUser) -> Check {
    let what = "group privacy";
    match (me.can_read_all_group_messages, config.require_mention, config.reads_groups) {
        (true, ..) => Check::good(what, "off: the bot receives all messages in groups"),
        (false, true, false) => {
            Check::good(what, "on: in groups the bot receives commands, mentions and replies to it")
        }
        (false, false, _) => {
            Check::poor(what, "it is on, so `require_mention: false` has no effect in groups", OPEN_GROUPS)
        }
        (false, true, true) => Check::poor(
            what,
            "it is on, so `context` contains messages only from groups in which the bot is an administrator",
            OPEN_GROUPS,
        ),
    }
}

fn updates(mode: &TelegramUpdateMode, info: &WebhookInfo) -> Check {
    let what = "updates";
    match (mode, info.url.is_empty(), &info.last_error_message) {
        (TelegramUpdateMode::Polling, true, _) => Check::good(what, "by polling"),
        (TelegramUpdateMode::Polling, false, _) => Check::poor(
            what,
            "a webhook is set; pudu removes it at startup",
            "stop the other program that uses this token, or give pudu its own token",
        ),
        (TelegramUpdateMode::Webhook { .. }, _, Some(error)) => Check::poor(
            what,
            format!("Telegram could not deliver updates: {error}; {} are waiting", info.pending_update_count),
            "check that `webhook.url` is reachable from the internet and leads to pudu's gateway",
        ),
        (TelegramUpdateMode::Webhook { .. }, _, None) => Check::good(what, "by webhook"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn problems_come_with_a_fix() {
        let info = |url: &str, error: Option<&str>| WebhookInfo {
            url: url.into(),
            pending_update_count: 3,
            last_error_message: error.map(Into::into),
        };
        let hook = || TelegramUpdateMode::Webhook {
            url: "https://example.org".parse().unwrap(),
            secret_token: "s".into(),
        };
        let good = |check: Check| matches!(check.found, CheckResult::Good(_));
        assert!(good(updates(&TelegramUpdateMode::Polling, &info("", None))));
        assert!(good(updates(&hook(), &info("https://example.org", None))));
        assert!(!good(updates(&TelegramUpdateMode::Polling, &info("https://other.org", None))));
        assert!(!good(updates(&hook(), &info("https://example.org", Some("timeout")))));
    }
}
