//! `/connect` from a known person: links their accounts on two platforms to one user. Codes sent by strangers are
//! handled elsewhere.

use super::{CommandAnswer, CommandContext, CommandSpec, not_stored};
use crate::{
    joining::{JoinOutcome, JoinRoute, UnlinkOutcome},
    reply,
};
use pudu_channels::{Choice, FinalView};
use pudu_store::StoreError;
use pudu_texts::Language;

/// Argument that confirms a code.
const YES: &str = "yes";
/// Argument that ends the link.
const OFF: &str = "off";

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "connect",
    argument: |_| "[code|off]",
    about: Language::about_connect,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    // Everyone who can read a code could use it.
    if !context.inbound.private {
        return language.connect_privately().into();
    }
    let words = argument.unwrap_or_default();
    let view = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => offer(context, language).await,
        [OFF] => context.scope.shared.part(&context.inbound).await.map(|parted| match parted {
            UnlinkOutcome::Left => plain(language.parted()),
            UnlinkOutcome::Others => plain(language.parted_others()),
            UnlinkOutcome::Already => plain(language.parted_already()),
        }),
        [code] => confirm(context, code, language).await,
        [code, YES] => join(context, code, language).await,
        _ => Ok(plain(language.code_invalid())),
    };
    let view = view.unwrap_or_else(|error| plain(&not_stored(language, &error)));
    view.into()
}

async fn offer(context: &CommandContext<'_>, language: Language) -> Result<FinalView, StoreError> {
    match context.scope.shared.offer_join(&context.inbound, route(context)).await {
        Ok(code) => Ok(plain(&language.connect_offer(code))),
        Err(error) => Err(StoreError::Unavailable(error.to_string())),
    }
}

/// Asks whether the sender wants to become the same user as the owner of a code.
async fn confirm(
    context: &CommandContext<'_>,
    code: &str,
    language: Language,
) -> Result<FinalView, StoreError> {
    let Some(offer) = context.scope.shared.join_offer(code).await? else {
        // The code may be the one that the sender used for pairing.
        let text = match context.scope.account.policy().access.pairing {
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

async fn join(context: &CommandContext<'_>, code: &str, language: Language) -> Result<FinalView, StoreError> {
    Ok(plain(&match context.scope.shared.join(&context.inbound, code, route(context)).await? {
        JoinOutcome::With(offer) => language.joined(&offer.account, &offer.name),
        JoinOutcome::Already => language.joined_already().to_owned(),
        JoinOutcome::Refused => language.code_invalid().to_owned(),
    }))
}

fn route(context: &CommandContext<'_>) -> JoinRoute {
    JoinRoute {
        target: reply::target(&context.scope.account, &context.inbound),
        conversation: context.scope.key.to_string(),
    }
}

fn plain(text: &str) -> FinalView {
    FinalView { text: text.to_owned(), ..FinalView::default() }
}
