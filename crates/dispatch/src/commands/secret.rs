//! `/secret`: sets or deletes a secret that a skill needs. The event no longer contains the value: it was removed
//! before the event was stored.

use super::{CommandAnswer, CommandContext, CommandSpec, not_stored};
use pudu_agent::{SecretError, SecretStore};
use pudu_base::{UserId, is_secret_name};
use pudu_store::StoreError;
use pudu_texts::Language;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeSet;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "secret",
    argument: Language::argument_secret,
    about: Language::about_secret,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let value = context.secret.take();
    if !context.inbound.private {
        let text = match value {
            Some(_) => language.secret_seen(),
            None => language.secret_privately(),
        };
        return text.into();
    }
    let has_value = value.is_some();
    let words = argument.unwrap_or_default();
    let text = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
        [] => list(context, language).await,
        ["set", name] => set(context, name, value, language).await,
        ["set"] => language.secret_name_odd().to_owned(),
        ["delete", name] => delete(context, name, language).await,
        _ => language.secret_usage().to_owned(),
    };
    let deleted = has_value && delete_message(context).await;
    let kept_nowhere = !context.is_chat();
    let text = match (has_value, deleted) {
        (false, _) => text,
        // pudu does not store the message, but the terminal and its shell may.
        (true, true) if kept_nowhere => format!("{text}\n\n{}", language.secret_message_local()),
        (true, true) => format!("{text}\n\n{}", language.secret_message_gone()),
        (true, false) => format!("{text}\n\n{}", language.secret_message_stays()),
    };
    text.into()
}

/// Asks the platform to delete the message with the secret. Returns whether it is gone. A thread of the HTTP API never
/// contains it.
async fn delete_message(context: &CommandContext<'_>) -> bool {
    if !context.is_chat() {
        return true;
    }
    let (address, message) = (&context.inbound.address, &context.inbound.message);
    context.scope.account.channel().forget(address, message).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to delete message with a secret");
        false
    })
}

/// Accesses the secrets of the sender.
async fn work<T: Send + 'static>(
    context: &CommandContext<'_>,
    language: Language,
    work: impl FnOnce(&SecretStore, &UserId) -> Result<T, SecretError> + Send + 'static,
) -> Result<T, String> {
    let inbound = &context.inbound;
    let user = context.scope.shared.secrets_of(&inbound.address.account, &inbound.sender.id);
    let store = context.agent().secrets();
    let done = pudu_kit::blocking::run(move || work(&store, &user)).await;
    let unavailable = |why: String| not_stored(language, &StoreError::Unavailable(why));
    done.map_err(|error| unavailable(error.to_string()))?.map_err(|error| match error {
        SecretError::Name(_) => language.secret_name_odd().to_owned(),
        SecretError::Value => language.secret_value_odd().to_owned(),
        SecretError::Full => language.secrets_full().to_owned(),
        error @ (SecretError::Broken { .. } | SecretError::Io { .. }) => unavailable(error.to_string()),
    })
}

async fn set(
    context: &CommandContext<'_>,
    name: &str,
    value: Option<SecretString>,
    language: Language,
) -> String {
    // Either the value was lost in a restart, or nothing followed the name.
    let Some(value) = value else { return missing(context, name, language).await };
    let owned_name = name.to_owned();
    let stored =
        work(context, language, move |store, user| store.set(user, &owned_name, value.expose_secret()));
    match stored.await {
        Ok(()) => {
            tracing::info!(name, "stored secret");
            language.secret_kept(name)
        }
        Err(answer) => answer,
    }
}

/// Returns the answer to a command whose value is missing. An existing secret may hold the missing value, stored before
/// a restart.
async fn missing(context: &CommandContext<'_>, name: &str, language: Language) -> String {
    let names = match work(context, language, |store, user| store.names(user)).await {
        Ok(names) => names,
        Err(answer) => return answer,
    };
    match names.iter().any(|known| known == name) {
        true => language.secret_value_unsure(name),
        false => language.secret_value_missing(name),
    }
}

async fn delete(context: &CommandContext<'_>, name: &str, language: Language) -> String {
    let owned_name = name.to_owned();
    match work(context, language, move |store, user| store.delete(user, &owned_name)).await {
        Ok(true) => language.secret_deleted(name),
        Ok(false) if is_secret_name(name) => language.secret_unknown(name),
        Ok(false) => language.secret_name_odd().to_owned(),
        Err(answer) => answer,
    }
}

/// Lists the names of stored secrets, and of those that skills need.
async fn list(context: &CommandContext<'_>, language: Language) -> String {
    let names = match work(context, language, |store, user| store.names(user)).await {
        Ok(names) => names,
        Err(answer) => return answer,
    };
    let skills = context.skills().await;
    let required = skills.iter().flat_map(|skill| {
        skill.secrets.required.iter().map(|secret| (secret.name.clone(), skill.name.clone()))
    });
    let missing: BTreeSet<(String, String)> = required.filter(|(name, _)| !names.contains(name)).collect();
    let mut text = match names.is_empty() {
        true => language.secrets_none().to_owned(),
        false => language.secrets().to_owned(),
    };
    text.extend(names.iter().map(|name| format!("\n- `{name}`")));
    if !missing.is_empty() {
        text.extend(["\n\n", language.secrets_wanted()]);
        text.extend(missing.iter().map(|(name, skill)| format!("\n- `{name}` (`/{skill}`)")));
    }
    format!("{text}\n\n{}", language.secret_usage())
}
