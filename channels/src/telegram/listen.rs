//! Receives updates: start-up, and the long poll.
//!
//! Telegram counts an update as received once a later call requests a higher number. The requested number therefore
//! passes an update only after it is stored, or certainly not needed. The content of an update never affects other
//! updates.

use super::{
    TelegramChannel, TelegramUpdateMode,
    chats::Chats,
    client::{CALL_TIMEOUT, TelegramClient},
    decode::TelegramDecoder,
    facts::TelegramError,
    wire::{RawUpdate, TelegramIdentity, TelegramUpdate, TelegramUser, UpdateEnvelope},
};
use crate::{
    AcceptError, ChannelError, ChatCommand, EventSink, HealthState, clock::now, transport::CallError,
};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{StreamExt, stream::FuturesOrdered};
use pudu_texts::Language;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use teloxide_core::payloads::{AnswerCallbackQuery, GetMe};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Kinds of updates that the bot requests.
const KINDS: [&str; 3] = ["message", "edited_message", "callback_query"];
/// Maximum number of updates in one response.
const BATCH: u8 = 100;
/// How long Telegram keeps a poll open, in seconds. A lost poll is detected only after this plus the timeout of a call.
const POLL: u64 = 5;
/// Timeout of the last call at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The offset is reset after this time without updates: after a week, Telegram chooses the next number at random, and
/// it may be lower.
const QUIET: Duration = Duration::from_secs(6 * 24 * 3600);
/// Maximum number of presses waiting to be answered.
const PRESSES: usize = 256;

impl TelegramChannel {
    pub(super) async fn receive(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> Result<(), ChannelError> {
        let started = tokio::select! {
            biased;
            started = self.start() => started,
            () = stop.cancelled() => Ok(()),
        };
        let result = match (started, &self.config.mode) {
            (Err(error), _) => Err(error),
            (Ok(()), TelegramUpdateMode::Polling) => LongPoll::new(self, sink).run(&stop).await,
            (Ok(()), TelegramUpdateMode::Webhook { .. }) => {
                stop.cancelled().await;
                Ok(())
            }
        };
        match &result {
            Ok(()) => self.health.stopped(),
            Err(error @ ChannelError::Auth(_)) => {
                self.health.failed(HealthState::AuthFailed, error.to_string());
            }
            Err(error) => self.health.failed(HealthState::Stopped, error.to_string()),
        }
        result
    }

    /// Fetches the bot's identity, sets how updates are delivered, and registers the commands.
    async fn start(&self) -> Result<(), ChannelError> {
        let me =
            self.retry_until_answered(|| self.client.ask::<_, TelegramUser>(&GET_ME, CALL_TIMEOUT)).await?;
        let wants_all = !self.config.require_mention || self.config.reads_groups;
        if wants_all && !me.can_read_all_group_messages {
            tracing::warn!(
                "found privacy mode on: in groups the bot receives only commands, mentions and replies to it"
            );
        }
        let me = TelegramIdentity { id: me.id, username: me.username.unwrap_or_default() };
        tracing::info!(account = self.config.account, username = me.username, "connected to Telegram");
        // Never overwritten: a token always belongs to the same bot.
        let _ = self.me.set(me);
        let (method, wanted) = self.way_of_updates();
        self.retry_until_answered(|| self.client.ask_by_name::<_, bool>(method, &wanted, CALL_TIMEOUT))
            .await?;
        self.tell_commands().await;
        self.health.ready();
        Ok(())
    }

    fn way_of_updates(&self) -> (&'static str, Value) {
        match &self.config.mode {
            TelegramUpdateMode::Polling => ("DeleteWebhook", json!({"drop_pending_updates": false})),
            TelegramUpdateMode::Webhook { url, secret_token } => {
                let secret = secret_token.expose_secret();
                ("SetWebhook", json!({"url": url, "secret_token": secret, "allowed_updates": KINDS}))
            }
        }
    }

    /// Sets the menu of commands: a default one, and one per further language of users' apps.
    async fn tell_commands(&self) {
        let commands = &self.config.commands;
        let others = commands.iter().flat_map(|command| &command.translations).map(|(language, _)| *language);
        let others: BTreeSet<&str> = others.map(Language::primary).collect();
        for own in std::iter::once(None).chain(others.into_iter().map(Some)) {
            let help = |command: &ChatCommand| {
                let own = command.translations.iter().find(|(language, _)| Some(language.primary()) == own);
                own.map_or_else(|| command.help.clone(), |(_, help)| help.clone())
            };
            let command =
                |command: &ChatCommand| json!({"command": command.name, "description": help(command)});
            let mut menu = json!({"commands": commands.iter().map(command).collect::<Vec<_>>()});
            if let Some(own) = own {
                menu["language_code"] = own.into();
            }
            if let Err(error) = self.client.ask_by_name::<_, bool>("SetMyCommands", &menu, CALL_TIMEOUT).await
            {
                tracing::warn!(%error, "failed to set the menu of commands");
            }
        }
    }

    /// Repeats a call until it succeeds or is permanently refused.
    async fn retry_until_answered<T, F>(&self, call: impl Fn() -> F) -> Result<T, ChannelError>
    where
        F: Future<Output = Result<T, TelegramError>>,
    {
        let mut backoff = patient();
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(CallError::Refused(what)) => return Err(ChannelError::Config(what)),
                Err(error) => sleep(self.trouble(error, &mut backoff)?).await,
            }
        }
    }

    /// Records a failure and returns how long to wait.
    fn trouble(
        &self,
        error: TelegramError,
        backoff: &mut ExponentialBackoff,
    ) -> Result<Duration, ChannelError> {
        if let CallError::Auth(what) = error {
            return Err(ChannelError::Auth(what));
        }
        let pause = backoff.next().unwrap_or(CALL_TIMEOUT);
        tracing::warn!(account = self.config.account, %error, "failed to get updates");
        self.health.failed(HealthState::Degraded, error.to_string());
        Ok(if let CallError::Wait(after) = error { after.max(pause) } else { pause })
    }
}

pub(super) const GET_ME: GetMe = GetMe {};

fn patient() -> ExponentialBackoff {
    // Users wait no longer than this after Telegram has recovered.
    let (least, longest) = (Duration::from_millis(500), Duration::from_secs(2));
    let backoff = ExponentialBuilder::default().with_min_delay(least).with_max_delay(longest);
    backoff.without_max_times().with_jitter().build()
}

/// The long poll of one bot.
struct LongPoll<'a> {
    telegram: &'a TelegramChannel,
    sink: &'a dyn EventSink,
    /// Number of the first update to request.
    offset: i64,
    /// Offset that was last confirmed to Telegram.
    confirmed: i64,
    last_update: Instant,
    backoff: ExponentialBackoff,
    /// Whether the last call failed. The next one then returns at once, to show whether it works again.
    last_call_failed: bool,
    /// Answers to presses in progress.
    presses: JoinSet<()>,
}

impl<'a> LongPoll<'a> {
    fn new(telegram: &'a TelegramChannel, sink: &'a dyn EventSink) -> Self {
        Self {
            telegram,
            sink,
            offset: 0,
            confirmed: 0,
            last_update: Instant::now(),
            backoff: patient(),
            last_call_failed: false,
            presses: JoinSet::new(),
        }
    }

    async fn run(mut self, stop: &CancellationToken) -> Result<(), ChannelError> {
        while !stop.is_cancelled() {
            if self.last_update.elapsed() > QUIET {
                self.offset = 0;
            }
            let batch = tokio::select! {
                biased;
                batch = self.ask(if self.last_call_failed { 0 } else { POLL }) => batch,
                () = stop.cancelled() => break,
            };
            let pause = match batch {
                Ok(batch) => self.offer_batch(&batch).await,
                Err(error) => Some(self.telegram.trouble(error, &mut self.backoff)?),
            };
            self.last_call_failed = pause.is_some();
            match pause {
                None => self.backoff = patient(),
                Some(pause) => {
                    // `stop` may cut the pause short, which loses nothing.
                    let _ = timeout(pause, stop.cancelled()).await;
                }
            }
        }
        self.confirm().await;
        Ok(())
    }

    async fn ask(&self, seconds: u64) -> Result<Vec<RawUpdate>, TelegramError> {
        let wanted =
            json!({"offset": self.offset, "limit": BATCH, "timeout": seconds, "allowed_updates": KINDS});
        let patience = Duration::from_secs(seconds) + CALL_TIMEOUT;
        self.telegram.client.ask_by_name("GetUpdates", &wanted, patience).await
    }

    /// Passes a batch to the sink, in order and concurrently, so that the store can write it in one go. Returns the
    /// delay before a retry if not all updates were accepted.
    async fn offer_batch(&mut self, batch: &[RawUpdate]) -> Option<Duration> {
        self.confirmed = self.offset;
        if !batch.is_empty() {
            self.last_update = Instant::now();
            self.telegram.health.event(now());
        }
        let numbered: FuturesOrdered<_> = batch.iter().map(|raw| self.offer(raw)).collect();
        let offered: Vec<_> = numbered.collect().await;
        for (id, result) in offered {
            match result {
                Ok(pressed) => {
                    self.offset = self.offset.max(id.map_or(0, |id| id + 1));
                    self.answer(pressed);
                }
                Err(refusal) => return Some(self.refused(&refusal)),
            }
        }
        self.telegram.health.ready();
        None
    }

    fn refused(&mut self, refusal: &AcceptError) -> Duration {
        tracing::warn!(account = self.telegram.config.account, %refusal, "failed to accept updates; Telegram keeps them");
        self.telegram.health.failed(HealthState::Degraded, refusal.to_string());
        self.backoff.next().unwrap_or(CALL_TIMEOUT)
    }

    /// Passes one update to the sink. Returns its number and the press to answer.
    async fn offer(&self, raw: &RawUpdate) -> (Option<i64>, Result<Option<String>, AcceptError>) {
        let Ok(UpdateEnvelope { update_id }) = serde_json::from_str(raw.get()) else {
            tracing::warn!("dropped update: no number");
            return (None, Ok(None));
        };
        (Some(update_id), self.keep(update_id, raw).await)
    }

    async fn keep(&self, update_id: i64, raw: &RawUpdate) -> Result<Option<String>, AcceptError> {
        let Ok(update) = serde_json::from_str::<TelegramUpdate>(raw.get()) else {
            tracing::warn!(update_id, kind = kind(raw), "dropped update: decode error");
            return Ok(None);
        };
        let TelegramChannel { config, me, state, .. } = self.telegram;
        record_message_id(&state.chats, &update);
        let Some(me) = me.get() else { return Ok(None) };
        let decoder =
            TelegramDecoder { account: &config.account, me, require_mention: config.require_mention };
        let Some(delivery) = decoder.decode(&update, now()) else {
            tracing::debug!(update_id, "dropped update: it does not concern the bot");
            return Ok(None);
        };
        self.sink.accept(delivery.inbound).await?;
        Ok(delivery.pressed)
    }

    /// Ends the pending state of a pressed button. Best effort: Telegram ends it after a while anyway.
    fn answer(&mut self, pressed: Option<String>) {
        while self.presses.try_join_next().is_some() {}
        let Some(query) = pressed.filter(|_| self.presses.len() < PRESSES) else { return };
        let client = Arc::clone(&self.telegram.client);
        self.presses.spawn(answer_press(client, query));
    }

    /// Confirms the stored updates to Telegram, so that they are not redelivered after a clean restart.
    async fn confirm(&self) {
        if self.offset > self.confirmed {
            let wanted = json!({"offset": self.offset, "limit": 1, "timeout": 0, "allowed_updates": KINDS});
            let request = self.telegram.client.ask_by_name::<_, Vec<RawUpdate>>(
                "GetUpdates",
                &wanted,
                SHUTDOWN_TIMEOUT,
            );
            if let Err(error) = request.await {
                tracing::debug!(%error, "failed to confirm updates; they will be redelivered");
            }
        }
    }
}

async fn answer_press(client: Arc<TelegramClient>, query: String) {
    let query = AnswerCallbackQuery::new(teloxide_core::types::CallbackQueryId(query));
    if let Err(error) = client.ask::<_, bool>(&query, CALL_TIMEOUT).await {
        tracing::debug!(%error, "failed to answer press");
    }
}

/// Returns the kind of an update, without its content.
fn kind(raw: &RawUpdate) -> String {
    let fields: serde_json::Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
    fields.into_iter().map(|(name, _)| name).find(|name| name != "update_id").unwrap_or_default()
}

/// Records the number of an update's message.
pub(super) fn record_message_id(chats: &Chats, update: &TelegramUpdate) {
    if let Some(message) = &update.message {
        chats.record_seen(message.chat.id, message.message_id);
    }
}

#[cfg(test)]
mod tests;
