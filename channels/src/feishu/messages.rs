//! The messages of one reply on Feishu.
//!
//! A message is a card of CardKit, whose text streams in. Its id is kept before the message is sent, so that a repeated
//! send after a crash shows the same card under the same key and makes only one message: the platform knows a key for
//! an hour. After that the message is looked for in the chat.
//!
//! Operations on a card carry numbers that must grow, also over a restart. They are the milliseconds since the
//! card was made, so that nothing has to be written down for them: one that is ahead of the clock, because the
//! clock went back, is kept before it is used.
//!
//! If cards of CardKit cannot be had (an older tenant, a scope that is missing) the message is a plain card
//! that is replaced, and if cards do not pass at all a post or a text, sent when the answer is whole. The
//! form that was found to work is kept for the whole reply.

use super::{
    card::FeishuPage,
    chat_client::{FeishuChatClient, Operation},
    download::MAX_DOWNLOAD_BYTES,
    failure::FeishuError,
    upload,
};
use crate::{
    OutFile, SendError,
    clock::now,
    reply::{
        Capabilities, EditOutcome, FoundFile, MessageDraft, MessageHistory, MessageRef, NumberedChoices,
        PlatformMessages, SendIntent,
    },
    split::{Limit, Unit},
    transport::CallError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The platform knows a key for an hour; a little less, for the way there.
const KEY: i64 = 55 * 60 * 1000;
/// Margin that the engine subtracts from the time of an intent, in milliseconds.
const MARGIN: i64 = 3600 * 1000;
/// Time before an intent from which on known messages are asked for, in milliseconds.
const BEFORE: i64 = 10 * 60 * 1000;
/// Maximum clock difference between this machine and the platform, in milliseconds.
const SKEW: i64 = 60 * 1000;
/// How far ahead of the clock numbers go where the clock's are not above the last one.
const JUMPS: [i32; 3] = [1_000, 100_000, 10_000_000];

/// How a reply is shown, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// A card whose text streams in.
    Stream,
    /// A card that is replaced.
    Card,
    /// A post when the answer is whole.
    Post,
    /// A text when the answer is whole.
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
    /// How often numbers were put ahead of the clock.
    jumps: usize,
}

/// In-memory state of a card.
#[derive(Clone, Debug, Default)]
struct Face {
    /// The last number that was used.
    sequence: i32,
    /// The page it shows; `None` if that is not known.
    page: Option<FeishuPage>,
}

/// A message that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FeishuMessageRef {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    card: Option<CreatedCard>,
}

/// A card that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CreatedCard {
    id: String,
    /// When, in milliseconds since 1970.
    at: i64,
    /// How far its numbers are ahead of the clock.
    #[serde(default, skip_serializing_if = "is_zero")]
    ahead: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
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

    /// Shows a reply in a worse way from now on. False where there is none.
    fn degrade(&mut self, why: &FeishuError) -> bool {
        let Some(worse) = self.way.next_fallback() else { return false };
        tracing::warn!(%why, from = ?self.way, to = ?worse, "showing reply in a simpler way");
        self.way = worse;
        true
    }

    /// Does something with a card under the next number. One that is refused was perhaps used by a process before this
    /// one: the clock has gone on since.
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

    /// Puts a card's numbers further ahead of the clock. False where that was tried often enough.
    fn jump(&mut self, card: &mut CreatedCard) -> bool {
        let Some(jump) = JUMPS.get(self.jumps) else { return false };
        tracing::warn!(jump, "advancing card's numbers: the clock went back");
        self.jumps += 1;
        card.ahead = card.ahead.saturating_add(*jump);
        true
    }

    /// Makes a card show a page.
    async fn show(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        let before = self.cards.get(&card.id).and_then(|face| face.page.clone());
        let streams = before.as_ref().is_some_and(|before| before.choices == page.choices && !before.done)
            && !page.done;
        // Until the result of this call is known, the shown content is unknown.
        self.cards.entry(card.id.clone()).or_default().page = None;
        if streams {
            self.stream(card, page).await?
        } else {
            self.replace(card, page).await?
        }
        self.cards.entry(card.id.clone()).or_default().page = Some(page.clone());
        Ok(())
    }

    /// Streams text in. The platform closes a stream after ten minutes: it is opened again.
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

    /// Replaces the card. A finished one closes the stream besides, or it would be "being written" for ever.
    async fn replace(&mut self, card: &CreatedCard, page: &FeishuPage) -> Result<(), FeishuError> {
        self.operate(card, &Operation::Whole(page)).await?;
        if page.done {
            self.operate(card, &Operation::Close(page)).await?;
        }
        Ok(())
    }

    /// Sends a page in the present way.
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
                    // It is there already, perhaps: a change will show the page.
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

    /// Makes a card show a page before it is sent. A new one shows the sign.
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
    /// The card that the message is to show.
    type DedupKey = Option<CreatedCard>;

    const CAPABILITIES: Capabilities = Capabilities {
        platform: "Feishu",
        // Entities and escapes make it longer: a text that becomes too long is cut smaller.
        text: Limit { unit: Unit::Bytes, max: 20_000, columns: 56 },
        max_upload_bytes: upload::MAX_UPLOAD_BYTES,
        max_download_bytes: MAX_DOWNLOAD_BYTES,
        edits: true,
        deletes: true,
        buttons: true,
        idempotent_send: true,
    };

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

    /// The platform knows a repetition for an hour. After that a message is looked for that no record knows.
    async fn find(
        &mut self,
        intent: &SendIntent<Option<CreatedCard>>,
        history: &MessageHistory<'_>,
    ) -> Result<Option<FeishuMessageRef>, SendError> {
        let intended = intent.since + MARGIN;
        if now() - intended < KEY {
            return Ok(None);
        }
        // It may have come about by any try, the last one included.
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
                // A card that takes no change may be one that can be sent whole.
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
            // Only a complete page replaces a message that cannot change.
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
            // Another message, in a simpler way, takes its place.
            Err(failure) if failure.may_pass_otherwise() && self.degrade(&failure) => Err(unchangeable()),
            result => Ok(result.map(|()| EditOutcome::Shown)?),
        }
    }

    async fn delete(&mut self, sent: &FeishuMessageRef) -> Result<(), CallError> {
        Ok(self.chat_client.delete(&sent.id).await?)
    }

    /// The platform knows a repetition for an hour.
    async fn find_file(
        &mut self,
        _key: &str,
        since: i64,
        _file: &OutFile,
        _size: u64,
        _ledger: &MessageHistory<'_>,
    ) -> Result<FoundFile, SendError> {
        let known = (0..KEY).contains(&now().saturating_sub(since));
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

/// A message that cannot change.
fn unchangeable() -> CallError {
    CallError::Gone("the message cannot change".to_owned())
}

#[cfg(test)]
mod tests;
