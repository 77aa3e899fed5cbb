//! `/agent`: lists the agents, switches a conversation to one, or begins to make one.

use super::{CommandSpec, MAX_ACTION_BYTES, MAX_BUTTONS, brief, not_stored};
use crate::dispatch::{
    agent::{self, AgentChoice},
    command::SlashCommand,
    conversation::ConversationActor,
};
use crate::{
    bus::{InboxItem, retry_until_stored},
    config::Choosing,
};
use pudu_channels::{Choice, FinalView};
use pudu_client::{
    Authoring,
    agents::{CustomAgent, LEAD, Roster, is_lead},
    store::StoreError,
};
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "agent",
    argument: "[name|new name]",
    help: "List the agents, switch to one, or make one",
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

/// The answer where people may not choose.
const FIXED: &str = "Who answers here is fixed by whoever runs this bot.";

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let person = arrival.inbound.sender.id.clone();
    let words = command.argument.unwrap_or_default();
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
    let choosing = actor.account.policy().choosing(&person);
    match (first.to_lowercase().as_str(), choosing) {
        ("" | "list", _) => {
            let view = agents(actor, &person, choosing).await;
            actor.answer_with(arrival, view, Vec::new());
        }
        (_, Choosing::Fixed) => actor.answer(arrival, FIXED),
        ("new", Choosing::Choose) => {
            actor.answer(
                arrival,
                "New agents are made by whoever runs this bot. /agent lists those there are.",
            );
        }
        ("new", Choosing::Create) => {
            let name = rest.split_whitespace().next().unwrap_or_default().to_owned();
            make(actor, arrival, &name).await;
        }
        ("-" | "default", _) => switch(actor, arrival, None).await,
        (name, _) if is_lead(name) => switch(actor, arrival, Some(AgentChoice::Lead)).await,
        _ => choose(actor, arrival, first).await,
    }
}

async fn choose(actor: &ConversationActor, arrival: InboxItem, name: &str) {
    match actor.shared.client.custom_agent(name).await {
        Ok(persona) => switch(actor, arrival, Some(AgentChoice::Named(persona.name))).await,
        Err(why) => {
            let roster = actor.shared.client.roster().await;
            let near = roster.agents.iter().map(|agent| agent.name.as_str());
            let near = near.map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
            let meant = match near {
                Some((1..=2, known)) => format!(" Did you mean `{known}`?"),
                _ => String::new(),
            };
            actor.answer(arrival, format!("{why}{meant} /agent lists those there are."));
        }
    }
}

/// Switches the conversation; back to the account's default for none.
async fn switch(actor: &ConversationActor, arrival: InboxItem, choice: Option<AgentChoice>) {
    let text = match keep(actor, &arrival, choice).await {
        Ok(()) => introduce(actor, &arrival.inbound.sender.id).await,
        Err(error) => not_stored(&error),
    };
    actor.answer(arrival, text);
}

async fn keep(
    actor: &ConversationActor,
    arrival: &InboxItem,
    choice: Option<AgentChoice>,
) -> Result<(), StoreError> {
    actor.ensure_thread(arrival).await;
    let stored = choice.map(|choice| choice.stored());
    actor.shared.db.set_agent(&actor.key, stored.as_deref()).await
}

/// Returns the message that introduces the agent from now on, with its problems.
async fn introduce(actor: &ConversationActor, person: &str) -> String {
    let Some(persona) = agent::custom(&actor.shared, &actor.session(person).await).await else {
        return format!("`{}` answers here from now on.", actor.session(person).await.agent_name());
    };
    let about = about(&persona);
    let mut text = format!("`{}` answers here from now on{about}.", persona.name);
    for note in actor.shared.client.notes(&persona).await {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- ⚠️ {note}");
    }
    text
}

/// Begins a conversation in which an agent is made. The command is what is said first in it.
async fn make(actor: &mut ConversationActor, arrival: InboxItem, name: &str) {
    let name = match actor.shared.client.vacant(name).await {
        Ok(name) => name,
        Err(why) => {
            let text = format!("{why}. Write `/agent new NAME`, and behind it what the agent is for.");
            actor.answer(arrival, text);
            return;
        }
    };
    actor.begin_anew(&arrival).await;
    match keep(actor, &arrival, Some(AgentChoice::New(name))).await {
        Ok(()) => actor.waiting.push_back(arrival),
        Err(error) => actor.answer(arrival, not_stored(&error)),
    }
}

/// Gives up an agent that is being made; tells whether there was one. One that was made answers from now on.
pub(super) async fn give_up_making(actor: &ConversationActor) -> bool {
    let chosen = actor.record().await.and_then(|record| record.agent);
    let Some(AgentChoice::New(name)) = chosen.as_deref().map(AgentChoice::parse) else { return false };
    let made = actor.shared.client.has_agent(&name).await;
    let choice = made.then_some(name.as_str());
    let store = || actor.shared.db.set_agent(&actor.key, choice);
    retry_until_stored("a choice could not be taken back", store).await;
    !made
}

async fn agents(actor: &ConversationActor, person: &str, choosing: Choosing) -> FinalView {
    let session = actor.session(person).await;
    let now = session.agent_name();
    if choosing == Choosing::Fixed {
        return FinalView { text: format!("`{now}` answers here. {FIXED}"), ..FinalView::default() };
    }
    let roster = actor.shared.client.roster().await;
    let mut text = "Agents:\n".to_owned();
    let mark = |name: &str| if name == now { " ← answers here" } else { "" };
    // Writing to a String cannot fail.
    let _ = write!(text, "\n- `{LEAD}`: the usual one{}", mark(LEAD));
    for persona in &roster.agents {
        let _ = write!(text, "\n- `{}`{}{}", persona.name, about(persona), mark(&persona.name));
        for note in actor.shared.client.notes(persona).await {
            let _ = write!(text, "\n  - ⚠️ {note}");
        }
    }
    for broken in &roster.broken {
        let _ = write!(text, "\n- ⚠️ `{}` answers nobody: {}", broken.name, broken.why);
    }
    if let Authoring::New(name) = &session.authoring {
        let _ = write!(text, "\n- `{name}` is being made here");
    }
    if roster.more > 0 {
        let _ = write!(text, "\n- and {} more", roster.more);
    }
    text.push_str("\n\n`/agent NAME` switches this conversation, `/agent default` back.");
    if choosing == Choosing::Create {
        text.push_str(" `/agent new NAME` makes one.");
    }
    FinalView { text, choices: buttons(&roster, &now), ..FinalView::default() }
}

/// Returns an agent's purpose, to stand behind its name.
fn about(persona: &CustomAgent) -> String {
    match brief(&persona.profile.about) {
        about if about.is_empty() => String::new(),
        about => format!(": {about}"),
    }
}

fn buttons(roster: &Roster, now: &str) -> Vec<Choice> {
    let names = std::iter::once(LEAD).chain(roster.agents.iter().map(|persona| persona.name.as_str()));
    let button = |name: &str| Choice { label: name.to_owned(), action: format!("/agent {name}") };
    let buttons = names.filter(|name| *name != now).map(button);
    buttons.filter(|button| button.action.len() <= MAX_ACTION_BYTES).take(MAX_BUTTONS).collect()
}
