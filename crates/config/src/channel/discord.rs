//! A bot on Discord.

use super::{
    super::{raw::NodeValue, reader::Section},
    GroupHistory, Menu, Platform, PlatformReader,
};
use pudu_channels::{
    Channel, ChannelError,
    discord::{self, DiscordConfig, ListenRules},
};
use secrecy::SecretString;
use std::{collections::BTreeSet, sync::Arc};
use url::Url;

/// Platform settings of a Discord account: the channel's own configuration but for name and menu.
#[derive(Debug)]
struct DiscordAccountConfig(DiscordConfig);

impl Platform for DiscordAccountConfig {
    fn name(&self) -> &'static str {
        READER.name
    }

    fn transport(&self) -> &'static str {
        "websocket"
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.0.bot_token]
    }

    fn is_public(&self) -> bool {
        self.0.rules.guilds.is_none()
    }

    fn channel(&self, account: &str, menu: Menu) -> Result<Arc<dyn Channel>, ChannelError> {
        let config = DiscordConfig { account: account.to_owned(), commands: menu, ..self.0.clone() };
        Ok(Arc::new(discord::DiscordChannel::new(config)?))
    }
}

/// How its accounts are read.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "discord",
    credentials: &["bot_token"],
    read,
    user: id,
    chat: id,
    ids: "ids of 17 to 20 digits",
    history: GroupHistory::Platform,
};

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let told = "https://discord.com/developers/applications gives one, \"Bot\"; or set `enabled: false`";
    let bot_token = section.secret("bot_token").required(told);
    let api_url = section.url("api_url").or(Url::parse(discord::API_URL).ok()?);
    let mention_only = section.flag("mention_only").optional("as `require_mention`");
    let require_mention =
        section.flag("require_mention").or_told(mention_only.unwrap_or(true), "`mention_only`, else true");
    let threads =
        section.flag("thread_mode").or_told(mention_only.unwrap_or(false), "`mention_only`, else false");
    let guilds = ids(section, "allowed_guilds", "all, and private messages");
    let open_channels = ids(section, "allowed_channels", "none");
    let guilds = (!guilds.is_empty()).then_some(guilds);
    let rules = ListenRules { guilds, require_mention, open_channels, threads };
    let (account, commands) = (String::new(), Vec::new());
    Some(Arc::new(DiscordAccountConfig(DiscordConfig {
        account,
        bot_token: bot_token?,
        api_url,
        rules,
        commands,
    })))
}

fn ids(section: &Section<'_>, key: &str, told: &str) -> BTreeSet<String> {
    let show = |ids: &Vec<String>| ids.join(", ");
    section.list(key, READER.ids, show, id).or_told(Vec::new(), told).into_iter().collect()
}

fn id(value: &NodeValue) -> Result<String, String> {
    let id = match value {
        NodeValue::Int(id) => u64::try_from(*id).ok(),
        NodeValue::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let id = id.map(|id: u64| id.to_string());
    id.ok_or_else(|| {
        "write ids (in Discord: Settings, Advanced, Developer Mode; then right-click, \"Copy ID\"): a name can \
         change hands, and whoever has it then would be let in"
            .to_owned()
    })
}
