//! Sends ordinary messages: to a user, to a group, or to the session URL of one message.

use super::{
    api::DingTalkApi,
    decode::DingTalkHint,
    facts::{DingTalkCase, DingTalkError},
};
use crate::{clock::now, transport::CallError};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use url::Url;

/// Wait after DingTalk reports too many messages to a user.
const FLOODED: Duration = Duration::from_secs(5);
/// Key that no message has.
const NOTHING: &str = "pudu-asks-whether-messages-are-taken-back";
/// A session URL is not used within this time before its expiry, in milliseconds.
const SESSION_RESERVE: i64 = 60_000;

/// Recipient of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RobotTarget {
    /// A user of the organisation, by staff id.
    Person(String),
    /// A group, by conversation id.
    Group(String),
    /// A user who is reachable only through the session URL of their message.
    Session,
}

/// Content of an outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RobotContent {
    /// Markdown text.
    Markdown { title: String, text: String },
    /// An uploaded picture, by media id.
    Picture(String),
    /// An uploaded file: media id, name and extension.
    File(String, String, String),
}

impl RobotContent {
    fn key(&self) -> &'static str {
        match self {
            Self::Markdown { .. } => "sampleMarkdown",
            Self::Picture(_) => "sampleImageMsg",
            Self::File(..) => "sampleFile",
        }
    }

    fn param(&self) -> Value {
        match self {
            Self::Markdown { title, text } => json!({"title": title, "text": text}),
            Self::Picture(id) => json!({"photoURL": id}),
            Self::File(id, name, ending) => json!({"mediaId": id, "fileName": name, "fileType": ending}),
        }
    }
}

/// Sends messages of one robot to one chat.
pub(super) struct Robot {
    pub(super) api: Arc<DingTalkApi>,
    pub(super) code: String,
    pub(super) target: RobotTarget,
    pub(super) hint: DingTalkHint,
}

impl Robot {
    /// Sends a message that can be recalled. Returns the key for the recall.
    pub(super) async fn send_retrievable(&self, content: &RobotContent) -> Result<String, DingTalkError> {
        match &self.target {
            RobotTarget::Person(staff) => self.to_person(staff, content).await,
            RobotTarget::Group(group) => self.to_group(group, content).await,
            RobotTarget::Session => Err(CallError::Refused("the user is not in the organisation".to_owned())),
        }
    }

    /// Sends a message. Returns the key for recalling it; empty if there is none.
    pub(super) async fn send(&self, content: &RobotContent) -> Result<String, DingTalkError> {
        match self.send_retrievable(content).await {
            // The message's session URL needs no permission and does not use up the call quota.
            Err(error @ (CallError::Special(DingTalkCase::Forbidden(_)) | CallError::Refused(_))) => {
                match self.session() {
                    Some(url) => {
                        tracing::debug!(%error, "sending answer to the message's session URL");
                        self.to_session(url, content).await
                    }
                    None => Err(error),
                }
            }
            result => result,
        }
    }

    async fn to_person(&self, staff: &str, content: &RobotContent) -> Result<String, DingTalkError> {
        let mut body = self.body(content);
        body["userIds"] = json!([staff]);
        let answer = self.api.post("/v1.0/robot/oToMessages/batchSend", &body).await?;
        arrived(&answer)?;
        Ok(key(&answer))
    }

    async fn to_group(&self, group: &str, content: &RobotContent) -> Result<String, DingTalkError> {
        let mut body = self.body(content);
        body["openConversationId"] = group.into();
        let answer = self.api.post("/v1.0/robot/groupMessages/send", &body).await?;
        Ok(key(&answer))
    }

    async fn to_session(&self, url: Url, content: &RobotContent) -> Result<String, DingTalkError> {
        let RobotContent::Markdown { title, text } = content else {
            return Err(CallError::Refused(
                "the robot may not send here, and the message's session URL does not accept files".to_owned(),
            ));
        };
        // `at` is left out, so no user is mentioned.
        let body = json!({"msgtype": "markdown", "markdown": {"title": title, "text": text}});
        self.api.post_session(url, &body).await?;
        Ok(String::new())
    }

    /// Recalls a message.
    pub(super) async fn recall(&self, key: &str) -> Result<(), DingTalkError> {
        let mut body = json!({"robotCode": self.code, "processQueryKeys": [key]});
        let path = match &self.target {
            RobotTarget::Person(_) => "/v1.0/robot/otoMessages/batchRecall",
            RobotTarget::Group(group) => {
                body["openConversationId"] = group.as_str().into();
                "/v1.0/robot/groupMessages/recall"
            }
            RobotTarget::Session => return Ok(()),
        };
        let answer = self.api.call(Method::POST, path, &body).await?;
        match answer["failedResult"].get(key) {
            // HTTP 200 does not mean that the message was recalled.
            Some(why) => Err(CallError::Refused(format!("the message cannot be recalled back: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns whether messages can be recalled in this chat, determined by recalling one that does not exist; `None`
    /// if that cannot be determined now.
    pub(super) async fn supports_recall(&self) -> Option<bool> {
        match self.recall(NOTHING).await {
            Ok(()) | Err(CallError::Refused(_)) => Some(true),
            Err(CallError::Special(DingTalkCase::Forbidden(_))) => Some(false),
            Err(_) => None,
        }
    }

    /// Returns the message's session URL while it is valid. It is untrusted: only DingTalk's hosts are accepted.
    fn session(&self) -> Option<Url> {
        let url = Url::parse(&self.hint.session).ok()?;
        let ours = [&self.api.oapi_url, &self.api.api_url].iter().any(|base| base.origin() == url.origin());
        (ours && self.hint.until - SESSION_RESERVE > now()).then_some(url)
    }

    fn body(&self, content: &RobotContent) -> Value {
        json!({"robotCode": self.code, "msgKey": content.key(), "msgParam": content.param().to_string()})
    }
}

fn key(answer: &Value) -> String {
    answer["processQueryKey"].as_str().unwrap_or_default().to_owned()
}

/// Checks the results in the body: HTTP 200 does not mean that the user received the message.
fn arrived(answer: &Value) -> Result<(), DingTalkError> {
    let names = |name: &str| answer[name].as_array().is_some_and(|people| !people.is_empty());
    if names("flowControlledStaffIdList") {
        return Err(CallError::Special(DingTalkCase::Flooded(FLOODED)));
    }
    if names("invalidStaffIdList") {
        return Err(CallError::Refused(
            "DingTalk does not know this user's staff id, or the user is outside the robot's scope"
                .to_owned(),
        ));
    }
    if names("filteredStaffIdList") {
        return Err(CallError::Refused("DingTalk blocks the robot's messages to this user".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_200_can_list_users_who_did_not_get_the_message() {
        let check =
            |answer: Value, expected: Option<DingTalkError>| assert_eq!(arrived(&answer).err(), expected);
        check(json!({"processQueryKey": "k"}), None);
        check(json!({"processQueryKey": "k", "invalidStaffIdList": []}), None);
        check(
            json!({"flowControlledStaffIdList": ["a"]}),
            Some(CallError::Special(DingTalkCase::Flooded(FLOODED))),
        );
        assert!(matches!(arrived(&json!({"invalidStaffIdList": ["a"]})), Err(CallError::Refused(_))));
        assert!(matches!(arrived(&json!({"filteredStaffIdList": ["a"]})), Err(CallError::Refused(_))));
    }

    #[test]
    fn session_urls_are_used_only_on_known_hosts_and_before_expiry() {
        let api = DingTalkApi::new(
            "id".into(),
            "secret".into(),
            Url::parse("https://api.dingtalk.com").unwrap(),
            Url::parse("https://oapi.dingtalk.com").unwrap(),
        );
        let api = Arc::new(api.unwrap());
        let check = |session: &str, until: i64, good: bool| {
            let hint = DingTalkHint { staff: false, session: session.into(), until };
            let robot = Robot { api: Arc::clone(&api), code: "r".into(), target: RobotTarget::Session, hint };
            assert_eq!(robot.session().is_some(), good, "{session}");
        };
        let later = now() + 3_600_000;
        check("https://oapi.dingtalk.com/robot/sendBySession?session=x", later, true);
        check("https://oapi.dingtalk.com/robot/sendBySession?session=x", now() + 1000, false);
        check("http://oapi.dingtalk.com/robot/sendBySession?session=x", later, false);
        check("https://oapi.dingtalk.com:8443/robot/sendBySession?session=x", later, false);
        check("https://oapi.dingtalk.com.evil.example/robot/sendBySession", later, false);
        check("https://oapi.dingtalk.com@evil.example/", later, false);
        check("http://169.254.169.254/latest/meta-data", later, false);
        check("", later, false);
    }
}
