//! The messages of one reply on Feishu.
//!
//! A message is a CardKit card with streamed text. The card's id is stored before the message is sent, so that a
//! repeated send after a crash shows the same card under the same key and creates only one message: the platform
//! remembers a key for an hour. After that, the message is searched for in the chat.
//!
//! Operations on a card have sequence numbers that must increase, even across restarts. The number is the age of the
//! card in milliseconds, so it need not be stored. Only if the clock was set back is an offset added, and stored before
//! it is used.
//!
//! If CardKit is unavailable (an older tenant, a missing scope), the message is a plain card that is replaced. If cards
//! are rejected altogether, it is a post or a text, sent when the answer is complete. The first form that works is kept
//! for the whole reply.

use super::{
    card::FeishuPage,
    chat_client::{FeishuChatClient, Operation},
    facts::{CAPABILITIES, FeishuError},
    upload,
};
use crate::{
    OutFile, SendError,
    clock::now,
    reply::{
        Capabilities, EditOutcome, FoundFile, MessageDraft, MessageHistory, MessageRef, NumberedChoices,
        PlatformMessages, SendIntent, UncertainFile,
    },
    transport::CallError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// How long a key is valid, in milliseconds: the platform's hour, less a margin for latency.
const KEY: i64 = 55 * 60 * 1000;
/// Margin that the reply subtracts from the time of an intent, in milliseconds.
const MARGIN: i64 = 3600 * 1000;
/// Known messages to exclude are read from this long before an intent, in milliseconds.
const BEFORE: i64 = 10 * 60 * 1000;
/// Maximum clock difference between this machine and the platform, in milliseconds.
const SKEW: i64 = 60 * 1000;
/// Increments of the sequence number's offset, in milliseconds, used if the clock was set back.
const JUMPS: [i32; 3] = [1_000, 100_000, 10_000_000];

/// How a reply is shown, best form first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// A card with streamed text.
    Stream,
    /// A card that is replaced.
    Card,
    /// A post, sent when the answer is complete.
    Post,
    /// A text, sent when the answer is complete.
    Text,
}

impl Way {
    fn next_fallback(self) -> Option<Self> {
        match self {
            Self::Stream => Some(Self::Card),
            Self::Card => Some(Self::Post),
            Self::Post => Some(Self::Text),
            Self::Text => None,
        }
    }
}

/// The messages of one reply.
pub(super) struct FeishuMessages {
    chat_client: FeishuChatClient,
    way: Way,
    cards: HashMap<String, Face>,
    /// Number of times that the offset was increased.
    jumps: usize,
}

/// In-memory state of a card.
#[derive(Clone, Debug, Default)]
struct Face {
    /// The last sequence number used.
    sequence: i32,
    /// The page that the card shows; `None` if unknown.
    page: Option<FeishuPage>,
}

/// Record of a sent message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FeishuMessageRef {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    card: Option<CreatedCard>,
}

/// Record of a created card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedCard {
    id: String,
    /// Time of creation, in milliseconds since 1970.
    at: i64,
    /// Offset of its sequence numbers from the clock, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    ahead: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(ahead: &i32) -> bool {
    *ahead == 0
}

impl MessageRef for FeishuMessageRef {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn from_id(id: &str) -> Option<Self> {
        Some(Self { id: id.to_owned(), card: None })
    }
}

impl FeishuMessages {
    pub(super) fn new(chat_client: FeishuChatClient) -> Self {
        Self { chat_client, way: Way::Stream, cards: HashMap::new(), jumps: 0 }
    }

    /// Switches the reply to the next simpler form. Returns false if there is none.
    fn degrade(&mut self, why: &FeishuError) -> bool {
        let Some(worse) = self.way.next_fallback() else { return false };
        tracing::warn!(%why, from = ?self.way, to = ?worse, "showing reply in a simpler form");
        self.way = worse;
        true
    }

    /// Performs an operation on a card with the next sequence number. Retries once if the number is refused: a previous
    /// process may have used it, and the clock has advanced since.
    async fn operate(&mut self, card: &CreatedCard, operation: &Operation<'_>) -> Result<(), FeishuError> {
        match self.operate_once(card, operation).await {
            Err(failure) if failure.is_sequence() => self.operate_once(card, operation).await,
            result => result,
        }
    }

    async fn operate_once(
        &mut self,
        card: &CreatedCard,
        operation: &Operation<'_>,
    ) -> Result<(), FeishuError> {
        let face = self.cards.entry(card.id.clone()).or_default();
        let next = || {
            let age = i32::try_from((now() - card.at).max(1)).unwrap_or(i32::MAX);
            face.sequence = face.sequence.saturating_add(1).max(age.saturating_add(card.ahead));
            face.sequence
        };
        self.chat_client.operate(&card.id, operation, next).await
    }

    /// Increases the offset of a card's sequence numbers. Returns false after too many attempts.
    fn jump(&mut self, card: &mut CreatedCard) -> bool {
        let Some(jump) = JUMPS.get(self.jumps) else { return false };
        tracing::warn!(jump, "advancing the card's sequence numbers: the clock was set back");
        self.jumps += 1;
        card.ahead = card.ahead.saturating_add(*jump);
        true
    }

    /// Makes a card show a page.
    async fn show(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        let before = self.cards.get(&card.id).and_then(|face| face.page.clone());
        let streams = before.as_ref().is_some_and(|before| before.choices == page.choices && !before.done)
            && !page.done;
        // Until this call succeeds, the shown content is unknown.
        self.cards.entry(card.id.clone()).or_default().page = None;
        if streams {
            self.stream(card, page).await?
        } else {
            self.replace(card, page).await?
        }
        self.cards.entry(card.id.clone()).or_default().page = Some(page.clone());
        Ok(())
    }

    /// Streams text into a card. Reopens the stream, which the platform closes after ten minutes.
    async fn stream(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        let text = Operation::Text(&page.markdown);
        match self.operate(card, &text).await {
            Err(failure) if failure.is_closed() => {}
            result => return result,
        }
        self.operate(card, &Operation::Open).await?;
        match self.operate(card, &text).await {
            Err(failure) if failure.is_closed() => self.operate(card, &Operation::Whole(page)).await,
            result => result,
        }
    }

    /// Replaces the card. For a final page it also closes the stream; otherwise the card would look unfinished forever.
    async fn replace(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        self.operate(card, &Operation::Whole(page)).await?;
        if page.done {
            self.operate(card, &Operation::Close(page)).await?;
        }
        Ok(())
    }

    /// Sends a page in the current form.
    async fn send(
        &mut self,
        intent: &SendIntent<Option<CreatedCard>>,
        page: &FeishuPage,
    ) -> Result<FeishuMessageRef, FeishuError> {
        let (key, first) = (intent.key.as_str(), intent.n == 0);
        let card = intent.dedup_key.clone().filter(|_| self.way == Way::Stream);
        let (kind, content) = match (self.way, &card) {
            (Way::Stream, Some(card)) => {
                match self.fill_card(card, page).await {
                    // The message may already exist; an update will show the page.
                    Err(failure) if failure.is_sequence() && intent.again => {}
                    dressed => dressed?,
                }
                ("interactive", json!({"type": "card", "data": {"card_id": card.id}}))
            }
            (Way::Stream | Way::Card, _) => ("interactive", page.card(false)),
            (Way::Post, _) => ("post", page.post()),
            (Way::Text, _) => ("text", page.text()),
        };
        let id = self.chat_client.send(kind, &content, key, first).await?;
        Ok(FeishuMessageRef { id, card })
    }

    /// Makes a card show a page before it is sent. A new card shows a placeholder.
    async fn fill_card(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        let shows = self.cards.get(&card.id).and_then(|face| face.page.as_ref()) == Some(page);
        if shows { Ok(()) } else { self.show(card, page).await }
    }

    async fn make_card(&mut self) -> Result<Option<CreatedCard>, SendError> {
        let at = now();
        match self.chat_client.make_card().await {
            Ok(id) => {
                let face = Face { sequence: 0, page: Some(FeishuPage::sign()) };
                self.cards.insert(id.clone(), face);
                Ok(Some(CreatedCard { id, at, ahead: 0 }))
            }
            Err(failure) if failure.is_refused() => {
                self.degrade(&failure);
                Ok(None)
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

impl PlatformMessages for FeishuMessages {
    type Page = FeishuPage;
    type Ref = FeishuMessageRef;
    /// The card that the message will show.
    type DedupKey = Option<CreatedCard>;

    const CAPABILITIES: Capabilities = CAPABILITIES;

    fn capabilities(&self) -> Capabilities {
        let cards = matches!(self.way, Way::Stream | Way::Card);
        Capabilities { edits: cards, buttons: cards, ..Self::CAPABILITIES }
    }

    fn page(&self, draft: &MessageDraft) -> FeishuPage {
        FeishuPage::new(draft)
    }

    fn overfull(&self, page: &FeishuPage) -> bool {
        page.is_overfull()
    }

    fn first(&self, page: &FeishuPage) -> FeishuPage {
        if self.way == Way::Stream { FeishuPage::sign() } else { page.clone() }
    }

    fn numbered_choices(&self) -> Option<&Arc<NumberedChoices>> {
        Some(&self.chat_client.state.numbered)
    }

    fn recovery(&self) -> Option<crate::recovery::Recovery> {
        Some(self.chat_client.state.client.transport.writes.clone())
    }

    async fn ready(&mut self) {
        self.chat_client.ready().await;
    }

    fn check_rate_limit(&self) -> Result<(), CallError> {
        Ok(self.chat_client.check_rate_limit()?)
    }

    async fn dedup_key(
        &mut self,
        before: Option<Option<CreatedCard>>,
        _since: i64,
        _ledger: &MessageHistory<'_>,
    ) -> Result<Option<CreatedCard>, SendError> {
        match before {
            Some(mark) => Ok(mark),
            None if self.way == Way::Stream => self.make_card().await,
            None => Ok(None),
        }
    }

    /// Returns `None` for an hour, while the platform recognises a repetition by its key. After that, looks for an
    /// unrecorded message of the bot.
    async fn find(
        &mut self,
        intent: &SendIntent<Option<CreatedCard>>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<FeishuMessageRef>, SendError> {
        let intended = intent.since + MARGIN;
        if now() - intended < KEY {
            return Ok(None);
        }
        // Any attempt may have created the message, including the last one.
        let own = self.chat_client.own_between(intended - SKEW, now() + SKEW).await?;
        let known = history.known_messages(intended - BEFORE).await?;
        let known: HashSet<&str> = known.iter().map(|one| one.message.as_str()).collect();
        let unknown = own.into_iter().find(|id| !known.contains(id.as_str()) && !history.own.contains(id));
        Ok(unknown.map(|id| FeishuMessageRef { id, card: intent.dedup_key.clone() }))
    }

    async fn post(
        &mut self,
        intent: &SendIntent<Option<CreatedCard>>,
        page: &FeishuPage,
    ) -> Result<FeishuMessageRef, CallError> {
        loop {
            match self.send(intent, page).await {
                // A card that cannot be updated may still be accepted when it is sent whole.
                Err(failure)
                    if (failure.may_pass_otherwise()
                        || (self.way == Way::Stream && failure.is_refused()))
                        && self.degrade(&failure) => {}
                result => return Ok(result?),
            }
        }
    }

    async fn edit(
        &mut self,
        sent: &mut FeishuMessageRef,
        page: &FeishuPage,
    ) -> Result<EditOutcome, CallError> {
        let result = match (&mut sent.card, self.capabilities().edits) {
            // Only a final page replaces a message that cannot change.
            (_, false) if page.done => return Err(unchangeable()),
            (_, false) => return Ok(EditOutcome::Shown),
            (Some(card), true) => match self.show(&card.clone(), page).await {
                Err(failure) if failure.is_sequence() && self.jump(card) => {
                    return Ok(EditOutcome::SaveFirst);
                }
                shown => shown,
            },
            (None, true) => self.chat_client.patch(&sent.id, page).await,
        };
        match result {
            // A new message in a simpler form replaces it.
            Err(failure) if failure.may_pass_otherwise() && self.degrade(&failure) => Err(unchangeable()),
            result => Ok(result.map(|()| EditOutcome::Shown)?),
        }
    }

    async fn delete(&mut self, sent: &FeishuMessageRef) -> Result<(), CallError> {
        Ok(self.chat_client.delete(&sent.id).await?)
    }

    /// Returns whether the file can be sent again: the platform recognises a repetition by its key, for an hour.
    async fn find_file(&mut self, lost: &UncertainFile<'_>) -> Result<FoundFile, SendError> {
        let known = (0..KEY).contains(&now().saturating_sub(lost.since));
        Ok(if known { FoundFile::Repeatable } else { FoundFile::Perhaps })
    }

    async fn upload(&mut self, key: &str, file: &OutFile, size: u64) -> Result<String, CallError> {
        Ok(upload::send(&self.chat_client, key, file, size).await?)
    }

    fn platform_state(&self) -> Value {
        if self.way == Way::Stream { Value::Null } else { json!({"way": self.way}) }
    }

    fn restore_platform_state(&mut self, memo: &Value) {
        if let Ok(way) = serde_json::from_value(memo["way"].clone()) {
            self.way = way;
        }
    }
}

/// Returns the error for a message that cannot change.
fn unchangeable() -> CallError {
    CallError::Gone("the message cannot change".to_owned())
}

#[cfg(test)]
mod tests;
