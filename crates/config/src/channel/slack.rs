//! A bot on Slack.

use super::{
    super::{raw::NodeValue, reader::Section},
    GroupHistory, Menu, Platform, PlatformReader,
};
use pudu_channels::{
    Channel, ChannelError,
    slack::{self, SlackConfig, SlackEventMode},
};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use url::Url;

/// Platform settings of a Slack bot: the channel's configuration without name and menu.
#[derive(Debug)]
struct SlackAccountConfig(SlackConfig);

impl Platform for SlackAccountConfig {
    fn name(&self) -> &'static str {
        READER.name
    }

    fn transport(&self) -> &'static str {
        match self.0.delivery {
            SlackEventMode::Socket { .. } => "websocket",
            SlackEventMode::Http { .. } => "webhook",
        }
    }

    fn secrets(&self) -> Vec<&SecretString> {
        let other = match &self.0.delivery {
            SlackEventMode::Socket { app_token } => app_token,
            SlackEventMode::Http { signing_secret } => signing_secret,
        };
        vec![&self.0.bot_token, other]
    }

    fn doubts(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let begins = |secret: &SecretString, with: &str| secret.expose_secret().starts_with(with);
        let mut doubts = Vec::new();
        let SlackConfig { bot_token, delivery, .. } = &self.0;
        if begins(bot_token, "xapp-") {
            doubts.push((
                "bot_token",
                "this is an app-level token (xapp-)",
                "swap it with `app_token`: a bot token begins with xoxb-",
            ));
        } else if !begins(bot_token, "xox") {
            doubts.push((
                "bot_token",
                "this does not look like a Slack bot token",
                "copy the Bot User OAuth Token, which begins with xoxb-",
            ));
        }
        if let SlackEventMode::Socket { app_token } = delivery {
            if begins(app_token, "xox") {
                doubts.push((
                    "app_token",
                    "this is a bot token",
                    "swap it with `bot_token`: an app-level token begins with xapp-",
                ));
            } else if !begins(app_token, "xapp-") {
                doubts.push((
                    "app_token",
                    "this does not look like a Slack app-level token",
                    "copy the one that begins with xapp-",
                ));
            }
        }
        doubts
    }

    fn channel(&self, account: &str, menu: Menu) -> Result<Arc<dyn Channel>, ChannelError> {
        let config = SlackConfig { account: account.to_owned(), commands: menu, ..self.0.clone() };
        Ok(Arc::new(slack::SlackChannel::new(config)?))
    }
}

/// Reader of Slack bots.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "slack",
    credentials: &["bot_token", "app_token"],
    read,
    user: id,
    chat: id,
    ids: "ids like U012ABCDEF",
    about: "A bot on Slack. Its name is its key; a second app is a second entry with `type: slack`.",
    history: GroupHistory::Platform,
};

/// Values of `event_delivery`: whether events are posted to the gateway.
const DELIVERIES: &[(&str, bool)] = &[("socket", false), ("http", true)];

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let apps = "https://api.slack.com/apps";
    let token_help =
        format!("the Bot User OAuth Token of {apps}, \"OAuth & Permissions\"; or set `enabled: false`");
    let usual = Url::parse(slack::API_URL).ok()?;
    let app = format!(
        "an app-level token (xapp-) with connections:write, created at {apps}, \"Basic Information\""
    );
    let signing =
        format!("the Signing Secret of {apps}, \"Basic Information\": without it anyone could post");
    settings! { section =>
        /// Bot User OAuth Token (xoxb-), from "OAuth & Permissions" of the app.
        bot_token = secret().eg("$SLACK_BOT_TOKEN").required(&token_help);
        /// Base URL of the Web API.
        api_url = url().or(usual);
        /// Delivery of events: socket (Socket Mode) or http (posted to pudu's gateway).
        posted as "event_delivery" = choice(DELIVERIES).or(false);
        /// App-level token (xapp-) with connections:write, for `event_delivery: socket`.
        app_token = secret().eg("$SLACK_APP_TOKEN").required_if(!posted, &app, "for `event_delivery: socket`");
        /// Signing Secret, for `event_delivery: http`.
        signing_secret = secret().eg("$SLACK_SIGNING_SECRET")
            .required_if(posted, &signing, "for `event_delivery: http`");
        /// User id of the bot, only compared with the id that Slack reports.
        bot_user_id = text().eg("U012ABCDEF").optional("reported by Slack");
        /// Restricts answers in channels to messages that mention the bot, and to threads in which it has spoken.
        require_mention = flag().or(true);
    }
    let delivery = if posted {
        SlackEventMode::Http { signing_secret: signing_secret? }
    } else {
        SlackEventMode::Socket { app_token: app_token? }
    };
    let (account, commands) = (String::new(), Vec::new());
    let bot_token = bot_token?;
    Some(Arc::new(SlackAccountConfig(SlackConfig {
        account,
        bot_token,
        api_url,
        delivery,
        require_mention,
        bot_user_id,
        commands,
    })))
}

/// Parses an id. Ids begin with a letter for their type and have no lower-case letters, unlike names.
fn id(value: &NodeValue) -> Result<String, String> {
    let text = if let NodeValue::Text(text) = value { text.trim() } else { "" };
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let fits = text.starts_with(['U', 'W', 'C', 'D', 'G']) && text.chars().all(plain);
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    if fits && has_digit {
        return Ok(text.to_owned());
    }
    let help = "write ids like U012ABCDEF (in Slack: a user's profile, ⋮, \"Copy member ID\"): a name can change \
                hands, and its next owner would be admitted";
    Err(help.to_owned())
}
