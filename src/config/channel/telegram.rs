//! A bot on Telegram.

use super::{
    super::{model::is_local, raw::Value, reader::Section},
    Platform, Reader,
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// What a Telegram account needs to be there.
#[derive(Clone, Debug)]
pub(crate) struct Telegram {
    /// The bot's token.
    pub(crate) token: SecretString,
    /// Where the Bot API is.
    pub(crate) api_url: Url,
    /// How its updates come.
    pub(crate) transport: Transport,
    /// Whether the bot answers in groups only when it is addressed.
    pub(crate) require_mention: bool,
}

/// How updates come.
#[derive(Clone, Debug)]
pub(crate) enum Transport {
    /// pudu asks for them.
    Polling,
    /// Telegram delivers them.
    Webhook {
        /// Where to; it must lead to pudu's gateway.
        url: Url,
        /// What Telegram shows with each, so that nobody else can.
        secret_token: SecretString,
    },
}

/// How its accounts are read.
pub(super) const READER: Reader =
    Reader { name: "telegram", credentials: &["bot_token"], read, id, ids: "numeric ids" };

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Polling,
    Webhook,
}

const MODES: &[(&str, Mode)] = &[("polling", Mode::Polling), ("webhook", Mode::Webhook)];

fn read(section: &Section<'_>) -> Option<Platform> {
    section.later(&["drafts", "rich_messages"]);
    let token = section.secret("bot_token").required("@BotFather gives one; or set `enabled: false`");
    let api_url = section.url("api_url").or(Url::parse("https://api.telegram.org").ok()?);
    let mode = section.choice("mode", MODES).or(Mode::Polling);
    let webhook = webhook(&section.section("webhook").needed(mode == Mode::Webhook));
    let require_mention = section.flag("require_mention").or(true);
    let transport = match mode {
        Mode::Polling => Transport::Polling,
        Mode::Webhook => webhook?,
    };
    Some(Platform::Telegram(Telegram { token: token?, api_url, transport, require_mention }))
}

fn webhook(section: &Section<'_>) -> Option<Transport> {
    let told = "write the public https:// address that leads to pudu's gateway";
    let url = section.url("url").required(told);
    let secret_token = section.secret("secret_token").required("choose 1 to 256 letters, digits, `_` or `-`");
    let (url, secret_token) = (url?, secret_token?);
    if url.scheme() != "https" && !is_local(&url) {
        section.refuse("url", "Telegram delivers only to https:// addresses", told);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=256).contains(&secret_token.expose_secret().len())
        || !secret_token.expose_secret().chars().all(plain)
    {
        let mend = "use 1 to 256 letters, digits, `_` or `-`";
        section.refuse("secret_token", "Telegram does not accept this secret", mend);
    }
    Some(Transport::Webhook { url, secret_token })
}

fn id(value: &Value) -> Result<String, String> {
    let id = match value {
        Value::Int(id) => i64::try_from(*id).ok(),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let id = id.map(|id: i64| id.to_string());
    id.ok_or_else(|| "write ids: a name can change hands, and whoever has it then would be let in".to_owned())
}
