//! State shared by all replies of one bot: API calls within Slack's rate limits, the bot's identity, and features that
//! turned out not to work here.

use super::{
    client::SlackClient,
    facts::{SlackError, is_for_good},
    people::People,
    threads::ThreadCache,
    wire::{AuthTest, SlackIdentity},
};
use crate::{
    bucket::Bucket,
    pace::Pacer,
    transport::{CallError, KeyedLocks},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

/// Minimum interval between two appends, and between two edits, of one reply.
const APPEND: Duration = Duration::from_millis(650);
const UPDATE: Duration = Duration::from_millis(1250);
/// Rate limits of the unfinished updates of all replies. Each minute Slack accepts about a hundred stream appends,
/// which nothing else needs, and fifty edits. Final answers also need edits, so unfinished ones get at most about 30.
const APPENDS: (u32, Duration) = (8, APPEND);
const LIVE_UPDATES: (u32, Duration) = (8, Duration::from_millis(2500));
/// Maximum time that a final answer waits to be edited into its message. If the wait is longer, a new message is
/// faster.
const MAX_CHANGE_DELAY: Duration = Duration::from_secs(3);
/// Timeout for setting a status, which is optional.
const STATUS: Duration = Duration::from_secs(5);

/// State shared by all replies of one bot.
pub(super) struct SlackAccountState {
    pub(super) client: SlackClient,
    pub(super) me: OnceLock<SlackIdentity>,
    pub(super) people: People,
    pub(super) threads: ThreadCache,
    /// Rate limits of updates, by conversation.
    pub(super) pacer: Pacer<String>,
    /// Locks for sending, by thread.
    pub(super) locks: KeyedLocks<String>,
    /// Waits requested by Slack, by method.
    holds: Pacer<String>,
    appends: Bucket,
    updates: Bucket,
    streams_off: AtomicBool,
    status_off: AtomicBool,
}

#[derive(Deserialize)]
struct Nothing {}

impl SlackAccountState {
    pub(super) fn new(client: SlackClient) -> Self {
        Self {
            client,
            me: OnceLock::new(),
            people: People::default(),
            threads: ThreadCache::default(),
            pacer: Pacer::default(),
            locks: KeyedLocks::default(),
            holds: Pacer::default(),
            appends: Bucket::new(APPENDS.0, APPENDS.1),
            updates: Bucket::new(LIVE_UPDATES.0, LIVE_UPDATES.1),
            streams_off: AtomicBool::new(false),
            status_off: AtomicBool::new(false),
        }
    }

    /// Returns the bot's identity. Asks Slack only once.
    pub(super) async fn me(&self) -> Result<&SlackIdentity, SlackError> {
        if let Some(me) = self.me.get() {
            return Ok(me);
        }
        let AuthTest { user_id, bot_id, team_id, .. } = self.client.ask("auth.test").await?.body;
        // Never overwritten: a token always belongs to the same bot.
        Ok(self.me.get_or_init(|| SlackIdentity { user: user_id, bot: bot_id, team: team_id }))
    }

    /// Calls a method that writes. Fails while it has to wait.
    pub(super) async fn write<T: DeserializeOwned>(
        &self,
        method: &str,
        channel: &str,
        params: &Value,
    ) -> Result<T, SlackError> {
        let key = rate_limit_key(method, channel);
        if let Some(left) = self.holds.held(&key) {
            return Err(CallError::Wait(left));
        }
        match method {
            "chat.appendStream" => self.appends.spend(),
            "chat.update" => self.updates.spend(),
            _ => {}
        }
        let result = self.client.write(method, params).await;
        if let Err(CallError::Wait(after)) = &result {
            self.holds.hold(&key, *after);
        }
        result
    }

    /// Calls a method that writes, without reading its result.
    pub(super) async fn call_without_result(
        &self,
        method: &str,
        channel: &str,
        params: &Value,
    ) -> Result<(), SlackError> {
        self.write::<Nothing>(method, channel, params).await.map(|Nothing {}| ())
    }

    /// Fails while calls of a method have to wait. Other methods are not affected.
    pub(super) fn check_rate_limit(&self, method: &str, channel: &str) -> Result<(), SlackError> {
        self.holds.held(&rate_limit_key(method, channel)).map_or(Ok(()), |left| Err(CallError::Wait(left)))
    }

    /// Returns whether a new message shows an answer sooner than an edit that has to wait for `wait`.
    pub(super) fn posts_sooner(&self, channel: &str, wait: Duration) -> bool {
        let free = |method| self.check_rate_limit(method, channel).is_ok();
        wait > MAX_CHANGE_DELAY && free("chat.postMessage") && free("chat.delete")
    }

    /// Waits until another unfinished update may be made. Leaves part of the rate limit for final updates.
    pub(super) async fn may_change(&self, streams: bool) {
        if streams { self.appends.ready().await } else { self.updates.ready().await }
    }

    /// Returns the minimum interval between two updates of a reply.
    pub(super) fn interval(streams: bool) -> Duration {
        if streams { APPEND } else { UPDATE }
    }

    pub(super) fn streams(&self) -> bool {
        !self.streams_off.load(Ordering::Relaxed)
    }

    /// Records that this workspace does not support streams.
    pub(super) fn no_streams(&self, why: &str) {
        if !self.streams_off.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, "turned streams off; answers grow by edits of their message");
        }
    }

    pub(super) fn statuses(&self) -> bool {
        !self.status_off.load(Ordering::Relaxed)
    }

    /// Sets the bot's status in a thread; an empty text clears it. Best effort.
    pub(super) async fn status(&self, channel: &str, thread: &str, words: &str) {
        if !self.statuses() {
            return;
        }
        let params = json!({"channel_id": channel, "thread_ts": thread, "status": words});
        match timeout(STATUS, self.call_without_result("assistant.threads.setStatus", channel, &params)).await
        {
            Ok(Err(error)) if is_for_good(&error) => {
                tracing::debug!(%error, "turned statuses off");
                self.status_off.store(true, Ordering::Relaxed);
            }
            Ok(Err(error)) => tracing::debug!(%error, "failed to show status"),
            Ok(Ok(())) | Err(_) => {}
        }
    }
}

/// Returns the key of a rate limit: Slack counts messages by channel, everything else by method.
fn rate_limit_key(method: &str, channel: &str) -> String {
    if method == "chat.postMessage" { format!("{method}:{channel}") } else { method.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Json, Router, extract::State, routing::post};
    use std::sync::{Arc, atomic::AtomicUsize};

    /// Refuses a status, for a different reason each time.
    async fn refuse(State(count): State<Arc<AtomicUsize>>) -> Json<Value> {
        let errors = ["channel_type_not_supported", "user_not_found", "missing_scope"];
        let error = errors.get(count.fetch_add(1, Ordering::Relaxed));
        Json(json!({"ok": false, "error": error}))
    }

    #[tokio::test]
    async fn a_failure_in_one_thread_does_not_switch_statuses_off() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/assistant.threads.setStatus", post(refuse));
        tokio::spawn(async move { axum::serve(listener, router.with_state(Arc::default())).await });
        let state =
            SlackAccountState::new(SlackClient::new(api.parse().unwrap(), "xoxb-1".into(), None).unwrap());
        let mut observed = Vec::new();
        for _ in 0..3 {
            state.status("C1", "1.0", "Searching").await;
            observed.push(state.statuses());
        }
        assert_eq!(observed, [true, true, false], "only a workspace-wide reason switches statuses off");
    }
}
