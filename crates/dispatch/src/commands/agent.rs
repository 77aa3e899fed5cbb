//! `/agent`: lists the agents, switches a conversation to one, or begins to make one.

use super::{CommandSpec, MAX_ACTION_BYTES, MAX_BUTTONS, brief, mark, not_stored};
use crate::bus::{InboxItem, retry_until_stored};
use crate::{
    agent::{self, AgentChoice},
    command::SlashCommand,
    conversation::ConversationActor,
};
use pudu_channels::{Choice, FinalView, Inbound};
use pudu_client::{
    Authoring,
    agents::{AgentError, LEAD, Roster, is_lead},
    store::StoreError,
};
use pudu_config::Choosing;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "agent",
    argument: Language::argument_agent,
    about: Language::about_agent,
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let (person, language) = (arrival.inbound.sender.id.clone(), actor.language(&arrival));
    let words = command.argument.unwrap_or_default();
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
    let choosing = actor.account.policy().choosing(&person);
    let owner = actor.shared.owner_of(&arrival.inbound);
    match (first.to_lowercase().as_str(), choosing) {
        ("" | "list", _) => {
            let view = agents(actor, language, &arrival.inbound, choosing).await;
            actor.answer_with(arrival, view, Vec::new());
        }
        (_, Choosing::Fixed) => actor.answer(arrival, language.agent_fixed()),
        ("new", _) if !agent::may_make(&actor.account.policy(), &person, &owner) => {
            let text = language.paragraph(&[language.agent_not_made_here(), language.agents_listed()]);
            actor.answer(arrival, text);
        }
        ("new", _) => match rest.split_whitespace().next().map(str::to_owned) {
            Some(name) => make(actor, arrival, &name).await,
            None => {
                let text = [language.agents_new_nameless(), language.agents_new_usage()];
                actor.answer(arrival, language.paragraph(&text));
            }
        },
        ("-" | "default", _) => switch(actor, arrival, None).await,
        (name, _) if is_lead(name) => switch(actor, arrival, Some(AgentChoice::Lead)).await,
        _ => choose(actor, arrival, first).await,
    }
}

async fn choose(actor: &ConversationActor, arrival: InboxItem, name: &str) {
    let owner = actor.shared.owner_of(&arrival.inbound);
    match actor.shared.client.custom_agent(name, Some(&owner)).await {
        Ok(persona) => switch(actor, arrival, Some(AgentChoice::Named(persona.name))).await,
        Err(error) => {
            let language = actor.language(&arrival);
            let roster = actor.shared.client.roster(Some(&owner)).await;
            let near = roster.agents.iter().map(|agent| agent.name.as_str());
            let near = near.map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
            let meant = match near {
                Some((1..=2, known)) if matches!(error, AgentError::Unknown(_)) => {
                    language.did_you_mean(known)
                }
                _ => String::new(),
            };
            let problem = agent::problem(language, &error);
            actor.answer(arrival, language.paragraph(&[&problem, &meant, language.agents_listed()]));
        }
    }
}

/// Switches the conversation; back to the account's default for none.
async fn switch(actor: &ConversationActor, arrival: InboxItem, choice: Option<AgentChoice>) {
    let language = actor.language(&arrival);
    let text = match keep(actor, &arrival, choice).await {
        Ok(()) => introduce(actor, language, &arrival.inbound).await,
        Err(error) => not_stored(language, &error),
    };
    actor.answer(arrival, text);
}

pub(super) async fn keep(
    actor: &ConversationActor,
    arrival: &InboxItem,
    choice: Option<AgentChoice>,
) -> Result<(), StoreError> {
    actor.ensure_thread(arrival).await;
    let stored = choice.map(|choice| choice.stored());
    actor.shared.db.set_agent(&actor.key, stored.as_deref()).await
}

/// Returns the message that introduces the agent from now on, with its problems.
async fn introduce(actor: &ConversationActor, language: Language, inbound: &Inbound) -> String {
    let session = actor.session(inbound).await;
    let Some(persona) = agent::custom(&actor.shared, &session).await else {
        return language.agent_answers(session.agent_name(language));
    };
    let mut text = match brief(&persona.profile.about) {
        about if about.is_empty() => language.agent_answers(&persona.name),
        about => language.agent_answers_for(about, &persona.name),
    };
    for note in actor.shared.client.notes(&persona).await {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- ⚠️ {note}");
    }
    text
}

/// Begins a conversation in which an agent is made. The command is its first message.
async fn make(actor: &mut ConversationActor, arrival: InboxItem, name: &str) {
    let owner = actor.shared.owner_of(&arrival.inbound);
    let name = match actor.shared.client.vacant(name, Some(&owner)).await {
        Ok(name) => name,
        Err(error) => {
            let language = actor.language(&arrival);
            let text = [&agent::problem(language, &error), language.agents_new_usage()];
            actor.answer(arrival, language.paragraph(&text));
            return;
        }
    };
    actor.begin_anew(&arrival).await;
    match keep(actor, &arrival, Some(AgentChoice::New(name))).await {
        Ok(()) => actor.waiting.push_back(arrival),
        Err(error) => {
            let text = not_stored(actor.language(&arrival), &error);
            actor.answer(arrival, text);
        }
    }
}

/// Gives up an agent that is being made; returns whether there was one. One that was made answers from now on.
pub(super) async fn give_up_making(actor: &ConversationActor, inbound: &Inbound) -> bool {
    let chosen = actor.record().await.and_then(|record| record.agent);
    let (made, choice) = match chosen.as_deref().map(AgentChoice::parse) {
        Some(AgentChoice::New(name)) => {
            let owner = actor.shared.owner_of(inbound);
            let made = actor.shared.client.has_agent(&name, Some(&owner)).await;
            (made, made.then_some(name))
        }
        Some(AgentChoice::Bootstrap(mark)) => {
            let made = actor.shared.client.lead_soul_mark().await.is_some_and(|now| now != mark);
            (made, made.then(|| LEAD.to_owned()))
        }
        _ => return false,
    };
    let choice = choice.as_deref();
    let store = || actor.shared.db.set_agent(&actor.key, choice);
    retry_until_stored("failed to take back choice", store).await;
    !made
}

async fn agents(
    actor: &ConversationActor,
    language: Language,
    inbound: &Inbound,
    choosing: Choosing,
) -> FinalView {
    let session = actor.session(inbound).await;
    let now = session.agent_name(language);
    if choosing == Choosing::Fixed {
        let text = language.paragraph(&[&language.agent_answers_now(now), language.agent_fixed()]);
        return FinalView { text, ..FinalView::default() };
    }
    let owner = actor.shared.owner_of(inbound);
    let roster = actor.shared.client.roster(Some(&owner)).await;
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
        for note in actor.shared.client.notes(persona).await {
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
    let makes = agent::may_make(&actor.account.policy(), &inbound.sender.id, &owner);
    let new = if makes { language.agents_new() } else { "" };
    let _ = write!(text, "\n\n{}", language.paragraph(&[language.agents_switch(), new]));
    FinalView { text, choices: buttons(&roster, &now), ..FinalView::default() }
}

fn buttons(roster: &Roster, now: &str) -> Vec<Choice> {
    let names = std::iter::once(LEAD).chain(roster.agents.iter().map(|persona| persona.name.as_str()));
    let button = |name: &str| Choice { label: name.to_owned(), action: format!("/agent {name}") };
    let buttons = names.filter(|name| *name != now).map(button);
    buttons.filter(|button| button.action.len() <= MAX_ACTION_BYTES).take(MAX_BUTTONS).collect()
}
