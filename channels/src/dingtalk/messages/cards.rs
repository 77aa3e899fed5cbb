//! A reply in cards: made, changed, finished, and given up where they do not work.

use super::{
    DingMessages, MOVED,
    kept::{DingIntent, DingMessageRef},
};
use crate::{
    dingtalk::{
        failure::{DingTalkCase, DingTalkError, rules_out_cards},
        page::{DingTalkPage, digest},
        robot::RobotTarget,
    },
    transport::CallError,
};
use std::sync::atomic::Ordering;

impl DingMessages {
    /// Gives cards up for this reply; for a while for all, where the fault is not this chat's.
    pub(super) fn give_up_cards(&mut self, failure: &DingTalkError) {
        self.plain = true;
        let general = matches!(
            failure,
            CallError::Special(DingTalkCase::Strange(_)) | CallError::Special(DingTalkCase::Forbidden(_))
        );
        tracing::warn!(
            error = %failure,
            "failed to use card; the reply goes on as messages. Check `card_template_id`, \
             `card_content_key` and the app's card permissions"
        );
        if general {
            self.state.rest_cards();
        }
    }

    pub(super) async fn post_card(
        &mut self,
        intent: &DingIntent,
        page: &DingTalkPage,
    ) -> Result<Option<DingMessageRef>, CallError> {
        let name = self.state.seal.name(&intent.key, self.private, &self.address);
        // A delivered card cannot be deleted, so the template is tested before.
        if !intent.again
            && let Err(error) = self.probe().await
        {
            if rules_out_cards(&error) {
                self.give_up_cards(&error);
                return Ok(None);
            }
            tracing::warn!(%error, "failed to test card template; the reply goes on as messages");
            self.plain = true;
            let waits = error.wait().is_some();
            let error = self.failed(error);
            return if waits { Err(error) } else { Ok(None) };
        }
        let Some(card) = self.card(&name) else { return Ok(None) };
        let made = card.make(&self.robot.target, page).await;
        let there = made.is_ok();
        let sent = self.posted_card(name.clone(), page);
        let made = match made {
            // It was perhaps there already, and shows something else: the change that follows sees to it.
            Ok(()) if intent.again => {
                let (shows, buttons) = (String::new(), String::new());
                let ending = intent.dedup_key.as_ref().is_some_and(|tries| tries.done);
                return Ok(Some(DingMessageRef { shows, buttons, done: false, ending, ..sent }));
            }
            Ok(()) if page.done => card.stream(&card.text(page), true, 0).await,
            result => result,
        };
        match made {
            Ok(()) => Ok(Some(sent)),
            Err(error) if rules_out_cards(&error) => {
                self.give_up_cards(&error);
                if there || intent.again {
                    self.leave(&name).await;
                }
                Ok(None)
            }
            // The card is there, only not finished: under another name it would be there twice.
            Err(error) if there => {
                self.failed(error.clone());
                Err(CallError::Unknown(error.to_string()))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Tests the card template where it is not known to work.
    async fn probe(&self) -> Result<(), DingTalkError> {
        if self.state.cards_work.load(Ordering::Relaxed) {
            return Ok(());
        }
        let name = format!("pudu-probe-{:016x}", fastrand::u64(..));
        let Some(card) = self.card(&name) else { return Ok(()) };
        card.probe().await?;
        self.state.cards_work.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn posted_card(&self, id: String, page: &DingTalkPage) -> DingMessageRef {
        DingMessageRef {
            id,
            card: true,
            done: page.done,
            ending: false,
            nth: 1,
            shows: digest(&[&page.words]),
            buttons: digest(&[&page.buttons()]),
        }
    }

    /// Ends a card whose words are elsewhere, as far as that can be done.
    pub(super) async fn leave(&self, name: &str) {
        let Some(card) = self.card(name) else { return };
        let page = DingTalkPage {
            text: MOVED.to_owned(),
            words: MOVED.to_owned(),
            title: String::new(),
            choices: Vec::new(),
            done: true,
            neutral: false,
            asks: false,
        };
        // It may be finished: only streaming asks whether it is.
        if let Err(error) = card.replace(&page).await {
            tracing::debug!(%error, "failed to finish card that is not needed any more");
        }
    }

    /// Ends the card that an earlier try perhaps made, where the words go elsewhere now.
    pub(super) async fn leave_perhaps(&self, intent: &DingIntent) {
        if intent.again && self.robot.target != RobotTarget::Session {
            self.leave(&self.state.seal.name(&intent.key, self.private, &self.address)).await;
        }
    }

    /// Makes a card show a page; `streams` is whether the card is unfinished.
    pub(super) async fn change(
        &mut self,
        sent: &mut DingMessageRef,
        page: &DingTalkPage,
        streams: bool,
    ) -> Result<(), DingTalkError> {
        let name = sent.id.clone();
        let Some(card) = self.card(&name) else { return Err(CallError::Refused("no cards".to_owned())) };
        if streams {
            match card.stream(&card.text(page), page.done, sent.nth).await {
                // An older record does not contain whether the card may be finished: a finished card can still be
                // replaced.
                Err(CallError::Refused(_)) => card.replace(page).await?,
                streamed => streamed?,
            }
        } else {
            card.replace(page).await?;
        }
        let buttons = digest(&[&page.buttons()]);
        if sent.buttons != buttons && streams {
            match card.set_buttons(page).await {
                // The words are there, which counts.
                Err(error) if rules_out_cards(&error) => {
                    tracing::warn!(%error, "failed to change card's buttons: check `card_buttons_key`");
                }
                result => result?,
            }
        }
        *sent =
            DingMessageRef { nth: sent.nth + 1, done: page.done || !streams, ..self.posted_card(name, page) };
        Ok(())
    }
}
