//! Reads in the history what was said while nobody listened. What was kept before is recognised by its key.
//!
//! Looked at are the chats of which something was seen lately, from a little before the newest message that is
//! known there. What is not found: first words to the bot in a chat that it does not know, edits, and what was
//! taken back. Where the app may not read the history it is left.

use super::{
    Slack,
    failure::ApiError,
    wire::{Message, Page},
};
use crate::{Intake, clock::now};
use std::{collections::HashMap, time::Duration};
use tokio::time::sleep;

/// Chats in which nothing was said for so long are left.
const LATELY: Duration = Duration::from_secs(3 * 24 * 3600);
/// What is older than this is not answered any more.
const OLDEST: Duration = Duration::from_secs(6 * 3600);
/// So far before the newest message that is known it is looked: one before it may have been missed.
const MARGIN: f64 = 600.0;
/// Chats that are looked at, newest first, and messages and threads in each.
const CHATS: usize = 40;
const MESSAGES: &str = "100";
const THREADS: usize = 10;
/// How long it waits where Slack asks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

impl Slack {
    /// Offers what was missed.
    pub(super) async fn catch_up(&self, intake: &dyn Intake) {
        let now = now();
        let since = |time: Duration| now - i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let known = match intake.known(&self.ears.account, since(LATELY)).await {
            Ok(known) => known,
            Err(error) => return tracing::warn!(%error, "what was missed cannot be looked for"),
        };
        let mut chats: HashMap<String, f64> = HashMap::new();
        for sighting in known {
            if let Some(at) = seconds(&sighting.message) {
                let newest = chats.entry(sighting.chat).or_default();
                *newest = newest.max(at);
            }
        }
        let mut chats: Vec<(String, f64)> = chats.into_iter().collect();
        chats.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are exact up to 2^53")]
        let floor = since(OLDEST) as f64 / 1000.0;
        for (chat, newest) in chats.into_iter().take(CHATS) {
            let from = (newest - MARGIN).max(floor);
            let mut looked = self.look_at(&chat, from, intake).await;
            if let Err(Missed::Slack(ApiError::Wait(after))) = looked {
                sleep(after.min(LONGEST_WAIT)).await;
                looked = self.look_at(&chat, from, intake).await;
            }
            match looked {
                Ok(()) => {}
                Err(Missed::Slack(error @ (ApiError::Wait(_) | ApiError::Auth(_)))) => {
                    return tracing::warn!(%error, "what was missed cannot be looked for now");
                }
                Err(Missed::Slack(error)) => tracing::debug!(%error, chat, "a chat's history cannot be read"),
                Err(Missed::Full) => return,
            }
        }
    }

    /// Offers what is newer than `oldest` in a chat, with its threads, oldest first.
    async fn look_at(&self, chat: &str, oldest: f64, intake: &dyn Intake) -> Result<(), Missed> {
        let client = &self.ears.office.client;
        let page: Page =
            client.read("conversations.history", &[("channel", chat), ("limit", MESSAGES)]).await?;
        let from = format!("{oldest:.6}");
        let newer = |ts: Option<&String>| ts.and_then(|ts| seconds(ts)).is_some_and(|at| at > oldest);
        let mut missed = Vec::new();
        let active =
            page.messages.iter().filter(|message| newer(message.latest_reply.as_ref())).take(THREADS);
        for root in active.filter_map(|message| message.ts.as_deref()) {
            let params = [("channel", chat), ("ts", root), ("oldest", from.as_str()), ("limit", MESSAGES)];
            let replies: Page = client.read("conversations.replies", &params).await?;
            missed.extend(replies.messages);
        }
        missed.extend(page.messages);
        missed.retain(|message| newer(message.ts.as_ref()));
        missed.sort_by(|a, b| a.ts.cmp(&b.ts));
        missed.dedup_by(|a, b| a.ts == b.ts);
        for message in missed {
            let message = Message { kind: "message".to_owned(), channel: Some(chat.to_owned()), ..message };
            if let Err(error) = self.ears.message(&message, None, intake).await {
                tracing::warn!(%error, "what was missed could not be kept; it is looked for again later");
                return Err(Missed::Full);
            }
        }
        Ok(())
    }
}

/// Why a chat was not looked through.
enum Missed {
    Slack(ApiError),
    Full,
}

impl From<ApiError> for Missed {
    fn from(error: ApiError) -> Self {
        Self::Slack(error)
    }
}

/// Returns a time stamp in seconds; `None` for what is not one.
fn seconds(ts: &str) -> Option<f64> {
    ts.parse().ok().filter(|at: &f64| at.is_finite())
}
