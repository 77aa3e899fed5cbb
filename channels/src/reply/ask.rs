//! Questions on platforms without buttons: their choices are numbered.
//!
//! If messages can be edited, a question is part of the growing text; otherwise it is a separate message. Its numbers
//! are valid while it is asked, even across restarts.

use super::{
    PlatformMessages, PlatformReply,
    numbered_choices::NumberedPrompt,
    pages,
    record::{PromptRecord, RecordPart, ReplyRecord},
};
use crate::{Address, FinalView, ReplyView, SendError};

impl<M: PlatformMessages> PlatformReply<M> {
    /// Reopens a question from before a restart. Its numbers are valid even before it is shown again.
    pub(super) fn asked_before(
        messages: &M,
        record: &ReplyRecord<M::Ref, M::DedupKey>,
        address: &Address,
    ) -> Option<NumberedPrompt> {
        let PromptRecord { first, actions, .. } = &record.asked;
        let numbered = messages.numbered_choices().filter(|_| !actions.is_empty())?;
        numbered.renew(address, *first, actions.clone())
    }

    /// Numbers the choices of a view's question, and withdraws the numbers of a question that is no longer asked.
    pub(super) async fn number(&mut self, view: &ReplyView) -> Result<(), SendError> {
        let choices = view.prompt.iter().flat_map(|ask| &ask.choices);
        let mut actions: Vec<String> = choices.map(|choice| choice.action.clone()).collect();
        if self.messages.capabilities().buttons {
            actions.clear();
        }
        // The first view after a restart does not contain the question yet.
        if std::mem::take(&mut self.taken_up) && actions.is_empty() {
            return Ok(());
        }
        if self.record.asked.actions == actions && self.offer.is_some() != actions.is_empty() {
            return Ok(());
        }
        self.withdraw().await?;
        if let Some(numbered) = self.messages.numbered_choices().filter(|_| !actions.is_empty()) {
            let offer = numbered.ask(&self.address, self.record.asked.first, actions.clone());
            self.record.asked = PromptRecord { first: offer.first, actions, at: None };
            self.offer = Some(offer);
            self.unsaved = true;
        }
        Ok(())
    }

    async fn withdraw(&mut self) -> Result<(), SendError> {
        self.offer = None;
        let asked = &mut self.record.asked;
        if asked.actions.is_empty() {
            return Ok(());
        }
        asked.first += asked.actions.len();
        asked.actions.clear();
        self.unsaved = true;
        match asked.at.take() {
            Some(at) => self.keep(at).await,
            None => Ok(()),
        }
    }

    /// Returns the number of the first choice of a question asked as text.
    pub(super) fn first_number(&self) -> Option<usize> {
        self.offer.as_ref().map(|offer| offer.first)
    }

    /// Shows a placeholder for a message that cannot be edited, and the question.
    pub(super) async fn hold_the_place(&mut self, view: &ReplyView) -> Result<(), SendError> {
        // A question needs no placeholder.
        let empty = self.record.parts.is_empty() && view.prompt.is_none();
        if empty && self.messages.holds_a_place().await {
            // The placeholder cannot change and may stay, so its text must remain true.
            let (activity, choices) = (Some(self.language.answer_follows().to_owned()), view.choices.clone());
            let sign = ReplyView { activity, choices, ..ReplyView::default() };
            let pages = self.pages(|limit| pages::growing(&sign, None, limit));
            match self.show(&pages, false).await {
                // This was only the placeholder: the question and the answer may still be accepted.
                Err(SendError::Refused(why)) => {
                    tracing::debug!(why, "failed to send placeholder");
                }
                shown => shown?,
            }
        }
        let (Some(ask), Some(first)) = (&view.prompt, self.first_number()) else { return Ok(()) };
        let sent_count =
            self.record.parts.iter().take_while(|part| matches!(part, RecordPart::Sent(_))).count();
        let at = *self.record.asked.at.get_or_insert(sent_count);
        let pages = self.pages(|limit| pages::question(ask, &view.choices, first, limit));
        for (n, page) in pages.iter().enumerate() {
            if self.record.part(at + n).is_none() {
                self.page(at + n, page, true).await?;
            }
        }
        Ok(())
    }

    /// Closes the question, because the reply is finished. Returns the number of the first final choice, if choices are
    /// made by number.
    pub(super) fn conclude(&mut self, view: &FinalView) -> Option<usize> {
        self.offer = None;
        if self.record.asked != PromptRecord::default() {
            self.record.asked = PromptRecord::default();
            self.unsaved = true;
        }
        let choices = if self.messages.capabilities().buttons { [].as_slice() } else { &view.choices };
        let first = self.messages.numbered_choices()?.list(&self.address, choices);
        self.lists = first.is_some();
        self.tell_who_lists();
        first
    }

    /// Registers the id of the message that lists the choices, once one is sent. Any message of the reply identifies
    /// it.
    pub(super) fn tell_who_lists(&self) {
        if let (true, Some(numbered), Some(id)) =
            (self.lists, self.messages.numbered_choices(), self.record.ids().next())
        {
            numbered.listed_by(&self.address, &id);
        }
    }
}
