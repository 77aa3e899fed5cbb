//! Ordinary messages: to a person, to a group, or to the address that one message came with.

use super::{
    api::DingTalkApi,
    decode::DingTalkHint,
    failure::{DingTalkCase, DingTalkError},
};
use crate::{clock::now, transport::CallError};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use url::Url;

/// A person gets too many messages at the moment.
const FLOODED: Duration = Duration::from_secs(5);
/// A key that no message has.
const NOTHING: &str = "pudu-asks-whether-messages-are-taken-back";
/// A session's address is not used so shortly before its end, in milliseconds.
const SESSION_RESERVE: i64 = 60_000;

/// Recipient of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RobotTarget {
    /// A person of the organisation, by staff id.
    Person(String),
    /// A group, by conversation id.
    Group(String),
    /// A person who is reachable only through the address of their message.
    Session,
}

/// Content of an outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RobotContent {
    /// Words.
    Markdown { title: String, text: String },
    /// A picture that was uploaded.
    Picture(String),
    /// A file that was uploaded: media id, name and ending.
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

/// Sends as one robot to one chat.
pub(super) struct Robot {
    pub(super) code: String,
    pub(super) target: RobotTarget,
    pub(super) hint: DingTalkHint,
}

impl Robot {
    /// Sends something that can be taken back; returns the key for that.
    pub(super) async fn send_retrievable(
        &self,
        api: &DingTalkApi,
        content: &RobotContent,
    ) -> Result<String, DingTalkError> {
        match &self.target {
            RobotTarget::Person(staff) => self.to_person(api, staff, content).await,
            RobotTarget::Group(group) => self.to_group(api, group, content).await,
            RobotTarget::Session => {
                Err(CallError::Refused("the person is not in the organisation".to_owned()))
            }
        }
    }

    /// Sends something; returns the key by which it can be taken back, empty where there is none.
    pub(super) async fn send(
        &self,
        api: &DingTalkApi,
        content: &RobotContent,
    ) -> Result<String, DingTalkError> {
        match self.send_retrievable(api, content).await {
            // The message's own address needs no permission and counts no calls.
            Err(error @ (CallError::Special(DingTalkCase::Forbidden(_)) | CallError::Refused(_))) => {
                match self.session(api) {
                    Some(url) => {
                        tracing::debug!(%error, "sending answer to the message's own address");
                        self.to_session(api, url, content).await
                    }
                    None => Err(error),
                }
            }
            result => result,
        }
    }

    async fn to_person(
        &self,
        api: &DingTalkApi,
        staff: &str,
        content: &RobotContent,
    ) -> Result<String, DingTalkError> {
        let mut body = self.body(content);
        body["userIds"] = json!([staff]);
        let answer = api.post("/v1.0/robot/oToMessages/batchSend", &body).await?;
        arrived(&answer)?;
        Ok(key(&answer))
    }

    async fn to_group(
        &self,
        api: &DingTalkApi,
        group: &str,
        content: &RobotContent,
    ) -> Result<String, DingTalkError> {
        let mut body = self.body(content);
        body["openConversationId"] = group.into();
        let answer = api.post("/v1.0/robot/groupMessages/send", &body).await?;
        Ok(key(&answer))
    }

    async fn to_session(
        &self,
        api: &DingTalkApi,
        url: Url,
        content: &RobotContent,
    ) -> Result<String, DingTalkError> {
        let RobotContent::Markdown { title, text } = content else {
            return Err(CallError::Refused(
                "DingTalk takes no files where it lets the robot send no messages".to_owned(),
            ));
        };
        // No person is mentioned: `at` is left out.
        let body = json!({"msgtype": "markdown", "markdown": {"title": title, "text": text}});
        api.post_session(url, &body).await?;
        Ok(String::new())
    }

    /// Takes a message back.
    pub(super) async fn recall(&self, api: &DingTalkApi, key: &str) -> Result<(), DingTalkError> {
        let mut body = json!({"robotCode": self.code, "processQueryKeys": [key]});
        let path = match &self.target {
            RobotTarget::Person(_) => "/v1.0/robot/otoMessages/batchRecall",
            RobotTarget::Group(group) => {
                body["openConversationId"] = group.as_str().into();
                "/v1.0/robot/groupMessages/recall"
            }
            RobotTarget::Session => return Ok(()),
        };
        let answer = api.call(Method::POST, path, &body).await?;
        match answer["failedResult"].get(key) {
            // HTTP 200 does not mean that it is gone.
            Some(why) => Err(CallError::Refused(format!("the message is not taken back: {why}"))),
            None => Ok(()),
        }
    }

    /// Returns whether messages can be taken back here, by recalling one that does not exist; `None` where
    /// that cannot be determined now.
    pub(super) async fn takes_back(&self, api: &DingTalkApi) -> Option<bool> {
        match self.recall(api, NOTHING).await {
            Ok(()) | Err(CallError::Refused(_)) => Some(true),
            Err(CallError::Special(DingTalkCase::Forbidden(_))) => Some(false),
            Err(_) => None,
        }
    }

    /// The message's own address, while it is good. It came from outside: only our hosts get an answer.
    fn session(&self, api: &DingTalkApi) -> Option<Url> {
        let url = Url::parse(&self.hint.session).ok()?;
        let ours = [&api.oapi_url, &api.api_url].iter().any(|base| base.origin() == url.origin());
        (ours && self.hint.until - SESSION_RESERVE > now()).then_some(url)
    }

    fn body(&self, content: &RobotContent) -> Value {
        json!({"robotCode": self.code, "msgKey": content.key(), "msgParam": content.param().to_string()})
    }
}

fn key(answer: &Value) -> String {
    answer["processQueryKey"].as_str().unwrap_or_default().to_owned()
}

/// HTTP 200 does not mean that the one person got it.
fn arrived(answer: &Value) -> Result<(), DingTalkError> {
    let names = |name: &str| answer[name].as_array().is_some_and(|people| !people.is_empty());
    if names("flowControlledStaffIdList") {
        return Err(CallError::Special(DingTalkCase::Flooded(FLOODED)));
    }
    if names("invalidStaffIdList") {
        return Err(CallError::Refused(
            "DingTalk does not know this person's staff id, or it is not in the robot's scope".to_owned(),
        ));
    }
    if names("filteredStaffIdList") {
        return Err(CallError::Refused("DingTalk filters the robot's messages to this person".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_200_can_name_who_did_not_get_it() {
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
    fn only_our_hosts_get_an_answer_and_only_while_the_address_is_good() {
        let api = DingTalkApi::new(
            "id".into(),
            "secret".into(),
            Url::parse("https://api.dingtalk.com").unwrap(),
            Url::parse("https://oapi.dingtalk.com").unwrap(),
        )
        .unwrap();
        let check = |session: &str, until: i64, good: bool| {
            let hint = DingTalkHint { staff: false, session: session.into(), until };
            let robot = Robot { code: "r".into(), target: RobotTarget::Session, hint };
            assert_eq!(robot.session(&api).is_some(), good, "{session}");
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
