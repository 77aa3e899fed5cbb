//! A bot on Telegram.

use super::{
    super::{model::is_local, raw::NodeValue, reader::Section},
    GroupHistory, Menu, Platform, PlatformReader, context,
};
use pudu_channels::{
    Channel, ChannelError,
    telegram::{self, TelegramConfig, TelegramUpdateMode},
};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use url::Url;

/// Platform settings of a Telegram bot: the channel's configuration without name and menu.
#[derive(Debug)]
struct TelegramAccountConfig(TelegramConfig);

impl Platform for TelegramAccountConfig {
    fn name(&self) -> &'static str {
        READER.name
    }

    fn transport(&self) -> &'static str {
        match self.0.mode {
            TelegramUpdateMode::Polling => "polling",
            TelegramUpdateMode::Webhook { .. } => "webhook",
        }
    }

    fn secrets(&self) -> Vec<&SecretString> {
        let secret = match &self.0.mode {
            TelegramUpdateMode::Polling => None,
            TelegramUpdateMode::Webhook { secret_token, .. } => Some(secret_token),
        };
        std::iter::once(&self.0.token).chain(secret).collect()
    }

    fn doubts(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let token = self.0.token.expose_secret();
        let good = token.split_once(':').is_some_and(|(id, rest)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !id.is_empty()
                && id.chars().all(|c| c.is_ascii_digit())
                && rest.len() >= MIN_TOKEN_CHARS
                && rest.chars().all(plain)
        });
        match good {
            true => Vec::new(),
            false => vec![(
                "bot_token",
                "this does not look like a Telegram bot token",
                "copy the complete token from @BotFather: digits, a colon, and 35 letters, digits, `_` or `-`",
            )],
        }
    }

    fn is_public(&self) -> bool {
        true
    }

    fn channel(&self, account: &str, menu: Menu) -> Result<Arc<dyn Channel>, ChannelError> {
        let config = TelegramConfig { account: account.to_owned(), commands: menu, ..self.0.clone() };
        Ok(Arc::new(telegram::TelegramChannel::new(config)?))
    }
}

/// Reader of Telegram bots.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "telegram",
    credentials: &["bot_token"],
    read,
    user,
    chat: id,
    ids: "numeric ids",
    about: "A bot on Telegram. Its name is its key; a second bot is a second entry with `type: telegram`.",
    history: GroupHistory::TopicBuffer,
};

/// Minimum length of the part of a token after the colon, in characters. It is now 35; older tokens are slightly
/// shorter.
const MIN_TOKEN_CHARS: usize = 30;
/// Values of `mode`: whether updates are delivered to a webhook.
const MODES: &[(&str, bool)] = &[("polling", false), ("webhook", true)];

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    section.note_unused(&["drafts", "rich_messages"]);
    let usual = Url::parse(telegram::API_URL).ok()?;
    settings! { section =>
        /// Bot token from @BotFather.
        token as "bot_token" = secret().eg("$TELEGRAM_BOT_TOKEN")
            .required("get one from @BotFather, or set `enabled: false`");
        /// Base URL of the Bot API.
        api_url = url().or(usual);
        /// Delivery of updates: polling or webhook.
        delivered as "mode" = choice(MODES).or(false);
        /// Restricts answers in groups to messages that address the bot.
        require_mention = flag().or(true);
    }
    let webhook =
        webhook(&section.section("webhook").needed(delivered).about("Settings for `mode: webhook`."));
    let mode = if delivered { webhook? } else { TelegramUpdateMode::Polling };
    let (account, commands) = (String::new(), Menu::new());
    Some(Arc::new(TelegramAccountConfig(TelegramConfig {
        account,
        token: token?,
        api_url,
        mode,
        require_mention,
        reads_groups: context::is_wanted(section),
        commands,
    })))
}

/// Minimum length of a webhook's secret, in characters. Shorter ones can be guessed.
const MIN_SECRET_CHARS: usize = 16;
const CHOOSE: &str = "use 16 to 256 letters, digits, `_` or `-`, for example from `openssl rand -hex 32`";

fn webhook(section: &Section<'_>) -> Option<TelegramUpdateMode> {
    let url_help = "write the public https:// address that leads to pudu's gateway";
    settings! { section =>
        /// Public URL that leads to pudu's gateway.
        url = url().eg("https://pudu.example.com/api/webhooks/telegram/telegram").required(url_help);
        /// Secret that Telegram sends with each update: 16 to 256 letters, digits, `_` or `-`.
        secret_token = secret().eg("$TELEGRAM_WEBHOOK_SECRET").required(CHOOSE);
    }
    let (url, secret_token) = (url?, secret_token?);
    if url.scheme() != "https" && !is_local(&url) {
        section.refuse("url", "Telegram delivers only to https:// addresses", url_help);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let secret = secret_token.expose_secret();
    if secret.len() > 256 || !secret.chars().all(plain) {
        section.refuse("secret_token", "Telegram does not accept this secret", CHOOSE);
    } else if secret.len() < MIN_SECRET_CHARS {
        section.refuse(
            "secret_token",
            "this can be guessed and then used to send messages as any user",
            CHOOSE,
        );
    }
    Some(TelegramUpdateMode::Webhook { url, secret_token })
}

fn id(value: &NodeValue) -> Result<String, String> {
    let id = match value {
        NodeValue::Int(id) => i64::try_from(*id).ok(),
        NodeValue::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let id = id.map(|id: i64| id.to_string());
    id.ok_or_else(|| "write ids: a name can change hands, and its next owner would be admitted".to_owned())
}

/// Parses the id of a person. Only groups have negative ids.
fn user(value: &NodeValue) -> Result<String, String> {
    match id(value)? {
        group if group.starts_with('-') => Err("put a group's id in `allowed_chats`".to_owned()),
        id => Ok(id),
    }
}
