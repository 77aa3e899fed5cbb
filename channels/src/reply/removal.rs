//! Removes messages of a reply that are no longer needed: deletes them, or empties them if they cannot be deleted.

use super::{MessageDraft, PlatformMessages, PlatformReply, SIGN};
use crate::{
    SendError,
    render::Rich,
    reply::SendIntent,
    transport::{CallError, KeyedLock},
};

impl<M: PlatformMessages> PlatformReply<M> {
    /// Finds a part that may have been sent. With an idempotency key, it is sent again to learn its id.
    async fn get_hold_of(&mut self, n: usize) -> Result<Option<M::Ref>, SendError> {
        let Some(intent) = self.record.intended(n).cloned() else { return Ok(None) };
        let found = self.find(n).await?;
        if found.is_some() || !self.messages.capabilities().idempotent_send {
            return Ok(found);
        }
        if !self.messages.capabilities().deletes {
            self.messages.abandon(&SendIntent { n, ..intent }).await;
            return Ok(None);
        }
        let page = self.sign(true);
        let intent = SendIntent { n, again: true, ..intent };
        Ok(Some(self.messages.post(&intent, &page).await?))
    }

    /// Removes the messages that a growing reply no longer needs. A message that cannot be deleted shows a placeholder,
    /// because its text may reappear, for example after a restart.
    pub(super) async fn shrink(&mut self, pages: &[M::Page]) -> Result<(), SendError> {
        if self.messages.capabilities().deletes {
            return self.keep(pages.len()).await;
        }
        let sign = self.sign(false);
        for n in pages.len()..self.record.parts.len() {
            if self.record.part(n).is_some() {
                self.page(n, &sign, false).await?;
            }
        }
        self.save().await
    }

    /// Returns a placeholder page.
    fn sign(&self, done: bool) -> M::Page {
        let sign = MessageDraft { rich: Rich::plain(SIGN), neutral: true, done, ..MessageDraft::default() };
        self.messages.page(&sign)
    }

    /// Deletes all parts after the first `count`.
    pub(super) async fn keep(&mut self, count: usize) -> Result<(), SendError> {
        while self.record.parts.len() > count {
            let n = self.record.parts.len() - 1;
            let _turn: Option<KeyedLock> = self.messages.lock_chat().await;
            let sent = match self.record.part(n) {
                Some(sent) => Some(sent.clone()),
                None => self.get_hold_of(n).await?,
            };
            if let Some(sent) = sent {
                self.delete(&sent).await?;
            }
            self.record.parts.truncate(n);
            self.shown.truncate(n);
            self.unsaved = true;
        }
        self.save().await
    }

    async fn delete(&mut self, sent: &M::Ref) -> Result<(), SendError> {
        match self.messages.delete(sent).await {
            Ok(()) | Err(CallError::Gone(_)) => Ok(()),
            Err(CallError::Refused(error)) => {
                tracing::warn!(error, "failed to delete a message that is no longer needed");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
