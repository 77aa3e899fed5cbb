//! Answers to slash commands of conversations in which the bot is not: beside them, for who gave the command
//! alone. Nobody can change or find such an answer any more, so it is only given when it is whole.

use super::{SlackMessageRef, SlackMessages};
use crate::slack::{failure::SlackApiError, page::SlackPage};
use serde_json::json;

/// Note below an answer that only the asker sees.
const OUTSIDE: &str = "_Only you see this: I am not in this conversation. Invite me to answer for all._";

impl SlackMessages {
    /// Answers beside the conversation where it did not take part `n`.
    pub(super) async fn or_aside(
        &self,
        posted: Result<SlackMessageRef, SlackApiError>,
        n: usize,
        page: &SlackPage,
    ) -> Result<SlackMessageRef, SlackApiError> {
        let outside = |why: &str| matches!(why, "not_in_channel" | "channel_not_found");
        let (Err(SlackApiError::Refused(why)), Some(url)) = (&posted, &self.respond) else { return posted };
        if !outside(why) || !page.done {
            return posted;
        }
        let text = if n == 0 { format!("{}\n\n{OUTSIDE}", page.text) } else { page.text.clone() };
        let answer = json!({"response_type": "ephemeral", "replace_original": false, "text": text});
        self.state.client.respond(url, &answer).await?;
        Ok(SlackMessageRef { ts: String::new(), stream: false })
    }
}
