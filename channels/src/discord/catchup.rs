//! Reads the history for messages that were sent while the bot was not listening, if a session could not be resumed:
//! Discord redelivers events only to a resumed session. Events that are already stored are recognised by their keys.
//!
//! Searches the chats with recent known messages, their threads, and the channels with newer messages. Finds neither
//! edits nor deletions, nor private messages of users who have never written before.

use super::{DiscordChannel, event_handler::DiscordIntakeError, wire::id_at};
use crate::{EventSink, KnownMessage, clock::now, transport::read_missed};
use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

/// Maximum age of a searched chat's last known message, in milliseconds.
const LATELY: i64 = 7 * 24 * 3600 * 1000;
/// Maximum age of a missed message that is still answered, in milliseconds.
pub(super) const MAX_ANSWER_AGE: i64 = 6 * 3600 * 1000;
/// Reading starts this long before the last sign of life, in milliseconds: of this process, or of the previous one.
const MARGIN: i64 = 60_000;
const MARGIN_BEFORE: i64 = 600_000;
/// Maximum number of channels and threads to search, and of pages of a hundred messages in each.
const PLACES: usize = 60;
const PAGES: usize = 5;

impl DiscordChannel {
    /// Records that all events up to now were received, unless the history has yet to be read.
    pub(super) fn alive(&self) {
        if !self.is_behind() {
            self.received_until.store(now(), Ordering::Relaxed);
        }
    }

    /// Records that the previous process received everything up to `at`, in milliseconds since 1970, and possibly
    /// slightly more. The margin before `at` is the same as before the last known message of an earlier process.
    pub(super) fn was_heard(&self, at: i64) {
        if at > 0 {
            self.received_until.store(at - (MARGIN_BEFORE - MARGIN), Ordering::Relaxed);
        }
    }

    /// Records that a new session began, which does not deliver earlier events.
    pub(super) fn falls_behind(&self) {
        self.needs_catchup.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_behind(&self) -> bool {
        self.needs_catchup.load(Ordering::Relaxed)
    }

    /// Passes the missed messages to `sink`. Returns false if they have to be read again.
    pub(super) async fn catch_up(&self, round: u32, sink: &dyn EventSink) -> bool {
        let complete = self.read_missed(self.received_until.load(Ordering::Relaxed), round, sink).await;
        if complete {
            self.needs_catchup.store(false, Ordering::Relaxed);
        }
        complete
    }

    /// Passes the messages missed since `received_until` to `sink`. `received_until` is in milliseconds since 1970; 0
    /// if this process never listened.
    async fn read_missed(&self, received_until: i64, round: u32, sink: &dyn EventSink) -> bool {
        let known_messages = match sink.known_messages(&self.handler.account, now() - LATELY).await {
            Ok(known_messages) => known_messages,
            Err(error) => {
                tracing::warn!(%error, "failed to look for missed messages");
                return false;
            }
        };
        let mut newest: HashMap<String, u64> = HashMap::new();
        for seen in &known_messages {
            let known = newest.entry(seen.chat.clone()).or_default();
            *known = number(&seen.message).max(*known);
        }
        let last = last_before(self.created_at, &known_messages);
        let Some(after) = boundary(received_until, last) else { return true };
        if let Err(error) = self.handler.learn_all().await {
            tracing::warn!(%error, "failed to read missed messages; reading again later");
            return false;
        }
        read_missed(self.places(newest, after), round, |channel: String| async move {
            self.read(&channel, after, sink).await
        })
        .await
    }

    /// Returns the channels and threads that may have missed messages, most recently active first.
    fn places(&self, mut newest: HashMap<String, u64>, after: u64) -> Vec<String> {
        let places = &self.handler.state.guilds;
        let chats: HashSet<String> = newest.keys().cloned().collect();
        for thread in places.threads_of(&chats) {
            let newest_here = places.get(&thread).map_or(0, |place| place.newest);
            newest.insert(thread, newest_here);
        }
        for (channel, id) in places.newer_than(after) {
            let known = newest.entry(channel).or_default();
            *known = id.max(*known);
        }
        // Drop server channels that are known to have no newer messages.
        newest.retain(|channel, _| places.get(channel).is_none_or(|place| place.newest > after));
        let mut newest: Vec<(String, u64)> = newest.into_iter().collect();
        newest.sort_by(|(_, a), (_, b)| b.cmp(a));
        newest.into_iter().map(|(channel, _)| channel).take(PLACES).collect()
    }

    /// Passes the messages newer than `after` in a channel to `sink`, oldest first.
    async fn read(
        &self,
        channel: &str,
        mut after: u64,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        let state = &self.handler.state;
        let Some(me) = state.me.get() else { return Ok(()) };
        // The history does not contain a message's server, or whether the message is private.
        let guild = match state.guilds.get(channel) {
            Some(place) => place.guild,
            None => self.handler.fetch_channel(channel).await?.guild,
        };
        for _ in 0..PAGES {
            let page = state.history_page(channel, after).await?;
            for mut message in page.messages {
                message.guild_id.clone_from(&guild);
                self.handler.on_history_message(me, &message, sink).await?;
            }
            let Some(next) = page.next else { break };
            after = next;
        }
        Ok(())
    }
}

fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}

/// Returns the newest known id from before the time `created_at`, in milliseconds since 1970. Later messages, such as a
/// reply resumed after a restart, do not reveal when the previous process ended.
fn last_before(created_at: i64, known_messages: &[KnownMessage]) -> u64 {
    let ids = known_messages.iter().map(|seen| number(&seen.message));
    ids.filter(|id| *id < id_at(created_at)).max().unwrap_or(0)
}

/// Returns the id that missed messages come after; `None` if no process ever listened.
fn boundary(received_until: i64, last: u64) -> Option<u64> {
    let since = match (received_until, last) {
        (0, 0) => return None,
        (0, last) => super::wire::id_time(&last.to_string())? - MARGIN_BEFORE,
        (received_until, _) => received_until - MARGIN,
    };
    Some(id_at(since.max(now() - MAX_ANSWER_AGE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_read_from_slightly_before_the_last_sign_of_life() {
        let (now, minute) = (now(), 60_000);
        let near = |found: Option<u64>, at: i64| {
            let found = super::super::wire::id_time(&found.unwrap().to_string()).unwrap();
            assert!((found - at).abs() < 5_000, "{found} is not {at}");
        };
        assert_eq!(boundary(0, 0), None);
        near(boundary(now - 5 * minute, 0), now - 6 * minute);
        near(boundary(now - 5 * minute, id_at(now - minute)), now - 6 * minute);
        near(boundary(0, id_at(now - 5 * minute)), now - 15 * minute);
        near(boundary(0, id_at(now - 24 * 60 * minute)), now - 6 * 60 * minute);
    }

    #[test]
    fn messages_since_the_start_do_not_hide_earlier_missed_ones() {
        let (started, minute) = (now() - 5 * 60_000, 60_000);
        let seen = |chat: &str, at: i64| KnownMessage { chat: chat.into(), message: id_at(at).to_string() };
        let before = [seen("1", started - 90 * minute), seen("2", started - 95 * minute)];
        let since = [seen("1", started + 1000), seen("3", started + 4 * minute)];
        let last = id_at(started - 90 * minute);
        assert_eq!(last_before(started, &before), last);
        assert_eq!(last_before(started, &[&before[..], &since].concat()), last);
        assert_eq!(boundary(0, last_before(started, &since)), None, "no earlier process listened");
    }
}
