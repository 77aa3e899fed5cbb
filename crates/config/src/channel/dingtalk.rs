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

/// Platform settings of a DingTalk account: the channel's own configuration but for the name.
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

/// How its accounts are read.
pub(super) const READER: PlatformReader = PlatformReader {
    name: "dingtalk",
    credentials: &["client_id", "client_secret"],
    read,
    user: id,
    chat: id,
    ids: "ids",
    history: GroupHistory::ChatBuffer,
};

const CONVERSATIONS: &[(&str, GroupConversations)] =
    &[("group", GroupConversations::Group), ("user", GroupConversations::User)];

fn read(section: &Section<'_>) -> Option<Arc<dyn Platform>> {
    let console = "copy it from the app's page in DingTalk's console; or set `enabled: false`";
    let client_id = section.text("client_id").required(console);
    let client_secret = section.secret("client_secret").required(console);
    let api_url = section.url("api_url").or(Url::parse(dingtalk::API_URL).ok()?);
    let oapi_url = section.url("oapi_url").or(Url::parse(dingtalk::OAPI_URL).ok()?);
    let robot_code = section.text("robot_code").optional("the client id");
    let card = card(section);
    let interval = section.amount("stream_interval_ms", NumberUnit::Milliseconds, 200..=60_000_u64).or(800);
    let group_conversations =
        section.choice("group_conversations", CONVERSATIONS).or(GroupConversations::Group);
    let client_id = client_id?;
    Some(Arc::new(DingTalkAccountConfig(DingTalkConfig {
        account: String::new(),
        robot_code: robot_code.unwrap_or_else(|| client_id.clone()),
        client_id,
        client_secret: client_secret?,
        api_url,
        oapi_url,
        card,
        stream_interval: Duration::from_millis(interval),
        group_conversations,
        reads_groups: context::is_wanted(section),
    })))
}

fn card(section: &Section<'_>) -> Option<CardStyle> {
    let template = section.text("card_template_id").optional("none: answers are ordinary messages");
    let content_key = section.text("card_content_key").or("content".to_owned());
    let buttons_key = section.text("card_buttons_key").optional("none: choices are a numbered list");
    Some(CardStyle { template: template?, content_key, buttons_key })
}

/// Ids are texts; one without a letter may have been typed as a number.
fn id(value: &NodeValue) -> Result<String, String> {
    match value {
        NodeValue::Text(text) if !text.trim().is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.trim().to_owned())
        }
        NodeValue::Int(number) => Ok(number.to_string()),
        _ => Err("write staff ids (userId in DingTalk's address book), in quotes".to_owned()),
    }
}
