//! One reply: a message that grows in place, there exactly once whatever is killed in between.
//!
//! Telegram has no idempotency key: to send again what may have been sent makes two. An edit, though, may be
//! repeated. So every message of a reply goes through four steps:
//!
//! 1. *intend*: the journal keeps that a message is about to be sent, and the newest number known then;
//! 2. *send*: a growing reply sends a neutral sign, a finished one its text;
//! 3. *record*: the journal keeps the message's number, before any word of a growing reply is shown;
//! 4. *edit*: words go in by edits.
//!
//! Whoever finds an intent without a number, after a crash or a call without an answer, looks for the message
//! first ([`super::search`]): it tries to change the numbers that nobody knows into the sign, which a message
//! of ours in this chat allows and anything else refuses. What it says then is the sign, so no word gets into
//! a wrong place, and Telegram's answer tells which message it answers and in which topic. A message that the
//! journal knows is never touched.
//!
//! What cannot be had: certainty about files, which no edit finds again (see [`super::outgoing`]), and about
//! a message which more than a few dozen unseen ones of other people follow, or which Telegram takes up only
//! after the search. Drafts (`sendMessageDraft`) are left out: the recorded message is on the screen already,
//! and a draft would show the same words a second time below it.

use super::{
    api::{Call, CallError, Posted, Text, Thread},
    chats::Turn,
    desk::Desk,
    pages::{self, Page},
    record::{Part, Record},
    search::{Known, Search},
    typing::Typing,
};
use crate::{BoxFuture, FinalView, Journal, JournalError, LiveReply, Placement, ReplyView, SendError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Messages that came before an intent may be recorded after it, and clocks differ.
const MARGIN: Duration = Duration::from_secs(3600);
/// How often a message that vanishes is sent anew.
const ROUNDS: usize = 2;

/// A reply on its way.
pub(super) struct Reply {
    pub(super) desk: Desk,
    pub(super) thread: Thread,
    pub(super) record: Record,
    journal: Box<dyn Journal>,
    /// The chat in which the reply began.
    home: i64,
    /// The message that is answered: those of the reply are newer.
    answered: Option<i64>,
    /// Whether the record is ahead of the journal.
    unsaved: bool,
    /// What each part shows, as far as this process knows.
    shown: Vec<Option<Text>>,
    search: Option<Search>,
    typing: Option<Typing>,
}

impl LiveReply for Reply {
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(self.desk.ready())
    }

    fn update<'a>(&'a mut self, view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(self.grow(view))
    }

    fn finish<'a>(&'a mut self, view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(self.end(view))
    }
}

impl Reply {
    /// Starts a reply, or takes one up again. `topic` and the answered message come from `placement`.
    pub(super) fn open(mut desk: Desk, placement: &Placement, journal: Box<dyn Journal>) -> Self {
        let number = |id: &Option<String>| id.as_deref().and_then(|id| id.parse().ok());
        let answered = number(&placement.reply_to);
        let thread = Thread {
            topic: number(&placement.address.topic),
            // Alone with the bot everybody knows what it answers.
            reply_to: answered.filter(|_| !placement.private),
        };
        let record = placement.saved.as_ref().map(Record::restore).unwrap_or_default();
        let home = desk.chat;
        desk.chat = record.chat.unwrap_or(home);
        // One that is taken up may be finished already: it types when it grows.
        let typing = placement.saved.is_none().then(|| Typing::start(desk.clone(), thread.topic));
        Self {
            desk,
            thread,
            record,
            journal,
            home,
            answered,
            unsaved: false,
            shown: Vec::new(),
            search: None,
            typing,
        }
    }

    async fn grow(&mut self, view: &ReplyView) -> Result<(), SendError> {
        self.desk.free()?;
        self.save().await?;
        if self.typing.is_none() {
            self.typing = Some(Typing::start(self.desk.clone(), self.thread.topic));
        }
        let pages = pages::growing(view);
        self.show(&pages, false).await?;
        self.keep(pages.len()).await
    }

    async fn end(&mut self, view: &FinalView) -> Result<(), SendError> {
        self.typing = None;
        self.desk.free()?;
        self.save().await?;
        self.look_at(&view.files).await;
        // Each round but the last finds a file that cannot be sent, and tells of it.
        for _ in 0..=view.files.len() {
            let notes = self.notes(&view.files);
            let pages = pages::finished(&view.text, &notes, &view.choices, !view.files.is_empty());
            self.show(&pages, true).await?;
            self.keep(pages.len()).await?;
            self.send_files(&view.files).await?;
            if self.notes(&view.files) == notes {
                break;
            }
        }
        self.save().await
    }

    async fn show(&mut self, pages: &[Page], finished: bool) -> Result<(), SendError> {
        for (n, page) in pages.iter().enumerate() {
            self.page(n, page, finished).await?;
        }
        Ok(())
    }

    /// Makes part `n` show `page`.
    async fn page(&mut self, n: usize, page: &Page, finished: bool) -> Result<(), SendError> {
        for _ in 0..ROUNDS {
            let id = match self.record.part(n) {
                Some(id) => id,
                None if finished || page.neutral => self.post(n, page).await?,
                None => self.post(n, &page.sign()).await?,
            };
            if self.shown.get(n).and_then(Option::as_ref) == Some(&page.text) {
                return Ok(());
            }
            match self.put(page, |text| Call::Edit { id, text }).await {
                Ok(_) | Err(CallError::NotModified) => {
                    self.now_shows(n, Some(page.text.clone()));
                    return Ok(());
                }
                // Somebody deleted it. Those behind it go too, so that the order stays.
                Err(CallError::Gone | CallError::Foreign) => self.keep(n).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(SendError::Refused("the message vanishes as soon as it is sent".to_owned()))
    }

    /// Sends part `n`, unless it is found to be there. Returns its number.
    async fn post(&mut self, n: usize, page: &Page) -> Result<i64, SendError> {
        let _turn: Turn = self.desk.turn().await;
        if let Some(id) = self.find(n).await? {
            return self.sent(n, id, None).await;
        }
        self.intend(n).await?;
        let to = Thread { reply_to: self.thread.reply_to.filter(|_| n == 0), ..self.thread };
        match self.put(page, |text| Call::Send { to, text }).await {
            Ok(posted) => self.sent(n, posted.id, Some(page.text.clone())).await,
            Err(error) => {
                if !error.may_be_done() {
                    self.record.parts.truncate(n);
                    self.unsaved = true;
                }
                Err(error.into())
            }
        }
    }

    /// Makes a call with a page's text; once more without markup if Telegram does not understand it.
    async fn put(&mut self, page: &Page, call: impl Fn(Text) -> Call) -> Result<Posted, CallError> {
        match self.desk.call(&call(page.text.clone())).await {
            Err(CallError::Markup(error)) => {
                tracing::warn!(error, "a message is shown without markup");
                self.desk.call(&call(page.plain.clone())).await
            }
            result => result,
        }
    }

    async fn intend(&mut self, n: usize) -> Result<(), SendError> {
        let since = now() - millis(MARGIN);
        let newest = match self.desk.newest() {
            Some(newest) => newest,
            None => self.known(since).await?.newest(),
        };
        self.desk.saw(newest);
        self.record.set(n, Part::Intended { since, floor: newest.max(self.answered.unwrap_or(0)) });
        self.unsaved = true;
        self.save().await
    }

    async fn sent(&mut self, n: usize, id: i64, text: Option<Text>) -> Result<i64, SendError> {
        self.record.set(n, Part::Sent { id });
        self.unsaved = true;
        self.search = None;
        self.now_shows(n, text);
        self.save().await?;
        Ok(id)
    }

    fn now_shows(&mut self, n: usize, text: Option<Text>) {
        self.shown.resize(self.shown.len().max(n + 1), None);
        if let Some(shown) = self.shown.get_mut(n) {
            *shown = text;
        }
        if let Some(typing) = &self.typing {
            typing.changed();
        }
    }

    /// Looks for a part that was perhaps sent. Needs the turn.
    async fn find(&mut self, n: usize) -> Result<Option<i64>, SendError> {
        let Some(Part::Intended { since, floor }) = self.record.parts.get(n).cloned() else {
            return Ok(None);
        };
        let known = self.known(since).await?;
        let mut search = self.search.take().unwrap_or_else(|| Search::above(floor));
        while let Some(id) = search.candidate(&known) {
            match self.probe(id).await {
                Ok(()) => return Ok(Some(id)),
                Err(CallError::Gone) => search.missing(),
                Err(CallError::Foreign) => search.foreign(),
                Err(error) => {
                    self.search = Some(search);
                    return Err(error.into());
                }
            }
        }
        Ok(None)
    }

    /// Changes a message into the sign. `Ok` if it is ours, `Foreign` if it belongs to another reply.
    async fn probe(&mut self, id: i64) -> Result<(), CallError> {
        for which in 0..pages::SIGNS.len() {
            match self.desk.call(&Call::Edit { id, text: pages::sign(which) }).await {
                // It shows this sign already: the other one tells where it stands.
                Err(CallError::NotModified) => {}
                Ok(posted) if self.fits(posted.thread) => return Ok(()),
                Ok(_) => return Err(CallError::Foreign),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells whether a message stands where ours would. What it answers may have been deleted meanwhile.
    fn fits(&self, found: Thread) -> bool {
        let answers_ours = found.reply_to.is_none() || found.reply_to == self.thread.reply_to;
        found.topic == self.thread.topic && answers_ours
    }

    async fn known(&self, since: i64) -> Result<Known, SendError> {
        let sightings = self.journal.known(since).await?;
        Ok(Known::new(self.desk.chat, &sightings, self.record.ids()))
    }

    /// Deletes the parts behind the first `count`.
    async fn keep(&mut self, count: usize) -> Result<(), SendError> {
        while self.record.parts.len() > count {
            let n = self.record.parts.len() - 1;
            let _turn: Turn = self.desk.turn().await;
            let id = match self.record.part(n) {
                Some(id) => Some(id),
                None => self.find(n).await?,
            };
            if let Some(id) = id {
                self.delete(id).await?;
            }
            self.record.parts.truncate(n);
            self.shown.truncate(n);
            self.search = None;
            self.unsaved = true;
        }
        self.save().await
    }

    async fn delete(&mut self, id: i64) -> Result<(), SendError> {
        match self.desk.call(&Call::Delete { id }).await {
            Ok(_) | Err(CallError::Gone | CallError::Foreign) => Ok(()),
            Err(CallError::Refused(error)) => {
                tracing::warn!(error, "a message that is not needed any more cannot be deleted");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn changed(&mut self) {
        self.unsaved = true;
    }

    /// Brings the journal up to the record.
    pub(super) async fn save(&mut self) -> Result<(), SendError> {
        let moved = (self.desk.chat != self.home).then_some(self.desk.chat);
        self.unsaved |= moved != self.record.chat;
        self.record.chat = moved;
        if self.unsaved {
            let handle = self.record.handle().map_err(|error| JournalError(error.to_string()))?;
            self.journal.save(&handle).await?;
            self.unsaved = false;
        }
        Ok(())
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn now() -> i64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
