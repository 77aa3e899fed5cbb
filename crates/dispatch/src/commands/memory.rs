//! `/memory`: shows, adds, finds and deletes facts in the memory of the sender, or of the room.

use super::{CommandAnswer, CommandContext, CommandSpec, not_stored};
use crate::sent;
use pudu_agent::{MemoryOf, MemoryTrouble};
use pudu_base::UserId;
use pudu_channels::{FinalView, OutFile};
use pudu_memory::{Fact, MemoryError};
use pudu_store::StoreError;
use pudu_texts::Language;
use std::fmt::Write;

/// Name of the exported file.
const EXPORT_NAME: &str = "memory.json";
/// Maximum number of listed facts.
const MAX_LISTED: usize = 30;
/// Maximum length of a shown fact, in characters.
const MAX_FACT_CHARS: usize = 300;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "memory",
    argument: |_| "[search|add|forget|export|last|off|on] …",
    about: Language::about_memory,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let of = memory(context).await;
    let words = argument.unwrap_or_default();
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
    let rest = rest.trim();
    if verb == "export" && rest.is_empty() && context.agent().remembers() {
        let view = match export(context, language, &of).await {
            Ok(view) => view,
            Err(trouble) => FinalView { text: describe(language, &trouble), ..FinalView::default() },
        };
        return view.into();
    }
    let text = if !context.agent().remembers() {
        Ok(language.memory_disabled().to_owned())
    } else {
        match (verb.to_lowercase().as_str(), rest) {
            ("", "") => list(context, language, &of, None).await,
            ("search", wanted) if !wanted.is_empty() => list(context, language, &of, Some(wanted)).await,
            ("add", fact) if !fact.is_empty() => add(context, language, &of, fact).await,
            ("forget", "all") => forget_all(context, language, &of).await,
            ("forget", id) if !id.is_empty() => forget(context, language, &of, id).await,
            ("last", "") => last(context, language, &of).await,
            ("off", "") => switch(context, language, &of, true).await,
            ("on", "") => switch(context, language, &of, false).await,
            _ => Ok(language.memory_usage().to_owned()),
        }
    };
    let text = text.unwrap_or_else(|trouble| describe(language, &trouble));
    text.into()
}

/// Selects the memory: the room's in a group, the sender's own in private.
async fn memory(context: &CommandContext<'_>) -> MemoryOf {
    let address = &context.inbound.address;
    let session = context.session().await;
    let user = match context.inbound.private {
        true => session.user,
        false => UserId::room(&address.account, &address.chat),
    };
    MemoryOf { user, agent: session.agent }
}

async fn list(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
    wanted: Option<&str>,
) -> Result<String, MemoryTrouble> {
    let document = context.agent().memories().read(of).await?;
    let off = context.db().is_memory_off(&of.user).await?;
    let facts = match wanted {
        Some(wanted) => document.containing(wanted),
        None => document.facts.iter().collect(),
    };
    let mut text = match facts.len() {
        0 if wanted.is_none() => language.memory_empty().to_owned(),
        0 => language.memory_none().to_owned(),
        count => language.memory_facts(count),
    };
    for fact in facts.iter().take(MAX_LISTED) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- `{}` {}", fact.id, line(fact));
    }
    if facts.len() > MAX_LISTED {
        let _ = write!(text, "\n- {}", language.more(facts.len() - MAX_LISTED));
    }
    if off {
        let _ = write!(text, "\n\n{}", language.memory_is_off());
    }
    Ok(text)
}

async fn add(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
    fact: &str,
) -> Result<String, MemoryTrouble> {
    if context.db().is_memory_off(&of.user).await? {
        return Ok(language.memory_add_while_off().to_owned());
    }
    let sender = &context.inbound.sender;
    let id = context.agent().memories().remember(of, fact, &sender.id, &sender.name).await?;
    Ok(language.memory_added(id))
}

async fn forget(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
    id: &str,
) -> Result<String, MemoryTrouble> {
    context.agent().memories().forget(of, id.trim_matches('`')).await?;
    sent::forget_of(&context.scope.shared.home, of.user.as_str()).await;
    Ok(language.memory_forgotten().to_owned())
}

async fn forget_all(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
) -> Result<String, MemoryTrouble> {
    // Messages that wait to be learned from are dropped first, so that they do not bring facts back.
    context.agent().forget_waiting(of).await?;
    context.agent().memories().forget_all(of).await?;
    sent::forget_of(&context.scope.shared.home, of.user.as_str()).await;
    Ok(language.memory_all_forgotten().to_owned())
}

/// Sends the memory as a file to its owner: the person in private, or the room.
async fn export(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
) -> Result<FinalView, MemoryTrouble> {
    let document = context.agent().memories().export(of).await?;
    let copy = sent::keep_of(&context.scope.shared.home, of.user.as_str(), &format!("{document:#}")).await;
    Ok(match copy {
        Ok(path) => FinalView {
            text: language.memory_exported().to_owned(),
            files: vec![OutFile { name: EXPORT_NAME.to_owned(), path }],
            ..FinalView::default()
        },
        Err(error) => {
            tracing::warn!(%error, "failed to write exported memory");
            FinalView {
                text: language.memory_not_exported().to_owned(),
                failed: true,
                ..FinalView::default()
            }
        }
    })
}

/// Shows the facts from memory that the model got with the last question here.
async fn last(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
) -> Result<String, MemoryTrouble> {
    let Some(thread) = context.thread().await else { return Ok(language.no_conversation().to_owned()) };
    let state = context.agent().state(&thread).await;
    let state = state.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let used = state.messages.values().rev().find_map(|message| match &**message {
        pudu_base::Message::Human(human) => Some(human.recalled.clone()),
        _ => None,
    });
    let used = used.flatten().filter(|recalled| recalled.user == of.user);
    Ok(match used {
        Some(used) => {
            language.memory_last(used.text.lines().map(|line| format!("> {line}\n")).collect::<String>())
        }
        None => language.memory_last_none().to_owned(),
    })
}

async fn switch(
    context: &CommandContext<'_>,
    language: Language,
    of: &MemoryOf,
    off: bool,
) -> Result<String, MemoryTrouble> {
    context.db().set_memory_off(&of.user, off).await?;
    Ok(if off { language.memory_off() } else { language.memory_on() }.to_owned())
}

fn line(fact: &Fact) -> String {
    pudu_base::foreign::line(&fact.content, MAX_FACT_CHARS)
}

fn describe(language: Language, trouble: &MemoryTrouble) -> String {
    match trouble {
        MemoryTrouble::Store(error) => not_stored(language, error),
        MemoryTrouble::Files(MemoryError::UnknownFact(id)) => language.memory_unknown(id),
        MemoryTrouble::Files(MemoryError::Refused(why)) => language.memory_refused(why),
        MemoryTrouble::Files(_) | MemoryTrouble::Broken => {
            tracing::error!(error = %trouble, "failed to use memory");
            language.memory_unreadable().to_owned()
        }
    }
}
