//! The messages of one reply on DingTalk.
//!
//! A card grows in place. pudu chooses its name and the ids of its changes, so repeated calls create no duplicates.
//! Without a card (no template, a user outside the organisation, a card that is not delivered or not accepted) the
//! reply consists of ordinary messages, which cannot change. If the answer takes seconds, a placeholder is sent first.
//! It is recalled when the answer is complete, and the answer follows.
//!
//! An ordinary message without a response stays uncertain: DingTalk has no idempotency key for it and does not list
//! sent messages. An answer is therefore sent again until DingTalk confirms it: a duplicate is better than a loss. A
//! placeholder is sent only if it can be recalled.

mod cards;
mod kept;
mod recalls;

use super::{
    DingTalkAccountState,
    card::DingTalkCard,
    decode::DingTalkHint,
    facts::{CAPABILITIES, DingTalkCase, DingTalkError, rules_out_cards},
    page::{DingTalkPage, digest},
    robot::{Robot, RobotContent, RobotTarget},
};
use crate::{
    Address, OutFile, ReplyTarget, SendError,
    name::is_picture,
    reply::{Capabilities, EditOutcome, MessageDraft, MessageHistory, NumberedChoices, PlatformMessages},
    transport::CallError,
};
use serde_json::{Map, Value, json};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

use kept::{DingDedupKey, DingIntent, DingMessageRef, StoredDedupKey, posted_message};
use recalls::Recall;

/// Maximum number of intermediate updates per reply. DingTalk's standard edition allows 10,000 calls a month.
const MAX_CARD_UPDATES: u32 = 300;
/// The interval between updates doubles after this number of updates.
const SLOWER: u32 = 60;
/// Maximum interval between updates of a card.
const MAX_REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// After this number of unconfirmed attempts to send an answer as an ordinary message, attempts are [`RARELY`] apart.
const OFTEN: u8 = 12;
/// Interval between attempts after [`OFTEN`] unconfirmed ones.
const RARELY: Duration = Duration::from_secs(10 * 60);
/// How long a reply in ordinary messages may take before a placeholder is sent.
const PLACEHOLDER_DELAY: Duration = Duration::from_secs(4);
/// Value of the button variable if there are no buttons.
const NO_BUTTONS: &str = "[]";
/// Text left in a card whose answer was sent elsewhere. A card cannot be deleted.
const MOVED: &str = "⤵";

/// The messages of one reply.
pub(super) struct DingMessages {
    state: Arc<DingTalkAccountState>,
    address: Address,
    private: bool,
    robot: Robot,
    /// Whether cards are no longer tried for this reply.
    plain: bool,
    /// Whether the reply has a working card. It then stays in cards even if other cards fail.
    carded: bool,
    /// Number of updates so far.
    changes: u32,
    /// Whether the last rendered draft belongs to a finished reply.
    finished: AtomicBool,
    /// Whether the last message was an answer that was sent as an ordinary message and got no response; `None` if this
    /// process does not know.
    lost: Option<bool>,
    /// When an answer was last sent as an ordinary message.
    tried: Option<Instant>,
    /// Whether this reply gets no placeholder, because one was refused.
    no_placeholder: bool,
    /// The card that is about to be finished for the first time.
    ends: Option<String>,
    /// Messages to recall.
    recalls: Vec<Recall>,
}

impl DingMessages {
    pub(super) fn new(state: Arc<DingTalkAccountState>, reply_target: &ReplyTarget) -> Self {
        let hint = reply_target.hint.clone().and_then(|hint| serde_json::from_value(hint).ok());
        let hint = hint.unwrap_or(DingTalkHint { staff: true, ..DingTalkHint::default() });
        let chat = reply_target.address.chat.clone();
        let target = match (reply_target.private, hint.staff) {
            (false, _) => RobotTarget::Group(chat),
            (true, true) => RobotTarget::Person(chat),
            (true, false) => RobotTarget::Session,
        };
        let plain = target == RobotTarget::Session;
        let (api, code) = (Arc::clone(&state.api), state.robot_code.clone());
        let robot = Robot { api, code, target, hint };
        Self {
            state,
            address: reply_target.address.clone(),
            private: reply_target.private,
            robot,
            plain,
            carded: false,
            changes: 0,
            finished: AtomicBool::new(false),
            lost: None,
            tried: None,
            no_placeholder: false,
            ends: None,
            recalls: Vec::new(),
        }
    }

    /// Returns whether the reply is currently shown in cards.
    fn in_cards(&self) -> bool {
        !self.plain && self.state.style.is_some() && (self.carded || !self.state.cards_rest())
    }

    fn card<'a>(&'a self, name: &'a str) -> Option<DingTalkCard<'a>> {
        let style = self.state.style.as_ref()?;
        Some(DingTalkCard { api: &self.state.api, style, robot_code: &self.state.robot_code, name })
    }

    /// Counts a call against the rate limits of the chat and the app.
    fn spend(&self) {
        self.state.pacer.spend(&self.address.chat, self.interval());
        self.state.pacer.spend(&self.state.app_key, DingTalkAccountState::PER_CALL);
    }

    /// Returns the interval between updates. It grows with their number, so even a reply of several hours costs only a
    /// few hundred calls.
    fn interval(&self) -> Duration {
        let slower = self.state.interval.saturating_mul(1 << (self.changes / SLOWER).min(10));
        slower.min(MAX_REFRESH_INTERVAL.max(self.state.interval))
    }

    fn failed(&self, failure: DingTalkError) -> CallError {
        if let CallError::Wait(wait) = failure {
            self.state.pacer.hold(&self.state.app_key, wait);
        }
        failure.into()
    }

    async fn post_message(
        &mut self,
        intent: &DingIntent,
        page: &DingTalkPage,
    ) -> Result<DingMessageRef, CallError> {
        let content = RobotContent::Markdown { title: page.title.clone(), text: page.message() };
        if !page.done {
            return self.post_sign(&content, page).await;
        }
        if intent.dedup_key.as_ref().is_some_and(|tries| tries.unconfirmed_sends >= OFTEN) {
            self.limit_retry_rate()?;
        }
        self.lost = None;
        let sent = self.robot.send(&content).await.map_err(|error| self.failed(error));
        self.lost = Some(page.done && sent.as_ref().is_err_and(CallError::may_be_done));
        sent.map(|id| posted_message(id, page))
    }

    /// Sends a placeholder that can be recalled; never to the session URL of the question.
    async fn post_sign(
        &mut self,
        content: &RobotContent,
        page: &DingTalkPage,
    ) -> Result<DingMessageRef, CallError> {
        match self.robot.send_retrievable(content).await {
            Ok(id) => Ok(posted_message(id, page)),
            Err(failure) => {
                self.no_placeholder =
                    matches!(failure, CallError::Refused(_) | CallError::Special(DingTalkCase::Forbidden(_)));
                Err(self.failed(failure))
            }
        }
    }

    /// Slows down repeated sending of an unconfirmed answer: fails if the last attempt was less than [`RARELY`] ago.
    fn limit_retry_rate(&mut self) -> Result<(), CallError> {
        let left = self.tried.map_or(Duration::ZERO, |tried| RARELY.saturating_sub(tried.elapsed()));
        if !left.is_zero() {
            return Err(CallError::Wait(left));
        }
        self.tried = Some(Instant::now());
        Ok(())
    }
}

impl PlatformMessages for DingMessages {
    type Page = DingTalkPage;
    type Ref = DingMessageRef;
    type DedupKey = StoredDedupKey;

    /// Capabilities of a reply in ordinary messages, which are sent when the reply is complete.
    const CAPABILITIES: Capabilities = CAPABILITIES;

    /// Returns the capabilities: a card can change, is created once per name, and cannot be deleted.
    fn capabilities(&self) -> Capabilities {
        if !self.in_cards() {
            return Self::CAPABILITIES;
        }
        let buttons = self.state.style.as_ref().is_some_and(|style| style.buttons_key.is_some());
        Capabilities { edits: true, deletes: false, buttons, idempotent_send: true, ..Self::CAPABILITIES }
    }

    fn page(&self, draft: &MessageDraft) -> DingTalkPage {
        self.finished.store(draft.done, Ordering::Relaxed);
        DingTalkPage::new(draft)
    }

    fn overfull(&self, page: &DingTalkPage) -> bool {
        page.is_overfull()
    }

    /// Returns the initial form of a page. It is unfinished, because a card is finished by an update whose record is
    /// stored first.
    fn first(&self, page: &DingTalkPage) -> DingTalkPage {
        DingTalkPage { done: false, ..page.clone() }
    }

    async fn abandon(&mut self, intent: &DingIntent) {
        self.finish_abandoned(&self.state.seal.name(&intent.key, self.private, &self.address)).await;
    }

    async fn holds_a_place(&mut self) -> bool {
        self.robot.target != RobotTarget::Session
            && !self.no_placeholder
            && self.state.supports_recall(&self.robot).await
    }

    fn placeholder_delay(&self, _neutral: bool) -> Duration {
        if self.in_cards() { Duration::ZERO } else { PLACEHOLDER_DELAY }
    }

    fn numbered_choices(&self) -> Option<&Arc<NumberedChoices>> {
        Some(&self.state.numbered)
    }

    fn recovery(&self) -> Option<crate::recovery::Recovery> {
        Some(self.state.api.transport.writes.clone())
    }

    fn doubtful(&self) -> bool {
        self.lost == Some(true)
    }

    async fn ready(&mut self) {
        self.state.pacer.ready(&self.state.app_key, DingTalkAccountState::PER_CALL).await;
        self.state.pacer.ready(&self.address.chat, self.interval()).await;
    }

    fn check_rate_limit(&self) -> Result<(), CallError> {
        self.state.pacer.held(&self.state.app_key).map_or(Ok(()), |left| Err(CallError::Wait(left)))
    }

    /// Counts the attempts that may have sent the answer, including one whose outcome another process did not record.
    async fn dedup_key(
        &mut self,
        before: Option<Self::DedupKey>,
        _since: i64,
        _: &MessageHistory<'_>,
    ) -> Result<Self::DedupKey, SendError> {
        let last = self.lost.take();
        let count = |tries: DingDedupKey| {
            tries.unconfirmed_sends.saturating_add(u8::from(last.unwrap_or(tries.answer)))
        };
        let (finished, before) = (self.finished.load(Ordering::Relaxed), before.flatten());
        let done = finished || before.as_ref().is_some_and(|tries| tries.done);
        Ok(Some(DingDedupKey {
            unconfirmed_sends: before.map_or(0, count),
            answer: finished && !self.in_cards(),
            done,
        }))
    }

    async fn find(&mut self, _: &DingIntent, _: &MessageHistory<'_>) -> Result<Option<Self::Ref>, SendError> {
        Ok(None)
    }

    async fn post(&mut self, intent: &DingIntent, page: &DingTalkPage) -> Result<Self::Ref, CallError> {
        self.lost = Some(false);
        self.check_rate_limit()?;
        self.spend();
        if self.in_cards() {
            if let Some(posted) = self.post_card(intent, page).await? {
                self.carded = true;
                return Ok(posted);
            }
        } else {
            self.finish_possible_card(intent).await;
        }
        // A reply that began as messages continues as messages.
        self.plain = true;
        self.post_message(intent, page).await
    }

    async fn edit(&mut self, sent: &mut Self::Ref, page: &DingTalkPage) -> Result<EditOutcome, CallError> {
        let same = sent.text_digest == digest(&[&page.words]) && sent.buttons == digest(&[&page.buttons()]);
        if same && sent.done == page.done {
            return Ok(EditOutcome::Shown);
        }
        self.carded |= sent.card;
        if !sent.card || !self.in_cards() {
            // A message that cannot change stays until the end; then another message replaces it.
            return if page.done { Err(unchangeable()) } else { Ok(EditOutcome::Shown) };
        }
        if !page.done && !page.asks && self.changes >= MAX_CARD_UPDATES {
            return Ok(EditOutcome::Shown);
        }
        let finished = sent.done || sent.ending;
        // After a restart the text of a full card is rendered again, but the card already shows it.
        if finished && !page.done && !page.asks && sent.buttons == digest(&[NO_BUTTONS]) {
            return Ok(EditOutcome::Shown);
        }
        if page.done && !finished {
            sent.ending = true;
            self.ends = Some(sent.id.clone());
            return Ok(EditOutcome::SaveFirst);
        }
        // Check this first: if the update has to wait, the card remains unfinished.
        self.check_rate_limit()?;
        let streams = !finished || (!sent.done && self.ends.take().is_some_and(|ends| ends == sent.id));
        self.spend();
        self.changes += 1;
        match self.change(sent, page, streams).await {
            Ok(()) => Ok(EditOutcome::Shown),
            Err(error) if rules_out_cards(&error) => {
                self.give_up_cards(&error);
                Err(unchangeable())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn delete(&mut self, sent: &Self::Ref) -> Result<(), CallError> {
        if sent.card {
            self.finish_abandoned(&sent.id).await;
            return Ok(());
        }
        if sent.id.is_empty() {
            return Ok(());
        }
        // The answer does not wait for the recall.
        if let Err(error) = self.recall(&sent.id).await {
            tracing::debug!(%error, "failed to recall message; trying again later");
            self.recalls.push(Recall::failed_once(&sent.id));
        }
        Ok(())
    }

    async fn retry_deletions(&mut self) -> Result<(), SendError> {
        self.recall_all().await
    }

    async fn upload(&mut self, _key: &str, file: &OutFile, _size: u64) -> Result<String, CallError> {
        self.check_rate_limit()?;
        if self.robot.target == RobotTarget::Session {
            let why = "DingTalk does not accept files for users outside the organisation";
            return Err(CallError::Refused(why.to_owned()));
        }
        self.spend();
        let picture = is_picture(&file.name);
        let kind = if picture { "image" } else { "file" };
        let id = self.state.api.upload(file, kind).await.map_err(|error| self.failed(error))?;
        let ending = Path::new(&file.name).extension().map(|ending| ending.to_string_lossy().into_owned());
        let content = if picture {
            RobotContent::Picture(id)
        } else {
            RobotContent::File(id, file.name.clone(), ending.unwrap_or_else(|| "txt".to_owned()))
        };
        self.robot.send(&content).await.map_err(|error| self.failed(error))
    }

    fn platform_state(&self) -> Value {
        let mut state = Map::new();
        if self.plain && self.robot.target != RobotTarget::Session {
            state.insert("plain".to_owned(), true.into());
        }
        if !self.recalls.is_empty() {
            state.insert("recalls".to_owned(), json!(self.recalls));
        }
        if state.is_empty() { Value::Null } else { state.into() }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        self.plain |= memo["plain"] == true;
        self.recalls = serde_json::from_value(memo["recalls"].clone()).unwrap_or_default();
    }
}

/// Returns the error for a message that cannot change.
fn unchangeable() -> CallError {
    CallError::Gone("the message cannot change".to_owned())
}

#[cfg(test)]
mod tests;
