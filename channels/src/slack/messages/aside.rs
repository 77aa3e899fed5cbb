//! Answers to slash commands of conversations in which the bot is not: beside them, visible only to the author of the
//! command. Such an answer cannot be changed or found any more, so it is only given when it is whole.

use super::{SlackMessageRef, SlackMessages};
use crate::{
    slack::{failure::SlackError, page::SlackPage},
    transport::CallError,
};
use serde_json::json;

impl SlackMessages {
    /// Answers beside the conversation where it did not take part `n`.
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
