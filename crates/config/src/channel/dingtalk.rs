//! An app with its robot on DingTalk.

use super::{
    super::{quantity::NumberUnit, raw::NodeValue, reader::Section},
    GroupHistory, Menu, Platform, PlatformReader, context,
};
use pudu_channels::{
    Channel, ChannelError,
    dingtalk::{self, CardStyle, DingTalkConfig, GroupConversations},
};
use secrecy::SecretString;
use std::{sync::Arc, time::Duration};
use url::Url;

/// Platform settings of a DingTalk bot: the channel's configuration without the name.
#[derive(Debug)]
struct DingTalkAccountConfig(DingTalkConfig);

impl Platform for DingTalkAccountConfig {
    fn name(&self) -> &'static str {
        READER.name
    }

    fn transport(&self) -> &'static str {
        "stream"
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.0.client_secret]
    }

    // DingTalk has no menu of commands.
    fn channel(&self, account: &str, _menu: Menu) -> Result<Arc<dyn Channel>, ChannelError> {
        let config = DingTalkConfig { account: account.to_owned(), ..self.0.clone() };
        Ok(Arc::new(dingtalk::DingTalkChannel::new(config)?))
    }
}

/// Reader of DingTalk bots.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "dingtalk",
    credentials: &["client_id", "client_secret"],
    read,
    user: id,
    chat: id,
    ids: "ids",
    about: "An app with its robot on DingTalk, in Stream mode.",
    history: GroupHistory::ChatBuffer,
};

const CONVERSATIONS: &[(&str, GroupConversations)] =
    &[("group", GroupConversations::Group), ("user", GroupConversations::User)];

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let console = "copy it from the app's page in DingTalk's console; or set `enabled: false`";
    let (api, oapi) = (Url::parse(dingtalk::API_URL).ok()?, Url::parse(dingtalk::OAPI_URL).ok()?);
    settings! { section =>
        /// Client ID of the app.
        client_id = text().eg("dingxxxxxxxxxxxxxxxx").required(console);
        /// Client Secret of the app.
        client_secret = secret().eg("$DINGTALK_CLIENT_SECRET").required(console);
        /// Code of the robot, if it differs from the client id.
        robot_code = text().eg("dingxxxxxxxxxxxxxxxx").optional("the client id");
        /// Id of the AI card template in which answers grow; without it answers are ordinary messages, sent whole at the
        /// end.
        template as "card_template_id" = text().eg("00000000-0000-0000-0000-000000000000.schema")
            .optional("none: answers are ordinary messages");
        /// Markdown variable of the template.
        content_key as "card_content_key" = text().or("content".to_owned());
        /// Variable of the template for buttons; without it choices are a numbered list.
        buttons_key as "card_buttons_key" = text().eg("buttons").optional("none: choices are a numbered list");
        /// Interval between changes of a growing answer, in milliseconds; each change is one of the month's 10,000 calls.
        stream_interval as "stream_interval_ms" = span(NumberUnit::Milliseconds, 200..=60_000)
            .or(Duration::from_millis(800));
        /// Conversations in a group: one for all (group) or one for each person (user).
        group_conversations = choice(CONVERSATIONS).or(GroupConversations::Group);
        /// Base URL of the API.
        api_url = url().or(api);
        /// Base URL of the older API, which takes uploads.
        oapi_url = url().or(oapi);
    }
    let client_id = client_id?;
    Some(Arc::new(DingTalkAccountConfig(DingTalkConfig {
        account: String::new(),
        robot_code: robot_code.unwrap_or_else(|| client_id.clone()),
        client_id,
        client_secret: client_secret?,
        api_url,
        oapi_url,
        card: template.map(|template| CardStyle { template, content_key, buttons_key }),
        stream_interval,
        group_conversations,
        reads_groups: context::is_wanted(section),
    })))
}

/// Parses an id. Ids are texts, but those without letters may be typed as numbers.
fn id(value: &NodeValue) -> Result<String, String> {
    match value {
        NodeValue::Text(text) if !text.trim().is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.trim().to_owned())
        }
        NodeValue::Int(number) => Ok(number.to_string()),
        _ => Err("write staff ids (userId in DingTalk's address book), in quotes".to_owned()),
    }
}
