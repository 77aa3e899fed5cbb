//! `/agent`: lists the agents, switches a conversation to one, or begins to create one.

use super::{
    CommandAnswer, CommandContext, CommandSpec, MAX_ACTION_BYTES, MAX_BUTTONS, brief, mark, not_stored,
};
use crate::{
    agent::{self, AgentChoice},
    bus::retry_until_stored,
};
use pudu_agent::{
    Authoring,
    agents::{AgentError, LEAD, Roster, is_lead},
};
use pudu_channels::{Choice, FinalView};
use pudu_config::Choosing;
use pudu_store::StoreError;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "agent",
    argument: Language::argument_agent,
    about: Language::about_agent,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let (person, language) = (context.person().to_owned(), context.language());
    let words = argument.unwrap_or_default();
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
    let choosing = context.scope.account.policy().choosing(&person);
    let owner = context.owner();
    match (first.to_lowercase().as_str(), choosing) {
        ("" | "list", _) => agents(context, language, choosing).await.into(),
        (_, Choosing::Fixed) => language.agent_fixed().into(),
        ("new", _) if !agent::may_create(&context.scope.account.policy(), &person, &owner) => {
            let text = language.paragraph(&[language.agent_not_made_here(), language.agents_listed()]);
            text.into()
        }
        ("new", _) => match rest.split_whitespace().next().map(str::to_owned) {
            Some(name) => make(context, &name).await,
            None => {
                let text = [language.agents_new_nameless(), language.agents_new_usage()];
                language.paragraph(&text).into()
            }
        },
        ("-" | "default", _) => switch(context, None).await,
        (name, _) if is_lead(name) => switch(context, Some(AgentChoice::Lead)).await,
        _ => choose(context, first).await,
    }
}

async fn choose(context: &CommandContext<'_>, name: &str) -> CommandAnswer {
    let owner = context.owner();
    match context.agent().custom_agent(name, Some(&owner)).await {
        Ok(persona) => switch(context, Some(AgentChoice::Named(persona.name))).await,
        Err(error) => {
            let language = context.language();
            let roster = context.agent().roster(Some(&owner)).await;
            let near = roster.agents.iter().map(|agent| agent.name.as_str());
            let near = near.map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
            let suggestion = match near {
                Some((1..=2, known)) if matches!(error, AgentError::Unknown(_)) => {
                    language.did_you_mean(known)
                }
                _ => String::new(),
            };
            let problem = agent::problem(language, &error);
            language.paragraph(&[&problem, &suggestion, language.agents_listed()]).into()
        }
    }
}

/// Switches the conversation to an agent; for `None`, to the account's default.
async fn switch(context: &CommandContext<'_>, choice: Option<AgentChoice>) -> CommandAnswer {
    let language = context.language();
    let text = match keep(context, choice).await {
        Ok(()) => introduce(context, language).await,
        Err(error) => not_stored(language, &error),
    };
    text.into()
}

pub(super) async fn keep(
    context: &CommandContext<'_>,
    choice: Option<AgentChoice>,
) -> Result<(), StoreError> {
    context.ensure_thread().await;
    let stored = choice.map(|choice| choice.stored());
    context.db().set_agent(&context.scope.key, stored.as_deref()).await
}

/// Returns the message that introduces the new agent, with its problems.
async fn introduce(context: &CommandContext<'_>, language: Language) -> String {
    let session = context.session().await;
    let Some(persona) = agent::custom(&context.scope.shared, &session).await else {
        return language.agent_answers(session.agent_name(language));
    };
    let mut text = match brief(&persona.profile.about) {
        about if about.is_empty() => language.agent_answers(&persona.name),
        about => language.agent_answers_for(about, &persona.name),
    };
    for note in context.agent().notes(&persona).await {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- ⚠️ {note}");
    }
    text
}

/// Begins a conversation in which an agent is created. The command is its first message.
async fn make(context: &mut CommandContext<'_>, name: &str) -> CommandAnswer {
    let owner = context.owner();
    let name = match context.agent().vacant(name, Some(&owner)).await {
        Ok(name) => name,
        Err(error) => {
            let language = context.language();
            let text = [&agent::problem(language, &error), language.agents_new_usage()];
            return language.paragraph(&text).into();
        }
    };
    context.begin_anew().await;
    match keep(context, Some(AgentChoice::New(name))).await {
        Ok(()) => CommandAnswer::FirstMessage,
        Err(error) => not_stored(context.language(), &error).into(),
    }
}

/// Cancels the creation of an agent. Returns whether one was being created. If it is already finished, it becomes the
/// choice.
pub(super) async fn give_up_making(context: &CommandContext<'_>) -> bool {
    let chosen = context.record().await.and_then(|record| record.agent);
    let (made, choice) = match chosen.as_deref().map(AgentChoice::parse) {
        Some(AgentChoice::New(name)) => {
            let owner = context.owner();
            let made = context.agent().has_agent(&name, Some(&owner)).await;
            (made, made.then_some(name))
        }
        Some(AgentChoice::Bootstrap(mark)) => {
            let made = context.agent().lead_soul_mark().await.is_some_and(|now| now != mark);
            (made, made.then(|| LEAD.to_owned()))
        }
        _ => return false,
    };
    let choice = choice.as_deref();
    let store = || context.db().set_agent(&context.scope.key, choice);
    retry_until_stored("failed to undo choice", store).await;
    !made
}

async fn agents(context: &CommandContext<'_>, language: Language, choosing: Choosing) -> FinalView {
    let session = context.session().await;
    let now = session.agent_name(language);
    if choosing == Choosing::Fixed {
        let text = language.paragraph(&[&language.agent_answers_now(now), language.agent_fixed()]);
        return FinalView { text, ..FinalView::default() };
    }
    let owner = context.owner();
    let roster = context.agent().roster(Some(&owner)).await;
    let mut text = format!("{}\n", language.agents());
    let mark = |name: &str| mark(name == now, language.agent_here());
    // Writing to a String cannot fail.
    let _ = write!(text, "\n- `{LEAD}`{}{}", language.described(language.agent_lead()), mark(LEAD));
    for persona in &roster.agents {
        let about = match brief(&persona.profile.about) {
            about if about.is_empty() => about,
            about => language.described(about),
        };
        let _ = write!(text, "\n- `{}`{about}{}", persona.name, mark(&persona.name));
        for note in context.agent().notes(persona).await {
            let _ = write!(text, "\n  - ⚠️ {note}");
        }
    }
    for broken in &roster.broken {
        let _ = write!(text, "\n- ⚠️ {}", language.agent_broken_line(&broken.name, &broken.why));
    }
    if let Authoring::New(name) = &session.authoring {
        let _ = write!(text, "\n- {}", language.agent_in_making(name));
    }
    if roster.more > 0 {
        let _ = write!(text, "\n- {}", language.more(roster.more));
    }
    let may_create_agents = agent::may_create(&context.scope.account.policy(), context.person(), &owner);
    let new = if may_create_agents { language.agents_new() } else { "" };
    let _ = write!(text, "\n\n{}", language.paragraph(&[language.agents_switch(), new]));
    FinalView { text, choices: buttons(&roster, &now), ..FinalView::default() }
}

fn buttons(roster: &Roster, now: &str) -> Vec<Choice> {
    let names = std::iter::once(LEAD).chain(roster.agents.iter().map(|persona| persona.name.as_str()));
    let button = |name: &str| Choice { label: name.to_owned(), action: format!("/agent {name}") };
    let buttons = names.filter(|name| *name != now).map(button);
    buttons.filter(|button| button.action.len() <= MAX_ACTION_BYTES).take(MAX_BUTTONS).collect()
}
