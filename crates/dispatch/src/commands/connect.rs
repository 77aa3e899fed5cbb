//! `/connect` of a person who is known: joins two platforms to one user. Codes of strangers never come here.

use super::{CommandSpec, not_stored};
use crate::bus::InboxItem;
use crate::{
    command::SlashCommand,
    conversation::ConversationActor,
    joining::{JoinOutcome, JoinRoute, PartOutcome},
    reply,
};
use pudu_channels::{Choice, FinalView};
use pudu_client::store::StoreError;
use pudu_texts::Language;

/// Confirms a code.
const YES: &str = "yes";
/// Ends it.
const OFF: &str = "off";

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "connect",
    argument: |_| "[code|off]",
    about: Language::about_connect,
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let language = actor.language(&arrival);
    // Every reader of a code could use it.
    if !arrival.inbound.private {
        actor.answer(arrival, language.connect_privately());
        return;
    }
    let words = command.argument.unwrap_or_default();
    let view = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => offer(actor, &arrival, language).await,
        [OFF] => actor.shared.part(&arrival.inbound).await.map(|parted| match parted {
            PartOutcome::Left => plain(language.parted()),
            PartOutcome::Others => plain(language.parted_others()),
            PartOutcome::Already => plain(language.parted_already()),
        }),
        [code] => confirm(actor, code, language).await,
        [code, YES] => join(actor, &arrival, code, language).await,
        _ => Ok(plain(language.code_invalid())),
    };
    let view = view.unwrap_or_else(|error| plain(&not_stored(language, &error)));
    actor.answer_with(arrival, view, Vec::new());
}

async fn offer(
    actor: &ConversationActor,
    arrival: &InboxItem,
    language: Language,
) -> Result<FinalView, StoreError> {
    match actor.shared.offer_join(&arrival.inbound, route(actor, arrival)).await {
        Ok(code) => Ok(plain(&language.connect_offer(code))),
        Err(error) => Err(StoreError::Unavailable(error.to_string())),
    }
}

/// Asks whether a code is to join its owner.
async fn confirm(actor: &ConversationActor, code: &str, language: Language) -> Result<FinalView, StoreError> {
    let Some(offer) = actor.shared.join_offer(code).await? else {
        // It may be the one by which they came.
        let text = match actor.account.policy().access.pairing {
            true => language.known_already(),
            false => language.code_invalid(),
        };
        return Ok(plain(text));
    };
    let action = format!("/connect {code} {YES}");
    let text = language.connect_confirm(&offer.account, &action, &offer.name);
    let choices = vec![Choice { label: language.connect_yes().to_owned(), action }];
    Ok(FinalView { text, choices, ..FinalView::default() })
}

async fn join(
    actor: &ConversationActor,
    arrival: &InboxItem,
    code: &str,
    language: Language,
) -> Result<FinalView, StoreError> {
    Ok(plain(&match actor.shared.join(&arrival.inbound, code, route(actor, arrival)).await? {
        JoinOutcome::With(offer) => language.joined(&offer.account, &offer.name),
        JoinOutcome::Already => language.joined_already().to_owned(),
        JoinOutcome::Refused => language.code_invalid().to_owned(),
    }))
}

fn route(actor: &ConversationActor, arrival: &InboxItem) -> JoinRoute {
    JoinRoute { target: reply::target(&actor.account, arrival), conversation: actor.key.clone() }
}

fn plain(text: &str) -> FinalView {
    FinalView { text: text.to_owned(), ..FinalView::default() }
}
