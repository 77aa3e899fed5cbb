//! Creates, updates and finishes the cards of a reply, and falls back to messages if cards do not work.

use super::{
    DingMessages, MOVED,
    kept::{DingIntent, DingMessageRef},
};
use crate::{
    dingtalk::{
        facts::{DingTalkCase, DingTalkError, rules_out_cards},
        page::{DingTalkPage, digest},
        robot::RobotTarget,
    },
    transport::CallError,
};
use std::sync::atomic::Ordering;

impl DingMessages {
    /// Stops using cards for this reply. Unless the failure is specific to this chat, suspends cards for all replies
    /// for a while.
    pub(super) fn give_up_cards(&mut self, failure: &DingTalkError) {
        self.plain = true;
        let general = matches!(
            failure,
            CallError::Special(DingTalkCase::Strange(_)) | CallError::Special(DingTalkCase::Forbidden(_))
        );
        tracing::warn!(
            error = %failure,
            "failed to use card; continuing the reply as messages. Check `card_template_id`, \
             `card_content_key` and the app's card permissions"
        );
        if general {
            self.state.suspend_cards();
        }
    }

    pub(super) async fn post_card(
        &mut self,
        intent: &DingIntent,
        page: &DingTalkPage,
    ) -> Result<Option<DingMessageRef>, CallError> {
        let name = self.state.seal.name(&intent.key, self.private, &self.address);
        // A delivered card cannot be deleted, so the template is tested first.
        if !intent.again
            && let Err(error) = self.probe().await
        {
            if rules_out_cards(&error) {
                self.give_up_cards(&error);
                return Ok(None);
            }
            tracing::warn!(%error, "failed to test card template; continuing the reply as messages");
            self.plain = true;
            let waits = error.wait().is_some();
            let error = self.failed(error);
            return if waits { Err(error) } else { Ok(None) };
        }
        let Some(card) = self.card(&name) else { return Ok(None) };
        let outcome = card.make(&self.robot.target, page).await;
        let was_created = outcome.is_ok();
        let sent = self.posted_card(name.clone(), page);
        let outcome = match outcome {
            // The card may have existed before with other content: the next update corrects it.
            Ok(()) if intent.again => {
                let (text_digest, buttons) = (String::new(), String::new());
                let ending = intent.dedup_key.as_ref().is_some_and(|tries| tries.done);
                return Ok(Some(DingMessageRef { text_digest, buttons, done: false, ending, ..sent }));
            }
            Ok(()) if page.done => card.stream(&card.text(page), true, 0).await,
            result => result,
        };
        match outcome {
            Ok(()) => Ok(Some(sent)),
            Err(error) if rules_out_cards(&error) => {
                self.give_up_cards(&error);
                if was_created || intent.again {
                    self.finish_abandoned(&name).await;
                }
                Ok(None)
            }
            // The card exists but is unfinished: a new name would create a duplicate.
            Err(error) if was_created => {
                self.failed(error.clone());
                Err(CallError::Unknown(error.to_string()))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Tests the card template, unless it is known to work.
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
            revision: 1,
            text_digest: digest(&[&page.words]),
            buttons: digest(&[&page.buttons()]),
        }
    }

    /// Finishes a card whose text was sent elsewhere. Best effort.
    pub(super) async fn finish_abandoned(&self, name: &str) {
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
        // The card may already be finished; `replace` works in both cases, unlike streaming.
        if let Err(error) = card.replace(&page).await {
            tracing::debug!(%error, "failed to finish a card that is no longer needed");
        }
    }

    /// Finishes the card that an earlier attempt may have created, because the text is now sent elsewhere.
    pub(super) async fn finish_possible_card(&self, intent: &DingIntent) {
        if intent.again && self.robot.target != RobotTarget::Session {
            self.finish_abandoned(&self.state.seal.name(&intent.key, self.private, &self.address)).await;
        }
    }

    /// Makes a card show a page. `streams` means that the card is unfinished, so text can be streamed into it.
    pub(super) async fn change(
        &mut self,
        sent: &mut DingMessageRef,
        page: &DingTalkPage,
        streams: bool,
    ) -> Result<(), DingTalkError> {
        let name = sent.id.clone();
        let Some(card) = self.card(&name) else { return Err(CallError::Refused("no cards".to_owned())) };
        if streams {
            match card.stream(&card.text(page), page.done, sent.revision).await {
                // Older records do not contain whether the card is finished. A finished card can still be replaced.
                Err(CallError::Refused(_)) => card.replace(page).await?,
                streamed => streamed?,
            }
        } else {
            card.replace(page).await?;
        }
        let buttons = digest(&[&page.buttons()]);
        if sent.buttons != buttons && streams {
            match card.set_buttons(page).await {
                // The text arrived; the buttons are secondary.
                Err(error) if rules_out_cards(&error) => {
                    tracing::warn!(%error, "failed to change card's buttons: check `card_buttons_key`");
                }
                result => result?,
            }
        }
        *sent = DingMessageRef {
            revision: sent.revision + 1,
            done: page.done || !streams,
            ..self.posted_card(name, page)
        };
        Ok(())
    }
}
