//! Answers to slash commands in channels without the bot. They are ephemeral: visible only to the command's author.
//! They can be neither edited nor found later, so they are sent only when complete.

use super::{SlackMessageRef, SlackMessages};
use crate::{
    slack::{facts::SlackError, page::SlackPage},
    transport::CallError,
};
use serde_json::json;

impl SlackMessages {
    /// Sends part `n` as an ephemeral answer if the channel refused it.
    pub(super) async fn or_aside(
        &self,
        posted: Result<SlackMessageRef, SlackError>,
        n: usize,
        page: &SlackPage,
    ) -> Result<SlackMessageRef, SlackError> {
        let outside = |why: &str| matches!(why, "not_in_channel" | "channel_not_found");
        let (Err(CallError::Refused(why)), Some(url)) = (&posted, &self.respond) else { return posted };
        if !outside(why) || !page.done {
            return posted;
        }
        let text = match n {
            0 => format!("{}\n\n{}", page.text, self.language.only_you_see()),
            _ => page.text.clone(),
        };
        let answer = json!({"response_type": "ephemeral", "replace_original": false, "text": text});
        self.state.client.respond(url, &answer).await?;
        Ok(SlackMessageRef { ts: String::new(), stream: false })
    }
}
