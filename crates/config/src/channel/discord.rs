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

/// Platform settings of a Discord bot: the channel's configuration without name and menu.
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

/// Reader of Discord bots.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "discord",
    credentials: &["bot_token"],
    read,
    user: id,
    chat: id,
    ids: "ids of 17 to 20 digits",
    about: "A bot on Discord. Its name is its key; a second bot is a second entry with `type: discord`.",
    history: GroupHistory::Platform,
};

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let help = "copy it from https://discord.com/developers/applications, \"Bot\"; or set `enabled: false`";
    let usual = Url::parse(discord::API_URL).ok()?;
    settings! { section =>
        /// Bot token, from "Bot" of the application.
        bot_token = secret().eg("$DISCORD_BOT_TOKEN").required(help);
        /// Base URL of the API, without its version.
        api_url = url().or(usual);
        /// DeerFlow's name for `require_mention`, which overrides it.
        mention_only = flag().eg("true").optional("same as `require_mention`");
        /// Restricts answers in channels to messages that mention the bot or reply to it, and to threads that it began.
        require_mention = flag().eg("true").or_described(mention_only.unwrap_or(true), "`mention_only`, else true");
        /// Starts a new thread for each question in a channel.
        threads as "thread_mode" = flag().eg("false")
            .or_described(mention_only.unwrap_or(false), "`mention_only`, else false");
        /// Ids of the servers in which the bot reads messages. An empty list admits all servers and private messages; with
        /// a list, private messages are ignored.
        guilds as "allowed_guilds": BTreeSet<String> = list(READER.ids, id)
            .or_described(Vec::new(), "all, and private messages").into_iter().collect();
        /// Ids of the channels in which the bot answers without a mention.
        open_channels as "allowed_channels" = list(READER.ids, id)
            .or_described(Vec::new(), "none").into_iter().collect();
    }
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

fn id(value: &NodeValue) -> Result<String, String> {
    let id = match value {
        NodeValue::Int(id) => u64::try_from(*id).ok(),
        NodeValue::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    let id = id.map(|id: u64| id.to_string());
    id.ok_or_else(|| {
        "write ids (in Discord: Settings, Advanced, Developer Mode; then right-click, \"Copy ID\"): a name can change \
         hands, and its next owner would be admitted"
            .to_owned()
    })
}
