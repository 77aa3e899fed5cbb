//! Doctor checks of an account, made against Telegram's API.

use super::{
    TelegramChannel, TelegramConfig, TelegramUpdateMode, client::CALL_TIMEOUT, failure::TelegramError,
    listen::GET_ME, wire::TelegramUser,
};
use crate::{Check, transport::CallError};
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

/// Looks at token, privacy mode, and how updates come.
pub(super) async fn check(telegram: &TelegramChannel) -> Vec<Check> {
    let me = match telegram.client.ask::<_, TelegramUser>(&GET_ME, CALL_TIMEOUT).await {
        Ok(me) => me,
        Err(error) => return vec![token(&error)],
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

fn token(error: &TelegramError) -> Check {
    match error {
        CallError::Auth(why) => {
            Check::bad("token", why, "copy the token from @BotFather into `bot_token` once more")
        }
        other => Check::unreachable("api_url", other),
    }
}

/// Advice on how the bot receives all messages of its groups.
const OPEN_GROUPS: &str =
    "@BotFather: /setprivacy, Disable, and add the bot to the group again; or make it an administrator there";

fn privacy(config: &TelegramConfig, me: &TelegramUser) -> Check {
    let what = "group privacy";
    match (me.can_read_all_group_messages, config.require_mention, config.reads_groups) {
        (true, ..) => Check::good(what, "off: the bot sees what groups say"),
        (false, true, false) => {
            Check::good(what, "on: in groups the bot sees commands, mentions and answers to it")
        }
        (false, false, _) => {
            Check::poor(what, "it is on, so `require_mention: false` has no effect in groups", OPEN_GROUPS)
        }
        (false, true, true) => Check::poor(
            what,
            "it is on, so `context` has messages only of groups in which the bot is an administrator",
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
            "a webhook is set; pudu takes it away when it starts",
            "stop whatever else uses this token, or give pudu a token of its own",
        ),
        (TelegramUpdateMode::Webhook { .. }, _, Some(error)) => Check::poor(
            what,
            format!("Telegram could not deliver: {error}; {} wait", info.pending_update_count),
            "see whether `webhook.url` leads to pudu's gateway from the internet",
        ),
        (TelegramUpdateMode::Webhook { .. }, _, None) => Check::good(what, "by webhook"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckResult;

    #[test]
    fn what_is_wrong_comes_with_its_mend() {
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
        let check = token(&CallError::Auth("Unauthorized".into()));
        assert!(matches!(check.found, CheckResult::Bad { ref help, .. } if help.contains("@BotFather")));
    }
}
