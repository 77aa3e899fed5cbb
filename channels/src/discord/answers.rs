//! Calls to Discord besides replies: acknowledging buttons and commands, and registering the commands.
//!
//! Discord waits only three seconds for an acknowledgement. These calls therefore run independently of the connection
//! that delivered the event.

use super::{DiscordChannel, account_state::ApiRoute, event_handler::EventResponse, facts::DiscordCase};
use crate::{ChatCommand, transport::CallError};
use futures_util::{StreamExt, stream::FuturesUnordered};
use pudu_net::reqwest::Method;
use pudu_texts::Language;
use serde_json::{Map, Value, json};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};

/// How long the "thinking…" message of a command stays if no reply begins.
const UNANSWERED: Duration = Duration::from_secs(15);
/// Maximum number of concurrent responses, and of queued ones.
pub(super) const MAX_CONCURRENT_RESPONSES: usize = 256;
/// Maximum length of a command's description, in characters.
const DESCRIPTION: usize = 100;

impl DiscordChannel {
    /// Handles event responses until the last sender of the queue is dropped.
    pub(super) async fn handle_responses(&self, mut responses: mpsc::Receiver<EventResponse>) {
        let registered = AtomicBool::new(false);
        let mut in_flight = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(response) = responses.recv(), if in_flight.len() < MAX_CONCURRENT_RESPONSES => {
                    in_flight.push(self.handle(response, &registered));
                }
                Some(()) = in_flight.next() => {}
                else => return,
            }
        }
    }

    async fn handle(&self, response: EventResponse, registered: &AtomicBool) {
        match response {
            EventResponse::Nothing => {}
            EventResponse::Register => self.register(registered).await,
            // Ends the button's pending state.
            EventResponse::Press { id, token } => {
                self.answer(&id, &token, &json!({"type": 6})).await;
            }
            EventResponse::Respond { id, token, body } => {
                self.answer(&id, &token, &body).await;
            }
            EventResponse::Command { id, token } => self.defer(id, token).await,
        }
    }

    /// Shows "thinking…", and deletes it if no reply begins.
    async fn defer(&self, id: String, token: String) {
        let state = &self.handler.state;
        let accepted = self.answer(&id, &token, &json!({"type": 5})).await;
        state.deferred.taken(&token, accepted);
        sleep(UNANSWERED).await;
        let (Some(me), false) = (state.me.get(), state.deferred.is_answered(&token) || !accepted) else {
            return;
        };
        let path = ["webhooks", &me.application, &token, "messages", "@original"];
        // Fails harmlessly if the message was already deleted.
        if let Err(error) = state.call::<Value>(ApiRoute::Delete, Method::DELETE, &path, &Value::Null).await {
            tracing::debug!(%error, "failed to remove placeholder of unanswered command");
        }
    }

    /// Answers an interaction. Returns whether Discord may have accepted this or an earlier answer.
    async fn answer(&self, id: &str, token: &str, body: &Value) -> bool {
        let path = ["interactions", id, token, "callback"];
        let mut may_be_accepted = false;
        for _ in 0..2 {
            match self.handler.state.call::<Value>(ApiRoute::Interaction, Method::POST, &path, body).await {
                Ok(_) | Err(CallError::Special(DiscordCase::Done(_))) => return true,
                // The outcome is unknown. Repeating the answer is harmless, and the reply will find out.
                Err(CallError::Unknown(_)) => may_be_accepted = true,
                Err(CallError::Unconnected(_)) => {}
                Err(error) => {
                    tracing::debug!(%error, may_be_accepted, "failed to answer interaction");
                    return may_be_accepted;
                }
            }
        }
        true
    }

    /// Registers the commands with Discord, once per process. Sending the same list again changes nothing.
    async fn register(&self, registered: &AtomicBool) {
        if self.config.commands.is_empty() || registered.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(me) = self.handler.state.me.get() else { return };
        let commands: Vec<Value> = self.config.commands.iter().map(command).collect();
        let path = ["applications", &me.application, "commands"];
        if let Err(error) = self
            .handler
            .state
            .call::<Value>(ApiRoute::Interaction, Method::PUT, &path, &commands.into())
            .await
        {
            tracing::warn!(%error, "failed to register commands; users can still type them");
            registered.store(false, Ordering::Relaxed);
        }
    }
}

fn command(ChatCommand { name, argument, help, translations }: &ChatCommand) -> Value {
    let cut = |text: &str| text.chars().take(DESCRIPTION).collect::<String>();
    let words = argument.trim_matches(['[', ']']);
    let option = json!({"type": 3, "name": "words", "description": cut(words), "required": false});
    let options: Vec<Value> = (!words.is_empty()).then_some(option).into_iter().collect();
    let translated = translations.iter().flat_map(|(language, help)| {
        locales(*language).iter().map(move |locale| ((*locale).to_owned(), cut(help).into()))
    });
    let translated: Map<String, Value> = translated.collect();
    json!({
        "type": 1,
        "name": name,
        "description": cut(help),
        "description_localizations": translated,
        "options": options,
    })
}

/// Returns Discord's locale codes for a language.
fn locales(language: Language) -> &'static [&'static str] {
    match language {
        Language::English => &["en-GB", "en-US"],
        Language::Chinese => &["zh-CN", "zh-TW"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::loopback::DiscordLoopback;
    use std::sync::Mutex;

    #[test]
    fn a_command_has_a_description_for_each_app_language() {
        let translations = vec![(Language::Chinese, "新对话".to_owned())];
        let (name, help, argument) = ("new".to_owned(), "Start anew".to_owned(), String::new());
        assert_eq!(
            command(&ChatCommand { name, argument, help, translations }),
            json!({
                "type": 1,
                "name": "new",
                "description": "Start anew",
                "description_localizations": {"zh-CN": "新对话", "zh-TW": "新对话"},
                "options": [],
            })
        );
    }

    #[tokio::test]
    async fn a_deferral_that_may_have_been_accepted_stays_so_after_a_failed_retry() {
        let check = async |statuses: &'static [u16], taken: bool| {
            let left = Mutex::new(statuses.iter());
            let server = DiscordLoopback::start(move |_, _| {
                let status = left.lock().unwrap().next().copied().unwrap_or(204);
                (status, json!({"message": "m", "code": if status == 404 { 10_062 } else { 0 }}))
            })
            .await;
            assert_eq!(server.discord().answer("5", "tok", &json!({"type": 5})).await, taken, "{statuses:?}");
        };
        check(&[200], true).await;
        check(&[500, 200], true).await;
        check(&[500, 500], true).await;
        check(&[500, 429], true).await;
        check(&[500, 404], true).await;
        check(&[429], false).await;
        check(&[404], false).await;
    }
}
