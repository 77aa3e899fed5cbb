//! One reply: messages that grow in place, each sent exactly once even if the process crashes in between.
//!
//! The code is the same for every platform; the differences are in [`PlatformMessages`]. Every message of a reply goes
//! through four steps:
//!
//! 1. *intend*: the reply store records that a message is about to be sent, and data for finding it again;
//! 2. *send*: with an idempotency key, on platforms that support one;
//! 3. *record*: the reply store records the message's id;
//! 4. *change*: further text is added by edits, which may be repeated.
//!
//! If an intent has no id, after a crash or a call without a response, [`PlatformMessages::find`] looks for the message
//! first. If it finds nothing, the message is sent under the same intent.
//!
//! Files stay uncertain on platforms with neither keys nor a history (see [`outgoing`]).

mod ask;
mod messages;
mod numbered_choices;
mod outgoing;
mod pages;
mod record;
mod removal;
mod typing;

pub(crate) use messages::{
    Capabilities, EditOutcome, FoundFile, MessageHistory, MessageRef, PlatformMessages, SendIntent,
    UncertainFile,
};
pub(crate) use numbered_choices::NumberedChoices;
pub(crate) use pages::{MessageDraft, SIGN};
pub(crate) use typing::Typing;

use crate::{
    Address, BoxFuture, FinalView, Hurry, LiveReply, OutFile, ReplyHandle, ReplyStore, ReplyStoreError,
    ReplyTarget, ReplyView, SendError,
    clock::{millis, now},
    recovery::Backoff,
    render::parse,
    transport::{CallError, KeyedLock},
};
use numbered_choices::NumberedPrompt;
use pudu_texts::Language;
use record::{RecordPart, ReplyRecord, fresh_key};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Margin subtracted from the time of an intent: earlier messages may be recorded later, and clocks differ.
const MARGIN: Duration = Duration::from_secs(3600);
/// Maximum number of times that a vanishing message is sent.
const ROUNDS: usize = 2;
/// Maximum number of times that one edit may require the record to be saved first.
const KEEPS: usize = 8;

/// A reply in delivery.
pub(crate) struct PlatformReply<M: PlatformMessages> {
    messages: M,
    address: Address,
    language: Language,
    record: ReplyRecord<M::Ref, M::DedupKey>,
    store: Box<dyn ReplyStore>,
    /// Whether the record has changes that are not stored yet.
    unsaved: bool,
    /// The page that each part shows, as far as this process knows.
    shown: Vec<Option<M::Page>>,
    /// The numbered question, while it is open.
    offer: Option<NumberedPrompt>,
    /// Whether the question was asked before a restart and nothing has been shown since.
    taken_up: bool,
    typing: Option<Typing>,
    /// Whether the final choices are listed with numbers.
    lists: bool,
    /// Whether only a note is added: existing messages are not replaced for it.
    noting: bool,
    /// Signals that a user waits for the end.
    hurry: Hurry,
    /// Time of the last upload with an unknown outcome, as far as this process knows.
    lost: Option<Instant>,
    /// Delays between attempts to show the final view.
    backoff: Backoff,
    /// Whether a rate limit slot for an unfinished view is reserved.
    has_place: bool,
    /// When the reply was opened in this process.
    opened: Instant,
    /// When a withheld view is due.
    withheld: Option<Instant>,
}

impl<M: PlatformMessages> LiveReply for PlatformReply<M> {
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(async {
            if !self.has_place {
                self.messages.ready().await;
                self.has_place = true;
            }
        })
    }

    fn next_refresh<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        let withheld = self.withheld;
        Box::pin(async move {
            tokio::select! {
                biased;
                () = self.messages.next_refresh() => {}
                () = sleep_until(withheld.unwrap_or(self.opened)), if withheld.is_some() => self.withheld = None,
            }
        })
    }

    fn set_hurry(&mut self, hurry: Hurry) {
        self.hurry = hurry;
    }

    fn pause<'a>(&'a mut self, wait: Duration) -> BoxFuture<'a, ()> {
        match self.messages.recovery() {
            // The platform's recovery does not reveal the outcome of that message; only waiting limits duplicates.
            Some(recovery) if !self.messages.doubtful() => {
                Box::pin(async move { self.backoff.pause(&recovery, wait).await })
            }
            _ => Box::pin(tokio::time::sleep(wait)),
        }
    }

    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            self.withheld = self.withhold(view);
            if self.withheld.is_some() {
                return Ok(());
            }
            self.has_place = false;
            self.show_growing(view).await
        })
    }

    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(async move {
            self.backoff.start_try();
            self.end(view).await
        })
    }
}

impl<M: PlatformMessages> PlatformReply<M> {
    /// Starts a reply, or resumes the one saved in `target`.
    pub(crate) fn open(mut messages: M, target: &ReplyTarget, store: Box<dyn ReplyStore>) -> Self {
        let restore = |handle: &ReplyHandle| ReplyRecord::restore(handle, M::upgrade);
        let record = target.saved.as_ref().map(restore).unwrap_or_default();
        messages.restore_platform_state(&record.platform_state);
        // A resumed reply may already be finished: the typing indicator starts when it grows.
        let typing = target.saved.is_none().then(|| messages.typing()).flatten();
        let (address, shown) = (target.address.clone(), Vec::new());
        let offer = Self::asked_before(&messages, &record, &address);
        let taken_up = offer.is_some();
        Self {
            messages,
            address,
            language: target.language,
            record,
            store,
            unsaved: false,
            shown,
            offer,
            taken_up,
            typing,
            lists: false,
            noting: false,
            hurry: Hurry::default(),
            lost: None,
            backoff: Backoff::new(),
            has_place: false,
            opened: Instant::now(),
            withheld: None,
        }
    }

    /// Returns the time until which a view is withheld, in case the reply finishes earlier. A question is shown at
    /// once.
    fn withhold(&self, view: &ReplyView) -> Option<Instant> {
        if !self.record.parts.is_empty() || view.prompt.is_some() {
            return None;
        }
        let due = self.opened + self.messages.placeholder_delay(view.text.trim().is_empty());
        (due > Instant::now()).then_some(due)
    }

    async fn show_growing(&mut self, view: &ReplyView) -> Result<(), SendError> {
        self.messages.check_rate_limit()?;
        self.number(view).await?;
        self.save().await?;
        if self.typing.is_none() {
            self.typing = self.messages.typing();
        }
        if self.messages.capabilities().edits {
            let first = self.first_number();
            let pages = self.pages(|limit| pages::growing(view, first, limit));
            match self.show(&pages, false).await {
                // A message that cannot be edited need not grow.
                Err(SendError::Refused(_)) if !self.messages.capabilities().edits => {}
                shown => {
                    shown?;
                    self.shrink(&pages).await?;
                }
            }
            if self.messages.capabilities().edits {
                return Ok(());
            }
            // It has just turned out that messages cannot be edited.
            self.number(view).await?;
        }
        self.hold_the_place(view).await
    }

    async fn end(&mut self, view: &FinalView) -> Result<(), SendError> {
        self.typing = None;
        self.messages.check_rate_limit()?;
        self.show_end(view).await?;
        let tidied = self.messages.retry_deletions().await;
        self.save().await?;
        tidied
    }

    async fn show_end(&mut self, view: &FinalView) -> Result<(), SendError> {
        let note = view.note.as_deref().filter(|_| !self.record.parts.is_empty());
        self.noting = note.is_some();
        match note {
            Some(note) if self.record.noted.is_some() => return self.send_note(note, &view.files).await,
            _ => {}
        }
        match (self.show_final(view).await, note) {
            (Err(SendError::Refused(why)), Some(note)) => {
                tracing::warn!(why, "failed to add note to message; sending it alone");
                self.send_note(note, &view.files).await
            }
            (Err(SendError::Refused(why)), None) => self.instead(view, why).await,
            (ended, _) => ended,
        }
    }

    /// Sends a note as a separate message after those that cannot be edited, and sends the remaining files.
    async fn send_note(&mut self, note: &str, files: &[OutFile]) -> Result<(), SendError> {
        let sent_count =
            self.record.parts.iter().take_while(|part| matches!(part, RecordPart::Sent(_))).count();
        let at = *self.record.noted.get_or_insert(sent_count);
        self.post_part(at, note).await?;
        let before = self.notes(files);
        self.send_files(files).await?;
        let notes = self.notes(files);
        if notes != before {
            self.post_part(at + 1, &notes.join("\n")).await?;
        }
        self.save().await
    }

    /// Posts a separate part, unless it was already sent.
    async fn post_part(&mut self, at: usize, text: &str) -> Result<(), SendError> {
        let (rich, language) = (parse(text), self.language);
        let page =
            self.messages.page(&MessageDraft { rich, language, done: true, ..MessageDraft::default() });
        match self.record.part(at) {
            Some(_) => Ok(()),
            None => self.post(at, &page).await,
        }
    }

    /// Replaces the answer with a notice that the platform refuses it, so that no partial answer is left. Still returns
    /// the refusal.
    async fn instead(&mut self, view: &FinalView, why: String) -> Result<(), SendError> {
        tracing::error!(
            platform = M::CAPABILITIES.platform,
            why,
            "failed to deliver answer: permanently refused; sending a notice instead"
        );
        let text = self.language.answer_refused(M::CAPABILITIES.platform);
        let view = FinalView { text, choices: view.choices.clone(), ..FinalView::default() };
        match self.show_final(&view).await {
            Ok(()) | Err(SendError::Refused(_)) => Err(SendError::Refused(why)),
            Err(error) => Err(error),
        }
    }

    async fn show_final(&mut self, view: &FinalView) -> Result<(), SendError> {
        let mut first = self.conclude(view);
        self.save().await?;
        self.look_at(&view.files).await;
        // Each round except the last finds a file that cannot be sent, and adds a note about it.
        for _ in 0..=view.files.len() {
            let notes = self.notes(&view.files);
            let pages = match view.whole && !notes.is_empty() {
                true => {
                    let view = self.in_words(view).await?;
                    self.pages(|limit| pages::finished(&view, &[], first, limit, self.language))
                }
                false => self.pages(|limit| pages::finished(view, &notes, first, limit, self.language)),
            };
            self.show(&pages, true).await?;
            first = first.or_else(|| self.conclude(view));
            self.keep(pages.len()).await?;
            self.send_files(&view.files).await?;
            if self.notes(&view.files) == notes {
                break;
            }
        }
        self.save().await
    }

    /// Renders the drafts. Splits a draft whose markup makes the page too long.
    fn pages(&self, drafts: impl FnOnce(crate::split::Limit) -> Vec<MessageDraft>) -> Vec<M::Page> {
        let (language, limit) = (self.language, M::CAPABILITIES.text);
        let drafts = drafts(limit).into_iter().map(|draft| MessageDraft { language, ..draft });
        drafts.flat_map(|draft| self.fit(draft, limit.max / 2)).collect()
    }

    fn fit(&self, draft: MessageDraft, smaller: usize) -> Vec<M::Page> {
        let page = self.messages.page(&draft);
        if !self.messages.overfull(&page) || smaller < pages::SMALLEST {
            return vec![page];
        }
        let pieces = pages::halve(draft, crate::split::Limit { max: smaller, ..M::CAPABILITIES.text });
        pieces.into_iter().flat_map(|piece| self.fit(piece, smaller / 2)).collect()
    }

    async fn show(&mut self, pages: &[M::Page], finished: bool) -> Result<(), SendError> {
        for (n, page) in pages.iter().enumerate() {
            self.page(n, page, finished).await?;
        }
        Ok(())
    }

    /// Makes part `n` show `page`.
    async fn page(&mut self, n: usize, page: &M::Page, finished: bool) -> Result<(), SendError> {
        for round in 0..ROUNDS {
            if self.record.part(n).is_none() {
                let first = if finished { page.clone() } else { self.messages.first(page) };
                self.post(n, &first).await?;
            }
            if self.shown.get(n).and_then(Option::as_ref) == Some(page) {
                return Ok(());
            }
            match self.change(n, page).await {
                Ok(()) => {
                    self.now_shows(n, Some(page.clone()));
                    return Ok(());
                }
                // The message was deleted, or can no longer change. Later ones are deleted too, to keep the order.
                Err(CallError::Gone(_)) if !self.noting => self.keep(n).await?,
                Err(CallError::Wait(wait))
                    if finished && !self.noting && self.messages.posts_sooner(wait) =>
                {
                    tracing::debug!(?wait, "sending the answer as a new message: edits have to wait");
                    self.keep(n).await?;
                }
                // The final text is worth a new message. The partial one, which cannot be changed, is deleted.
                Err(CallError::Refused(why)) if finished && round == 0 && !self.noting => {
                    tracing::warn!(why, "failed to finish message; sending the answer as a new message");
                    self.keep(n).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(SendError::Refused("the message disappears as soon as it is sent".to_owned()))
    }

    /// Edits part `n`, which was sent. Saves the record first if the edit requires it.
    async fn change(&mut self, n: usize, page: &M::Page) -> Result<(), CallError> {
        for _ in 0..KEEPS {
            let Some(mut sent) = self.record.part(n).cloned() else {
                return Err(CallError::Gone("the message does not exist".to_owned()));
            };
            let edited = self.messages.edit(&mut sent, page).await;
            self.now_is_sent(n, sent);
            if edited? == EditOutcome::Shown {
                return Ok(());
            }
            let unsaved = |error: SendError| -> CallError { CallError::Unconnected(error.to_string()) };
            self.save().await.map_err(unsaved)?;
        }
        Err(CallError::Unconnected("the message required too many saves".to_owned()))
    }

    /// Sends part `n`, unless it is found on the platform.
    async fn post(&mut self, n: usize, page: &M::Page) -> Result<(), SendError> {
        let _turn: Option<KeyedLock> = self.messages.lock_chat().await;
        if let Some(sent) = self.find(n).await? {
            return self.sent(n, sent, None).await;
        }
        let intent = self.intend(n).await?;
        match self.messages.post(&intent, page).await {
            // A message that already existed shows its original content.
            Ok(sent) => self.sent(n, sent, (!intent.again).then(|| page.clone())).await,
            Err(error) => {
                // If an earlier attempt may have sent the message, it may exist even if this one failed without effect.
                if !error.may_be_done() && !intent.again {
                    self.record.parts.truncate(n);
                    self.unsaved = true;
                }
                Err(error.into())
            }
        }
    }

    async fn intend(&mut self, n: usize) -> Result<SendIntent<M::DedupKey>, SendError> {
        let before = self.record.intended(n).cloned();
        let since = now() - millis(MARGIN);
        let history = MessageHistory::new(&*self.store, self.record.ids().collect());
        let intent = match before {
            Some(SendIntent { key, since, dedup_key: mark, .. }) => {
                let mark = self.messages.dedup_key(Some(mark), since, &history).await?;
                SendIntent { n, again: true, key, since, dedup_key: mark }
            }
            None => {
                let mark = self.messages.dedup_key(None, since, &history).await?;
                SendIntent { n, again: false, key: fresh_key(), since, dedup_key: mark }
            }
        };
        self.record.set(n, RecordPart::Intended(intent.clone()));
        self.unsaved = true;
        self.save().await?;
        Ok(intent)
    }

    async fn sent(&mut self, n: usize, sent: M::Ref, page: Option<M::Page>) -> Result<(), SendError> {
        self.record.set(n, RecordPart::Sent(sent));
        self.unsaved = true;
        self.tell_who_lists();
        self.now_shows(n, page);
        self.save().await
    }

    /// Updates the record of a sent message, which an edit may change.
    fn now_is_sent(&mut self, n: usize, sent: M::Ref) {
        if let Some(RecordPart::Sent(known)) = self.record.parts.get_mut(n)
            && *known != sent
        {
            *known = sent;
            self.unsaved = true;
        }
    }

    fn now_shows(&mut self, n: usize, page: Option<M::Page>) {
        self.shown.resize(self.shown.len().max(n + 1), None);
        if let Some(shown) = self.shown.get_mut(n) {
            *shown = page;
        }
        if let Some(typing) = &self.typing {
            typing.changed();
        }
    }

    /// Looks for a part that may have been sent. The caller holds the chat's lock.
    async fn find(&mut self, n: usize) -> Result<Option<M::Ref>, SendError> {
        let Some(intent) = self.record.intended(n).cloned() else { return Ok(None) };
        let intent = SendIntent { n, ..intent };
        let history = MessageHistory::new(&*self.store, self.record.ids().collect());
        self.messages.find(&intent, &history).await
    }

    /// Stores the record if it has changed.
    async fn save(&mut self) -> Result<(), SendError> {
        let memo = self.messages.platform_state();
        self.unsaved |= memo != self.record.platform_state;
        self.record.platform_state = memo;
        if self.unsaved {
            let handle = self.record.handle().map_err(|error| ReplyStoreError(error.to_string()))?;
            self.store.save(&handle).await?;
            self.unsaved = false;
        }
        Ok(())
    }
}
