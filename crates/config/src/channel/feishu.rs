//! A bot on Feishu or Lark.

use super::{
    super::{quantity::NumberUnit, raw::NodeValue, reader::Section},
    GroupHistory, Menu, Platform, PlatformReader,
};
use pudu_channels::{
    Channel, ChannelError,
    feishu::{self, FeishuConfig, FeishuEventMode},
};
use secrecy::SecretString;
use std::sync::Arc;
use url::Url;

/// Platform settings of a Feishu bot: the channel's configuration without the name.
#[derive(Debug)]
struct FeishuAccountConfig(FeishuConfig);

impl Platform for FeishuAccountConfig {
    fn name(&self) -> &'static str {
        READER.name
    }

    fn transport(&self) -> &'static str {
        match self.0.mode {
            FeishuEventMode::LongConnection => "ws",
            FeishuEventMode::Webhook { .. } => "webhook",
        }
    }

    fn secrets(&self) -> Vec<&SecretString> {
        let mut secrets = vec![&self.0.app_secret];
        if let FeishuEventMode::Webhook { encrypt_key, verification_token } = &self.0.mode {
            secrets.extend([encrypt_key, verification_token]);
        }
        secrets
    }

    fn channel(&self, account: &str, _menu: Menu) -> Result<Arc<dyn Channel>, ChannelError> {
        let config = FeishuConfig { account: account.to_owned(), ..self.0.clone() };
        Ok(Arc::new(feishu::FeishuChannel::new(config)?))
    }
}

/// Reader of Feishu bots.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "feishu",
    credentials: &["app_id", "app_secret"],
    read,
    user: id,
    chat: id,
    ids: "Feishu ids (ou_…, oc_…)",
    about: "A bot on Feishu or Lark: a custom app with a bot.",
    history: GroupHistory::Platform,
};

/// Values of `mode`: whether events are posted to a webhook.
const MODES: &[(&str, bool)] = &[("ws", false), ("webhook", true)];

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let credentials_help = "the developer console shows it under Credentials; or set `enabled: false`";
    let usual = Url::parse(feishu::DOMAIN).ok()?;
    settings! { section =>
        /// App ID, from the developer console.
        app_id = text().eg("cli_0123456789abcdef").required(credentials_help);
        /// App Secret, from the developer console.
        app_secret = secret().eg("$FEISHU_APP_SECRET").required(credentials_help);
        /// Base URL of the open platform; Lark's is https://open.larksuite.com.
        domain = url().or(usual);
        /// Delivery of events: ws (a long connection that pudu opens) or webhook.
        posted as "mode" = choice(MODES).or(false);
        /// For `mode: webhook`: key that encrypts and signs events.
        encrypt_key = secret().eg("$FEISHU_ENCRYPT_KEY").optional("for `mode: webhook`");
        /// For `mode: webhook`: token in each event.
        verification_token = secret().eg("$FEISHU_VERIFICATION_TOKEN").optional("for `mode: webhook`");
        /// Restricts answers in groups to messages that address the bot.
        require_mention = flag().or(true);
        /// Interval between changes of a growing answer, in milliseconds; each change is a call of the tenant's budget.
        stream_interval as "stream_interval_ms" = span(NumberUnit::Milliseconds, 100..=60_000)
            .or(feishu::STREAM_INTERVAL);
    }
    let mode = mode(section, posted, encrypt_key, verification_token);
    Some(Arc::new(FeishuAccountConfig(FeishuConfig {
        account: String::new(),
        app_id: app_id?,
        app_secret: app_secret?,
        domain,
        mode: mode?,
        require_mention,
        stream_interval,
    })))
}

fn mode(
    section: &Section<'_>,
    posted: bool,
    encrypt_key: Option<SecretString>,
    verification_token: Option<SecretString>,
) -> Option<FeishuEventMode> {
    if !posted {
        return Some(FeishuEventMode::LongConnection);
    }
    let keys = [("encrypt_key", encrypt_key.is_none()), ("verification_token", verification_token.is_none())];
    for (key, missing) in keys {
        if missing && section.is_needed() {
            let help = "copy it from the developer console: Events & Callbacks, Encryption Strategy";
            section.refuse(key, "required for `mode: webhook`: without it anyone could post", help);
        }
    }
    Some(FeishuEventMode::Webhook { encrypt_key: encrypt_key?, verification_token: verification_token? })
}

/// Parses an id: the `open_id` of a person or the `chat_id` of a chat.
fn id(value: &NodeValue) -> Result<String, String> {
    let id = match value {
        NodeValue::Text(text) => text.trim(),
        _ => "",
    };
    let known = ["ou_", "oc_"].iter().any(|prefix| id.len() > prefix.len() && id.starts_with(prefix));
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if known && plain {
        return Ok(id.to_owned());
    }
    Err("write ids, which begin with `ou_` for users and `oc_` for chats: a name can change hands, and its next owner \
         would be admitted"
        .to_owned())
}
