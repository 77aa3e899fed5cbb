//! Access to the forms below finished replies. Submitted answers arrive as events and are recorded like choices
//! (`choice.rs`).
//!
//! A form is open while no event has answered it and no later run began in its conversation.

use super::{
    route::{Route, RouteFacts, route},
    shared::Shared,
};
use crate::bus::STORE_TIMEOUT;
use pudu_channels::{FinalView, FormAccess, Inbound, OpenForm, QuestionForm, ReplyStoreError};
use pudu_store::Offered;
use pudu_texts::Language;
use tokio::time::timeout;

impl Shared {
    /// Returns the form below the message of an event, if the sender may answer it and it is open.
    pub(super) async fn form_below(&self, inbound: &Inbound) -> Result<FormAccess, ReplyStoreError> {
        let address = &inbound.address;
        let Some(account) = self.accounts.get(&address.account) else {
            return Ok(FormAccess::Refused(Language::default().form_unread().to_owned()));
        };
        let policy = account.policy();
        let language = policy.language(inbound);
        let refused = |text: &str| Ok(FormAccess::Refused(text.to_owned()));
        let facts = RouteFacts {
            paired: self.known.has(&address.account, &inbound.sender.id),
            ..RouteFacts::default()
        };
        if !matches!(route(&policy, inbound, facts), Route::Converse(_)) {
            tracing::info!(account = address.account, person = inbound.sender.id, "refused form: no access");
            return refused(language.form_not_yours());
        }
        let offered = timeout(STORE_TIMEOUT, self.offered(address, &inbound.message)).await;
        let offered = offered.map_err(|_| ReplyStoreError("the store does not answer".to_owned()))?;
        let Some(offered) = offered.filter(|offered| offered.chosen.is_none()) else {
            return refused(language.form_over());
        };
        let newest = self.db.within(STORE_TIMEOUT).is_newest_run(&offered.turn).await;
        let newest = newest.map_err(|error| ReplyStoreError(error.to_string()))?;
        match form_of(&offered) {
            Some(form) if newest => Ok(FormAccess::Open(Box::new(OpenForm { form, language }))),
            _ => refused(language.form_over()),
        }
    }
}

fn form_of(offered: &Offered) -> Option<QuestionForm> {
    serde_json::from_str::<FinalView>(offered.final_view.as_deref()?).ok()?.form
}
