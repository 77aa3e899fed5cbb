//! The queue of updates and the rules for polling it.
//!
//! An update stays until a poll requests a higher number: sending it does not confirm it. It is stored for at most a
//! day. Only one poll can be active; a newer one ends the older.

use super::{
    error::{Answer, Refusal},
    types::{ChatId, MessageId, UpdateId},
};
use serde_json::Value;
use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// Retention time of an unconfirmed update.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of updates that can be repeated.
const REMEMBERED: usize = 10_000;

/// Kinds that a bot does not receive by default.
const BY_DEFAULT_ABSENT: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    pub(crate) id: UpdateId,
    pub(crate) chat: ChatId,
    /// The whole update as JSON.
    pub(crate) body: Value,
    pub(crate) at: Instant,
    /// Number of refusals by a webhook, and the time of the next attempt.
    pub(crate) tries: u32,
    pub(crate) not_before: Instant,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Updates {
    next: i64,
    queue: VecDeque<Update>,
    /// Repeated updates, independent of the offset.
    again: VecDeque<Update>,
    known: VecDeque<Update>,
    allowed: Option<BTreeSet<String>>,
    poll: u64,
    ended_by: &'static str,
}

/// Result of an active poll.
pub(crate) enum Polled {
    /// Updates to send.
    Some(Vec<Value>),
    /// No updates yet.
    Nothing,
}

impl Updates {
    pub(crate) fn new(first: i64) -> Self {
        Self {
            next: first,
            queue: VecDeque::new(),
            again: VecDeque::new(),
            known: VecDeque::new(),
            allowed: None,
            poll: 0,
            ended_by: "",
        }
    }

    /// Queues an event and returns its number; `None` if the bot does not want that kind.
    pub(crate) fn push(&mut self, chat: ChatId, kind: &str, what: &Value, now: Instant) -> Option<UpdateId> {
        if !self.wanted(kind) {
            return None;
        }
        let id = UpdateId(self.next);
        self.next += 1;
        let body = serde_json::json!({"update_id": id, kind: what});
        let update = Update { id, chat, body, at: now, tries: 0, not_before: now };
        if self.known.len() == REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back(update.clone());
        self.queue.push_back(update);
        Some(id)
    }

    fn wanted(&self, kind: &str) -> bool {
        match &self.allowed {
            Some(allowed) => allowed.contains(kind),
            None => !BY_DEFAULT_ABSENT.contains(&kind),
        }
    }

    /// Sets the wanted kinds until the next call; an empty list resets the default.
    pub(crate) fn allow(&mut self, kinds: Option<Vec<String>>) {
        if let Some(kinds) = kinds {
            self.allowed = (!kinds.is_empty()).then(|| kinds.into_iter().collect());
        }
    }

    pub(crate) fn allowed(&self) -> Option<&BTreeSet<String>> {
        self.allowed.as_ref()
    }

    pub(crate) fn newest(&self) -> Option<UpdateId> {
        self.known.back().map(|update| update.id)
    }

    /// Returns the first update of a message.
    pub(crate) fn of(&self, chat: ChatId, message: MessageId) -> Option<UpdateId> {
        let tells =
            |update: &&Update| update.chat == chat && update.body["message"]["message_id"] == message.0;
        self.known.iter().find(tells).map(|update| update.id)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.again.len()
    }

    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.again.clear();
    }

    /// Repeats an update with its old number, confirmed or not.
    pub(crate) fn repeat(&mut self, id: UpdateId, now: Instant) -> bool {
        let Some(update) = self.known.iter().find(|update| update.id == id) else { return false };
        self.again.push_back(Update { at: now, not_before: now, tries: 0, ..update.clone() });
        true
    }

    /// Starts a poll: confirms updates below the offset and ends the active poll.
    pub(crate) fn enter(&mut self, offset: i64) -> u64 {
        self.end_poll(
            "terminated by other getUpdates request; make sure that only one bot instance is running",
        );
        if offset < 0 {
            let keep = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
            self.queue.drain(..self.queue.len().saturating_sub(keep));
        } else {
            self.queue.retain(|update| update.id.0 >= offset);
        }
        self.poll
    }

    pub(crate) fn end_poll(&mut self, why: &'static str) {
        self.poll += 1;
        self.ended_by = why;
    }

    /// Returns the updates for the poll.
    pub(crate) fn poll(&mut self, poll: u64, limit: usize, now: Instant) -> Answer<Polled> {
        if poll != self.poll {
            return Err(Refusal::conflict(self.ended_by));
        }
        self.queue.retain(|update| now < update.at + KEPT);
        let again = self.again.len().min(limit);
        let mut found: Vec<_> = self.again.drain(..again).map(|update| update.body).collect();
        found.extend(self.queue.iter().take(limit - again).map(|update| update.body.clone()));
        Ok(if found.is_empty() { Polled::Nothing } else { Polled::Some(found) })
    }

    /// Returns the next update for a webhook: due, and of a chat without a delivery in progress.
    pub(crate) fn due(&self, busy: &BTreeSet<ChatId>, now: Instant) -> Option<Update> {
        let mut blocked = busy.clone();
        for update in self.again.iter().chain(&self.queue).filter(|update| now < update.at + KEPT) {
            if !blocked.contains(&update.chat) && update.not_before <= now {
                return Some(update.clone());
            }
            blocked.insert(update.chat);
        }
        None
    }

    /// Returns the time of the next attempt for a refused update.
    pub(crate) fn next_try(&self, now: Instant) -> Option<Instant> {
        let all = self.again.iter().chain(&self.queue);
        all.map(|update| update.not_before).filter(|at| *at > now).min()
    }

    /// Removes an update that a webhook accepted.
    pub(crate) fn delivered(&mut self, id: UpdateId) {
        let again = self.again.iter().position(|update| update.id == id);
        match again {
            Some(at) => drop(self.again.remove(at)),
            None => self.queue.retain(|update| update.id != id),
        }
    }

    /// Schedules an update that a webhook refused, after a pause that doubles.
    pub(crate) fn refused(&mut self, id: UpdateId, first: Duration, now: Instant) {
        let mut all = self.again.iter_mut().chain(&mut self.queue);
        if let Some(update) = all.find(|update| update.id == id) {
            update.not_before = now + first * 2_u32.saturating_pow(update.tries.min(6));
            update.tries += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn three() -> Updates {
        let mut updates = Updates::new(10);
        for n in 0..3 {
            updates.push(ChatId(1), "message", &json!(n), Instant::now());
        }
        updates
    }

    fn ids(updates: &mut Updates, offset: i64, limit: usize) -> Vec<i64> {
        let poll = updates.enter(offset);
        match updates.poll(poll, limit, Instant::now()).unwrap() {
            Polled::Some(found) => found.iter().filter_map(|update| update["update_id"].as_i64()).collect(),
            Polled::Nothing => Vec::new(),
        }
    }

    #[test]
    fn only_a_higher_offset_confirms() {
        let mut updates = three();
        assert_eq!(ids(&mut updates, 0, 100), [10, 11, 12]);
        assert_eq!(ids(&mut updates, 0, 100), [10, 11, 12]);
        assert_eq!(ids(&mut updates, 11, 1), [11]);
        assert_eq!(ids(&mut updates, 0, 100), [11, 12]);
        assert_eq!(ids(&mut updates, 13, 100), [0_i64; 0]);
        assert_eq!(ids(&mut updates, 0, 100), [0_i64; 0]);
    }

    #[test]
    fn a_negative_offset_keeps_the_last_and_forgets_the_rest() {
        let mut updates = three();
        assert_eq!(ids(&mut updates, -1, 100), [12]);
        assert_eq!(ids(&mut updates, 0, 100), [12]);
    }

    #[test]
    fn a_repeat_comes_though_it_was_confirmed_and_comes_once() {
        let mut updates = three();
        ids(&mut updates, 13, 100);
        assert!(updates.repeat(UpdateId(11), Instant::now()));
        assert_eq!(ids(&mut updates, 13, 100), [11]);
        assert_eq!(ids(&mut updates, 13, 100), [0_i64; 0]);
        assert!(!updates.repeat(UpdateId(99), Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_update_is_kept_for_a_day() {
        let mut updates = three();
        tokio::time::advance(KEPT - Duration::from_secs(1)).await;
        assert_eq!(ids(&mut updates, 0, 100), [10, 11, 12]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ids(&mut updates, 0, 100), [0_i64; 0]);
    }

    #[test]
    fn the_bot_gets_the_kinds_that_it_asked_for_last() {
        let mut updates = Updates::new(1);
        let now = Instant::now();
        let push = |updates: &mut Updates, kind: &str| updates.push(ChatId(1), kind, &json!({}), now);
        push(&mut updates, "message_reaction");
        updates.allow(Some(vec!["message_reaction".to_owned()]));
        updates.allow(None);
        push(&mut updates, "message");
        push(&mut updates, "message_reaction");
        assert_eq!(updates.waiting(), 1);
    }

    #[test]
    fn a_webhook_gets_one_update_of_a_chat_at_a_time_and_a_refused_one_first_of_its_chat() {
        let mut updates = three();
        let now = Instant::now();
        updates.push(ChatId(2), "message", &json!({}), now);
        let due = |updates: &Updates, busy: &[i64], at: Instant| {
            let busy = busy.iter().copied().map(ChatId).collect();
            updates.due(&busy, at).map(|update| update.id.0)
        };
        assert_eq!(due(&updates, &[], now), Some(10));
        assert_eq!(due(&updates, &[1], now), Some(13));
        updates.refused(UpdateId(10), Duration::from_secs(1), now);
        assert_eq!(due(&updates, &[], now), Some(13));
        assert_eq!(due(&updates, &[2], now), None);
        assert_eq!(due(&updates, &[2], now + Duration::from_secs(1)), Some(10));
    }
}
