//! Reads the history for messages that were sent while the bot was not listening. Events that are already stored are
//! recognised by their keys.
//!
//! Searches the chats with recent known messages. In each chat the search starts shortly before the newest message that
//! is known from the time when everything was still received; the bot's own later messages do not count. The search
//! finds neither edits nor deletions, nor the first message in a chat that is unknown to the bot. A chat whose history
//! the app may not read is skipped.

use super::{SlackChannel, event_handler::SlackIntakeError, wire::SlackMessage};
use crate::{
    EventSink, KnownMessage,
    clock::{millis, now},
    transport::read_missed,
};
use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

/// Maximum age of a searched chat's last known message.
const LATELY: Duration = Duration::from_secs(3 * 24 * 3600);
/// Maximum age of a missed message that is still answered.
const OLDEST: Duration = Duration::from_secs(6 * 3600);
/// Reading starts this many seconds before the newest known message: an earlier message may have been missed.
const MARGIN: f64 = 600.0;
/// Maximum number of chats, most recently active first; of pages per chat or thread; of messages per page; and of
/// threads per chat.
const CHATS: usize = 40;
const PAGES: usize = 5;
const MESSAGES: &str = "100";
const THREADS: usize = 10;

/// Last activity in a chat, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ChatActivity {
    /// Time of the newest known message.
    newest: f64,
    /// Time of the newest known message from the time when everything was still received.
    heard: f64,
}

impl SlackChannel {
    /// Records that all messages up to `at`, in milliseconds since 1970, were received.
    pub(super) fn alive(&self, at: i64) {
        self.heard.store(at, Ordering::Relaxed);
    }

    /// Passes the missed messages to `sink`. Returns false if not everything could be read.
    pub(super) async fn catch_up(&self, round: u32, sink: &dyn EventSink) -> bool {
        let now = now();
        let since = |time: Duration| now - millis(time);
        let known = match sink.known_messages(&self.handler.account, since(LATELY)).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%error, "failed to look for missed messages");
                return false;
            }
        };
        // A process that has never listened knows only that the previous one had ended when it started.
        let until = match self.heard.load(Ordering::Relaxed) {
            0 => self.made,
            heard => heard,
        };
        let mut chats: Vec<(String, ChatActivity)> = seen(&known, in_seconds(until)).into_iter().collect();
        chats.sort_by(|(_, a), (_, b)| b.newest.total_cmp(&a.newest));
        let floor = in_seconds(since(OLDEST));
        let from: HashMap<String, f64> =
            chats.iter().map(|(chat, seen)| (chat.clone(), (seen.heard - MARGIN).max(floor))).collect();
        let chats = chats.into_iter().take(CHATS).map(|(chat, _)| chat).collect();
        read_missed(chats, round, |chat: String| {
            let from = from.get(&chat).copied().unwrap_or(floor);
            async move { self.look_at(&chat, from, sink).await }
        })
        .await
    }

    /// Passes the messages newer than `oldest` in a chat and its threads to `sink`, oldest first.
    async fn look_at(&self, chat: &str, oldest: f64, sink: &dyn EventSink) -> Result<(), SlackIntakeError> {
        let from = format!("{oldest:.6}");
        let newer = |ts: Option<&String>| ts.and_then(|ts| seconds(ts)).is_some_and(|at| at > oldest);
        // Without `oldest`, because the first message of a thread with newer messages may be older.
        let client = &self.handler.state.client;
        let params = [("channel", chat), ("limit", MESSAGES)];
        let more = |page: &[SlackMessage]| page.last().is_some_and(|message| newer(message.ts.as_ref()));
        let mut missed = client.history("conversations.history", &params, PAGES, more).await?;
        let active = missed.iter().filter(|message| newer(message.latest_reply.as_ref())).take(THREADS);
        let roots: Vec<String> = active.filter_map(|message| message.ts.clone()).collect();
        for root in roots {
            let params =
                [("channel", chat), ("ts", root.as_str()), ("oldest", from.as_str()), ("limit", MESSAGES)];
            missed.extend(client.history("conversations.replies", &params, PAGES, |_| true).await?);
        }
        missed.retain(|message| newer(message.ts.as_ref()));
        missed.sort_by(|a, b| a.ts.cmp(&b.ts));
        missed.dedup_by(|a, b| a.ts == b.ts);
        for message in missed {
            let message =
                SlackMessage { kind: "message".to_owned(), channel: Some(chat.to_owned()), ..message };
            self.handler.message(&message, None, sink).await?;
        }
        Ok(())
    }
}

/// Returns the known activity of each chat. Everything was received up to `until`, in seconds since 1970.
fn seen(known: &[KnownMessage], until: f64) -> HashMap<String, ChatActivity> {
    let mut chats: HashMap<String, ChatActivity> = HashMap::new();
    for known_message in known {
        let Some(at) = seconds(&known_message.message) else { continue };
        let seen =
            chats.entry(known_message.chat.clone()).or_insert(ChatActivity { newest: at, heard: f64::MIN });
        seen.newest = seen.newest.max(at);
        if at <= until {
            seen.heard = seen.heard.max(at);
        }
    }
    for seen in chats.values_mut().filter(|seen| seen.heard == f64::MIN) {
        seen.heard = until;
    }
    chats
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are exact up to 2^53")]
fn in_seconds(millis: i64) -> f64 {
    millis as f64 / 1000.0
}

/// Parses a timestamp in seconds; `None` for an invalid one.
fn seconds(ts: &str) -> Option<f64> {
    ts.parse().ok().filter(|at: &f64| at.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        AcceptError, Accepted, Address, BoxFuture, Inbound, InboundKind, ReplyStoreError,
        slack::{SlackConfig, SlackEventMode, wire::SlackIdentity},
    };
    use axum::{Json, Router, routing::post};
    use serde_json::{Value, json};
    use std::sync::Mutex;

    /// Knows some messages, and records the offered ones.
    struct RecordingSink {
        known: Vec<KnownMessage>,
        offered: Mutex<Vec<String>>,
    }

    impl EventSink for RecordingSink {
        fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
            let InboundKind::Message { text, .. } = inbound.kind else { panic!("{inbound:?}") };
            self.offered.lock().unwrap().push(text);
            Box::pin(async { Ok(Accepted::New) })
        }

        fn known_messages<'a>(
            &'a self,
            _: &'a str,
            _: i64,
        ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
            Box::pin(async { Ok(self.known.clone()) })
        }

        fn is_in_conversation<'a>(
            &'a self,
            _: &'a Address,
            _: &'a str,
        ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
            Box::pin(async { Ok(false) })
        }
    }

    /// A fake Slack API with this history, one message per page.
    async fn slack(history: Vec<Value>) -> SlackChannel {
        let read = move |form: String| async move {
            let cursor = form.rsplit_once("cursor=").and_then(|(_, rest)| rest.split('&').next());
            let at = cursor.and_then(|cursor| cursor.parse::<usize>().ok()).unwrap_or(0);
            let next = if at + 1 < history.len() { (at + 1).to_string() } else { String::new() };
            Json(json!({
                "ok": true, "messages": history.get(at).map_or_else(Vec::new, |message| vec![message]),
                "response_metadata": {"next_cursor": next},
            }))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api_url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let router = Router::new().route("/conversations.history", post(read));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let slack = SlackChannel::new(SlackConfig {
            account: "slack".into(),
            bot_token: "xoxb-1".into(),
            api_url,
            delivery: SlackEventMode::Socket { app_token: "xapp-1".into() },
            require_mention: true,
            bot_user_id: None,
            commands: Vec::new(),
        });
        let slack = slack.unwrap();
        let me = SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() };
        slack.handler.state.me.set(me).unwrap();
        slack
    }

    #[tokio::test]
    async fn messages_missed_before_the_bot_spoke_again_are_found() {
        let (now, minute) = (now(), 60_000);
        let ts = |minutes: i64| format!("{}.000100", (now - minutes * minute) / 1000);
        let said = |minutes: i64, text: &str| json!({"type": "message", "user": "U1", "text": text, "ts": ts(minutes)});
        let seen = |minutes: i64| KnownMessage { chat: "D1".into(), message: ts(minutes) };
        let history = || {
            vec![said(1, "new"), said(50, "missed"), said(90, "heard"), said(200, "older"), said(300, "old")]
        };
        let offered = async |slack: SlackChannel| {
            let chat_client = RecordingSink { known: vec![seen(90), seen(0)], offered: Mutex::default() };
            assert!(slack.catch_up(0, &chat_client).await);
            chat_client.offered.into_inner().unwrap()
        };
        // The connection was lost an hour ago, and the bot has just replied.
        let lost = slack(history()).await;
        lost.alive(now - 60 * minute);
        assert_eq!(offered(lost).await, ["heard", "missed", "new"]);
        // A new process has delivered pending messages of the previous one.
        let channel = SlackChannel { made: now - 1000, ..slack(history()).await };
        assert_eq!(offered(channel).await, ["heard", "missed", "new"]);
    }

    #[test]
    fn messages_sent_while_offline_do_not_hide_missed_ones() {
        let known_message = |chat: &str, at: &str| KnownMessage { chat: chat.into(), message: at.into() };
        let known = [
            known_message("C1", "1000.000100"),
            known_message("C1", "2500.000100"),
            known_message("C1", "9000.000200"),
            known_message("D1", "8000.0"),
            known_message("D1", "c123.456"),
            known_message("D2", "100.5"),
        ];
        let expect = [
            ("C1".to_owned(), ChatActivity { newest: 9000.0002, heard: 2500.0001 }),
            ("D1".to_owned(), ChatActivity { newest: 8000.0, heard: 3000.0 }),
            ("D2".to_owned(), ChatActivity { newest: 100.5, heard: 100.5 }),
        ];
        assert_eq!(seen(&known, 3000.0), expect.into());
    }
}
