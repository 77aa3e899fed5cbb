//! Which agent answers in a conversation: what people choose with `/agent`, within what the account allows.
//!
//! The choice is the conversation's and is stored with it. Where the account fixes who answers, no choice counts,
//! one from before neither.

use super::{AccountRules, AgentSession, Shared, command, conversation::ConversationActor};
use crate::{
    bus::{InboxItem, retry_until_stored},
    config::Choosing,
};
use pudu_channels::{Choice as Button, FinalView};
use pudu_client::{
    Authoring,
    agents::{CustomAgent, LEAD, Roster, is_lead},
    base::Skill,
    harness::middleware::named,
    store::StoreError,
};
use std::{fmt::Write, sync::Arc};

/// So many agents, or models, become buttons.
pub(super) const BUTTONS: usize = 8;
/// The longest action that a button can carry, in bytes.
pub(super) const ACTION: usize = 64;
/// What stands before the name of an agent that is being made, where the choice is stored.
const NEW: &str = "new:";
/// Said where people may not choose.
const FIXED: &str = "Who answers here is fixed by whoever runs this bot.";

/// What people chose.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AgentChoice {
    Lead,
    Named(String),
    /// An agent that is being made: from the moment it is there it answers.
    New(String),
}

impl AgentChoice {
    /// Reads what is stored.
    fn parse(text: &str) -> Self {
        match text.strip_prefix(NEW) {
            Some(name) => Self::New(name.to_owned()),
            None if text == LEAD => Self::Lead,
            None => Self::Named(text.to_owned()),
        }
    }

    fn stored(&self) -> String {
        match self {
            Self::Lead => LEAD.to_owned(),
            Self::Named(name) => name.clone(),
            Self::New(name) => format!("{NEW}{name}"),
        }
    }
}

/// Says who answers a person: what people chose in the conversation, or else what the account says.
pub(super) async fn settle(
    shared: &Shared,
    policy: &AccountRules,
    key: &str,
    chosen: Option<&str>,
    person: &str,
) -> AgentSession {
    let (session, choosing) = (policy.session(person), policy.choosing(person));
    let Some(choice) = chosen.map(AgentChoice::parse).filter(|_| choosing != Choosing::Fixed) else {
        return session;
    };
    match choice {
        AgentChoice::Lead => AgentSession { agent: None, ..session },
        AgentChoice::Named(name) => AgentSession { agent: Some(name), ..session },
        AgentChoice::New(name) if shared.client.has_agent(&name).await => {
            // It was made: from now on it is a choice like any other.
            let named = || shared.db.set_agent(key, Some(&name));
            retry_until_stored("a new agent could not be chosen", named).await;
            AgentSession { agent: Some(name), ..session }
        }
        AgentChoice::New(name) if choosing == Choosing::Create => {
            AgentSession { agent: None, authoring: Authoring::New(name), ..session }
        }
        AgentChoice::New(_) => session,
    }
}

impl ConversationActor {
    /// Lists the agents, switches to one, or begins to make one.
    pub(super) async fn agent(&mut self, arrival: InboxItem, words: Option<String>) {
        let person = arrival.inbound.sender.id.clone();
        let words = words.unwrap_or_default();
        let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((&words, ""));
        let choosing = self.account.policy().choosing(&person);
        match (first.to_lowercase().as_str(), choosing) {
            ("" | "list", _) => {
                let view = self.agents(&person, choosing).await;
                self.answer_with(arrival, view, Vec::new());
            }
            (_, Choosing::Fixed) => self.answer(arrival, FIXED),
            ("new", Choosing::Choose) => {
                self.answer(
                    arrival,
                    "New agents are made by whoever runs this bot. /agent lists those there are.",
                );
            }
            ("new", Choosing::Create) => {
                let name = rest.split_whitespace().next().unwrap_or_default().to_owned();
                self.make(arrival, &name).await;
            }
            ("-" | "default", _) => self.switch(arrival, None).await,
            (name, _) if is_lead(name) => self.switch(arrival, Some(AgentChoice::Lead)).await,
            _ => self.choose(arrival, first).await,
        }
    }

    async fn choose(&self, arrival: InboxItem, name: &str) {
        match self.shared.client.custom_agent(name).await {
            Ok(custom) => self.switch(arrival, Some(AgentChoice::Named(custom.name))).await,
            Err(why) => {
                let roster = self.shared.client.roster().await;
                let near = roster.agents.iter().map(|agent| agent.name.as_str());
                let near = near.map(|known| (strsim::damerau_levenshtein(known, name), known)).min();
                let meant = match near {
                    Some((1..=2, known)) => format!(" Did you mean `{known}`?"),
                    _ => String::new(),
                };
                self.answer(arrival, format!("{why}{meant} /agent lists those there are."));
            }
        }
    }

    /// Switches the conversation; back to the account's default for none.
    async fn switch(&self, arrival: InboxItem, choice: Option<AgentChoice>) {
        let text = match self.keep(&arrival, choice).await {
            Ok(()) => self.introduce(&arrival.inbound.sender.id).await,
            Err(error) => super::answer::not_kept(&error),
        };
        self.answer(arrival, text);
    }

    async fn keep(&self, arrival: &InboxItem, choice: Option<AgentChoice>) -> Result<(), StoreError> {
        self.thread(arrival).await;
        let stored = choice.map(|choice| choice.stored());
        self.shared.db.set_agent(&self.key, stored.as_deref()).await
    }

    /// Says who answers from now on, and what is odd about them.
    async fn introduce(&self, person: &str) -> String {
        let Some(custom) = self.custom(person).await else {
            return format!("`{}` answers here from now on.", self.session(person).await.agent_name());
        };
        let about = about(&custom);
        let mut text = format!("`{}` answers here from now on{about}.", custom.name);
        for note in self.shared.client.notes(&custom).await {
            // Writing to a String cannot fail.
            let _ = write!(text, "\n- ⚠️ {note}");
        }
        text
    }

    /// Begins a conversation in which an agent is made. The command is what is said first in it.
    async fn make(&mut self, arrival: InboxItem, name: &str) {
        let name = match self.shared.client.vacant(name).await {
            Ok(name) => name,
            Err(why) => {
                let text = format!("{why}. Write `/agent new NAME`, and behind it what the agent is for.");
                self.answer(arrival, text);
                return;
            }
        };
        self.begin_anew(&arrival).await;
        match self.keep(&arrival, Some(AgentChoice::New(name))).await {
            Ok(()) => self.waiting.push_back(arrival),
            Err(error) => self.answer(arrival, super::answer::not_kept(&error)),
        }
    }

    /// Gives up an agent that is being made; tells whether there was one. One that was made answers from now on.
    pub(super) async fn give_up_making(&self) -> bool {
        let chosen = self.record().await.and_then(|record| record.agent);
        let Some(AgentChoice::New(name)) = chosen.as_deref().map(AgentChoice::parse) else { return false };
        let made = self.shared.client.has_agent(&name).await;
        let choice = made.then_some(name.as_str());
        let store = || self.shared.db.set_agent(&self.key, choice);
        retry_until_stored("a choice could not be taken back", store).await;
        !made
    }

    /// Returns who answers a person here.
    pub(super) async fn session(&self, person: &str) -> AgentSession {
        let chosen = self.record().await.and_then(|record| record.agent);
        settle(&self.shared, &self.account.policy(), &self.key, chosen.as_deref(), person).await
    }

    /// Returns the custom agent that answers a person here, if it is one and can be read.
    pub(super) async fn custom(&self, person: &str) -> Option<CustomAgent> {
        self.shared.client.custom_agent(&self.session(person).await.agent?).await.ok()
    }

    /// Returns the skills of who answers a person here.
    pub(super) async fn skills(&self, person: &str) -> Arc<[Skill]> {
        let (session, catalog) = (self.session(person).await, self.shared.client.catalog().await);
        if let Authoring::New(_) = session.authoring {
            return Arc::default();
        }
        match self.custom(person).await {
            Some(custom) => custom.profile.skills_of(&catalog),
            None => catalog.enabled(),
        }
    }

    /// Says that a skill that a message asks for is not one of the agent's.
    pub(super) async fn withheld(&self, text: &str, person: &str) -> Option<String> {
        let word = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
        let catalog = self.shared.client.catalog().await;
        let all = catalog.enabled();
        let skill = named(&all, word)?;
        if self.skills(person).await.iter().any(|own| own.name == skill.name) {
            return None;
        }
        let name = self.session(person).await.agent_name();
        let (skill, rest) = (&skill.name, "/skills lists those that are.");
        Some(format!("The skill `/{skill}` is not available to `{name}`. {rest}"))
    }

    async fn agents(&self, person: &str, choosing: Choosing) -> FinalView {
        let session = self.session(person).await;
        let now = session.agent_name();
        if choosing == Choosing::Fixed {
            return FinalView { text: format!("`{now}` answers here. {FIXED}"), ..FinalView::default() };
        }
        let roster = self.shared.client.roster().await;
        let mut text = "Agents:\n".to_owned();
        let mark = |name: &str| if name == now { " ← answers here" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- `{LEAD}`: the usual one{}", mark(LEAD));
        for custom in &roster.agents {
            let _ = write!(text, "\n- `{}`{}{}", custom.name, about(custom), mark(&custom.name));
            for note in self.shared.client.notes(custom).await {
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
}

impl AgentSession {
    /// Returns the name of who answers.
    pub(super) fn agent_name(&self) -> String {
        match (&self.authoring, &self.agent) {
            (Authoring::New(name), _) => format!("{name} (being made)"),
            (_, Some(name)) => pudu_client::agents::normal(name).unwrap_or_else(|_| name.clone()),
            (_, None) => LEAD.to_owned(),
        }
    }
}

/// Says what an agent is for, behind its name.
fn about(custom: &CustomAgent) -> String {
    match command::brief(&custom.profile.about) {
        about if about.is_empty() => String::new(),
        about => format!(": {about}"),
    }
}

fn buttons(roster: &Roster, now: &str) -> Vec<Button> {
    let names = std::iter::once(LEAD).chain(roster.agents.iter().map(|custom| custom.name.as_str()));
    let button = |name: &str| Button { label: name.to_owned(), action: format!("/agent {name}") };
    let buttons = names.filter(|name| *name != now).map(button);
    buttons.filter(|button| button.action.len() <= ACTION).take(BUTTONS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back() {
        for (choice, text) in [
            (AgentChoice::Lead, "lead_agent"),
            (AgentChoice::Named("poet".into()), "poet"),
            (AgentChoice::New("poet".into()), "new:poet"),
        ] {
            assert_eq!((choice.stored().as_str(), &AgentChoice::parse(text)), (text, &choice));
        }
    }
}
