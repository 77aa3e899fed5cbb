//! Calls that create, deliver, stream into, and change one card.

use super::{
    api::DingTalkApi,
    facts::{DingTalkCase, DingTalkError},
    page::{DingTalkPage, digest},
    robot::RobotTarget,
};
use crate::transport::CallError;
use pudu_net::reqwest::Method;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Delays before an idempotent call is repeated.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(300), Duration::from_millis(1200)];
/// Longest wait requested by DingTalk before a call is retried. A longer one makes the call fail.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Template of the cards, and its variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardStyle {
    /// Template id from DingTalk's card platform.
    pub template: String,
    /// Name of the template's Markdown variable.
    pub content_key: String,
    /// Name of the template's variable for buttons, if it has one.
    pub buttons_key: Option<String>,
}

/// A card, identified by its name alone.
pub(super) struct DingTalkCard<'a> {
    pub(super) api: &'a DingTalkApi,
    pub(super) style: &'a CardStyle,
    pub(super) robot_code: &'a str,
    /// The `outTrackId`. Creating a card with an existing name does not create a second card.
    pub(super) name: &'a str,
}

impl DingTalkCard<'_> {
    /// Creates the card in a chat. HTTP 200 does not mean that the card is visible to a user.
    pub(super) async fn make(&self, target: &RobotTarget, page: &DingTalkPage) -> Result<(), DingTalkError> {
        let mut body = json!({
            "cardTemplateId": self.style.template,
            "outTrackId": self.name,
            "callbackType": "STREAM",
            "cardData": {"cardParamMap": self.values(page)},
            "imGroupOpenSpaceModel": {"supportForward": true},
            "imRobotOpenSpaceModel": {"supportForward": true},
            "userIdType": 1,
        });
        match target {
            RobotTarget::Group(group) => {
                body["openSpaceId"] = format!("dtv1.card//IM_GROUP.{group}").into();
                body["imGroupOpenDeliverModel"] = json!({"robotCode": self.robot_code});
            }
            RobotTarget::Person(staff) => {
                body["openSpaceId"] = format!("dtv1.card//IM_ROBOT.{staff}").into();
                body["imRobotOpenDeliverModel"] =
                    json!({"spaceType": "IM_ROBOT", "robotCode": self.robot_code});
            }
            RobotTarget::Session => {
                return Err(CallError::Refused("this user cannot receive cards".to_owned()));
            }
        }
        let answer = self.call(Method::POST, "/v1.0/card/instances/createAndDeliver", &body).await?;
        delivered(&answer)
    }

    /// Creates the card without delivering it.
    pub(super) async fn make_unseen(&self) -> Result<(), DingTalkError> {
        let body = json!({
            "cardTemplateId": self.style.template, "outTrackId": self.name, "callbackType": "STREAM",
            "cardData": {"cardParamMap": {}},
        });
        self.call(Method::POST, "/v1.0/card/instances", &body).await.map(drop)
    }

    /// Tests the template with a card that is not delivered.
    pub(super) async fn probe(&self) -> Result<(), DingTalkError> {
        self.make_unseen().await?;
        self.stream("pudu", true, 0).await
    }

    /// Replaces the shown page. A repeated change is applied once: its id is derived from its content and number.
    pub(super) async fn stream(&self, text: &str, finish: bool, nth: u32) -> Result<(), DingTalkError> {
        let guid = digest(&[self.name, &nth.to_string(), text, if finish { "end" } else { "" }]);
        let body = json!({
            "outTrackId": self.name, "guid": guid, "key": self.style.content_key, "content": text,
            // A Markdown variable accepts only complete content.
            "isFull": true, "isFinalize": finish, "isError": false,
        });
        self.call(Method::PUT, "/v1.0/card/streaming", &body).await.map(drop).map_err(|error| match error {
            CallError::Special(DingTalkCase::Strange(why)) => {
                CallError::Special(DingTalkCase::Strange(format!(
                    "the template has no Markdown variable `{}`, or its streaming is off: {why}",
                    self.style.content_key
                )))
            }
            error => error,
        })
    }

    /// Changes the buttons, if the template has any.
    pub(super) async fn set_buttons(&self, page: &DingTalkPage) -> Result<(), DingTalkError> {
        let Some(key) = &self.style.buttons_key else { return Ok(()) };
        self.put(Map::from_iter([(key.clone(), page.buttons().into())])).await
    }

    /// Replaces the text and the buttons of a finished card.
    pub(super) async fn replace(&self, page: &DingTalkPage) -> Result<(), DingTalkError> {
        let mut values = self.values(page);
        values.insert("flowStatus".to_owned(), "3".into());
        self.put(values).await
    }

    async fn put(&self, values: Map<String, Value>) -> Result<(), DingTalkError> {
        let body = json!({
            "outTrackId": self.name, "cardData": {"cardParamMap": values},
            "cardUpdateOptions": {"updateCardDataByKey": true},
        });
        self.call(Method::PUT, "/v1.0/card/instances", &body).await.map(drop)
    }

    /// Makes an idempotent call, and retries it after a temporary failure. If the call fails but any attempt may have
    /// succeeded, the outcome is unknown, even if the last attempt certainly failed.
    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, DingTalkError> {
        let mut lost = None;
        let mut result = self.api.call(method.clone(), path, body).await;
        for pause in RETRY_DELAYS {
            match &result {
                Err(failure @ CallError::Unknown(_)) => {
                    lost = Some(failure.clone());
                    sleep(pause).await;
                }
                Err(CallError::Unconnected(_)) => sleep(pause).await,
                Err(CallError::Wait(wait)) if *wait <= SHORT_WAIT => sleep(*wait).await,
                _ => break,
            }
            result = self.api.call(method.clone(), path, body).await;
        }
        result.and_then(succeeded).map_err(|failure| lost.unwrap_or(failure))
    }

    /// Returns the template's variables. All values are strings.
    fn values(&self, page: &DingTalkPage) -> Map<String, Value> {
        let mut values = Map::from_iter([(self.style.content_key.clone(), self.text(page).into())]);
        if let Some(key) = &self.style.buttons_key {
            values.insert(key.clone(), page.buttons().into());
        }
        values
    }

    /// Returns the text. It lists the choices if the template has no buttons.
    pub(super) fn text(&self, page: &DingTalkPage) -> String {
        if self.style.buttons_key.is_some() { page.text.clone() } else { page.words.clone() }
    }
}

/// Checks the results in the body: HTTP 200 does not mean success.
fn succeeded(answer: Value) -> Result<Value, DingTalkError> {
    if answer["success"] != false {
        return Ok(answer);
    }
    let why: String = answer["errorMsg"].as_str().unwrap_or("no reason given").chars().take(300).collect();
    Err(CallError::Refused(format!("DingTalk rejected the change of the card: {why}")))
}

fn delivered(answer: &Value) -> Result<(), DingTalkError> {
    let results = answer["result"]["deliverResults"].as_array().map(Vec::as_slice).unwrap_or_default();
    let failed = results.iter().find(|result| result["success"] == false);
    match failed {
        Some(result) => {
            let why: String = result["errorMsg"].as_str().unwrap_or_default().chars().take(300).collect();
            Err(CallError::Refused(format!("the card was not delivered: {why}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dingtalk::loopback::{DingTalkLoopback, failure};

    #[test]
    fn http_200_can_mean_that_the_card_was_not_delivered() {
        let answer = |results: Value| json!({"success": true, "result": {"deliverResults": results}});
        assert_eq!(delivered(&answer(json!([{"success": true}]))), Ok(()));
        assert_eq!(delivered(&answer(json!([]))), Ok(()));
        assert_eq!(delivered(&json!({})), Ok(()));
        assert!(succeeded(json!({"success": true})).is_ok() && succeeded(json!({})).is_ok());
        assert!(matches!(succeeded(json!({"success": false})), Err(CallError::Refused(_))));
        let failed = delivered(&answer(json!([{"success": false, "errorMsg": "spaceId is illegal"}])));
        assert_eq!(failed, Err(CallError::Refused("the card was not delivered: spaceId is illegal".into())));
    }

    #[tokio::test]
    async fn an_unknown_outcome_stays_unknown_after_a_failed_retry() {
        let check = async |answers: [&'static str; 3], expected: fn(&DingTalkError) -> bool| {
            let mut answers = answers.into_iter();
            let server = DingTalkLoopback::start(move |path, _| match path {
                "/v1.0/card/streaming" => answers.next().map_or((200, json!({})), failure),
                _ => (200, json!({})),
            })
            .await;
            let state = server.state(true);
            let style = state.style.as_ref().unwrap();
            let card = DingTalkCard { api: &state.api, style, robot_code: "r", name: "p-k-s" };
            let result = card.stream("words", false, 1).await;
            assert!(result.as_ref().is_err_and(expected), "{result:?}");
        };
        let unknown = |failure: &DingTalkError| matches!(failure, CallError::Unknown(_));
        let wait = |failure: &DingTalkError| matches!(failure, CallError::Wait(_));
        let refused = |failure: &DingTalkError| matches!(failure, CallError::Refused(_));
        tokio::join!(
            check(["InternalError", "QpsLimit", "QpsLimit"], unknown),
            check(["InternalError", "invalidParameter", ""], unknown),
            check(["QpsLimit", "QpsLimit", "QpsLimit"], wait),
            check(["QpsLimit", "invalidParameter", ""], refused),
        );
    }
}
