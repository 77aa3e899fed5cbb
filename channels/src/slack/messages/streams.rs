//! Streams, for answers in a thread: begins, extends and closes them.

use super::{PostMessageResponse, SlackMessageRef, SlackMessages};
use crate::{
    slack::{
        facts::{SlackCase, SlackError},
        page::SlackPage,
    },
    transport::CallError,
};
use serde_json::json;

/// Maximum number of characters in one append to a stream.
const APPEND: usize = 11_000;

impl SlackMessages {
    /// Begins a stream. Returns `None` if streams are not available.
    pub(super) async fn start(&mut self, page: &SlackPage) -> Result<Option<SlackMessageRef>, SlackError> {
        let mut params = json!({"channel": self.channel, "thread_ts": self.thread});
        if !page.so_far.is_empty() {
            params["markdown_text"] = page.so_far.as_str().into();
        }
        if !self.recipient.is_empty() {
            let team = match self.team.as_str() {
                // A failure here only concerns the look-up of the bot's identity; nothing was sent.
                "" => self.state.me().await.map_err(SlackError::before)?.team.as_str(),
                team => team,
            };
            params["recipient_user_id"] = self.recipient.as_str().into();
            params["recipient_team_id"] = team.into();
        }
        match self.write::<PostMessageResponse>("chat.startStream", &params).await {
            Ok(PostMessageResponse { ts }) => {
                self.streams.insert(ts.clone(), page.so_far.clone());
                Ok(Some(SlackMessageRef { ts, stream: true }))
            }
            Err(CallError::Special(
                error @ (SlackCase::NoStream(_) | SlackCase::Content(_) | SlackCase::Stream(_)),
            )) => {
                if error.to_string() == "unknown_method" {
                    self.state.no_streams("unknown_method");
                }
                tracing::debug!(%error, "failed to begin stream; sending a message");
                self.no_stream = true;
                Ok(None)
            }
            // An ordinary message shows the text at once.
            Err(CallError::Wait(wait)) => {
                tracing::debug!(?wait, "sending a message: streams have to wait");
                self.no_stream = true;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Closes a stream, even if it is already closed.
    pub(super) async fn close(&mut self, ts: &str) -> Result<(), SlackError> {
        self.streams.remove(ts);
        let params = json!({"channel": self.channel, "ts": ts});
        match self.write::<PostMessageResponse>("chat.stopStream", &params).await {
            Ok(_) | Err(CallError::Special(SlackCase::Stream(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes a stream show a page by appending to it. Returns false if that is impossible.
    pub(super) async fn extend_stream(
        &mut self,
        post: &mut SlackMessageRef,
        page: &SlackPage,
    ) -> Result<bool, SlackError> {
        let Some(before) = self.streams.remove(&post.ts) else { return Ok(false) };
        let target = if page.done { &page.whole } else { &page.so_far };
        let Some(new) = target.strip_prefix(before.as_str()) else {
            // While the reply grows, its settled part may shrink; the existing text is still correct.
            let wait = !page.done && page.whole.starts_with(&before);
            if wait {
                self.streams.insert(post.ts.clone(), before);
            }
            return Ok(wait);
        };
        if new.chars().count() > APPEND {
            return Ok(false);
        }
        let mut params = json!({"channel": self.channel, "ts": post.ts});
        if !new.is_empty() {
            params["markdown_text"] = new.into();
        }
        let method = match (page.done, new.is_empty()) {
            (false, true) => {
                self.streams.insert(post.ts.clone(), before);
                return Ok(true);
            }
            (false, false) => "chat.appendStream",
            (true, _) => {
                if !page.buttons.is_empty() {
                    params["blocks"] = page.buttons.clone().into();
                }
                "chat.stopStream"
            }
        };
        match self.write::<PostMessageResponse>(method, &params).await {
            Ok(_) if page.done => post.stream = false,
            Ok(_) => {
                self.streams.insert(post.ts.clone(), format!("{before}{new}"));
            }
            Err(CallError::Special(SlackCase::Stream(why))) => {
                tracing::debug!(why, "found stream closed; changing the message");
                post.stream = false;
                return Ok(false);
            }
            Err(CallError::Special(SlackCase::Content(_))) => return Ok(false),
            Err(error) => {
                // If nothing was done, the stream continues from its previous text. Otherwise the whole message is
                // edited next time.
                if !error.may_be_done() {
                    self.streams.insert(post.ts.clone(), before);
                }
                return Err(error);
            }
        }
        Ok(true)
    }
}
