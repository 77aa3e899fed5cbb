//! Determines which agent answers in a conversation: the one chosen with `/agent`, if the bot's rules allow it.
//!
//! The choice is stored with the conversation. If the bot has a fixed agent, choices have no effect, not even earlier
//! ones.

use super::{
    account::{Account, AccountRules, AgentSession},
    shared::Shared,
    speaker::SpeakerPlace,
};
use crate::bus::retry_until_stored;
use pudu_agent::{
    Authoring,
    agents::{AgentError, CustomAgent, LEAD, MAX_NAME_CHARS, NameProblem},
};
use pudu_base::{Skill, UserId};
use pudu_config::Choosing;
use pudu_harness::middleware::named;
use pudu_texts::Language;
use std::sync::Arc;

/// Prefix of a stored choice whose agent is being created. The agent's name follows.
const NEW_PREFIX: &str = "new:";
/// Prefix of a stored choice while the lead agent's soul is being rewritten. The old soul's fingerprint follows.
const BOOTSTRAP: &str = "bootstrap:";

/// The agent chosen in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentChoice {
    Lead,
    Named(String),
    /// An agent that is being created. It answers as soon as it exists.
    New(String),
    /// The lead agent, whose soul is being rewritten. The old soul has this fingerprint.
    Bootstrap(String),
}

impl AgentChoice {
    /// Parses a stored choice.
    pub(super) fn parse(text: &str) -> Self {
        if let Some(name) = text.strip_prefix(NEW_PREFIX) {
            return Self::New(name.to_owned());
        }
        match text.strip_prefix(BOOTSTRAP) {
            Some(mark) => Self::Bootstrap(mark.to_owned()),
            None if text == LEAD => Self::Lead,
            None => Self::Named(text.to_owned()),
        }
    }

    pub(super) fn stored(&self) -> String {
        match self {
            Self::Lead => LEAD.to_owned(),
            Self::Named(name) => name.clone(),
            Self::New(name) => format!("{NEW_PREFIX}{name}"),
            Self::Bootstrap(mark) => format!("{BOOTSTRAP}{mark}"),
        }
    }
}

/// Returns the session for a person, with the agent chosen in the conversation or, failing that, the bot's.
pub(super) async fn settle<'s>(
    shared: &Shared,
    account: &Account,
    key: &str,
    chosen: Option<&str>,
    speaker: impl Into<SpeakerPlace<'s>>,
) -> AgentSession {
    let speaker = speaker.into();
    let (policy, person) = (account.policy(), speaker.person);
    let user = shared.user(&speaker.address.account, person);
    let owner = shared.owner_of(speaker);
    let session = AgentSession { user, ..policy.session(person) };
    let choosing = policy.choosing(person);
    let with_agent = |session: AgentSession, name| AgentSession {
        agent: Some(name),
        agents_of: Some(owner.clone()),
        ..session
    };
    let Some(choice) = chosen.map(AgentChoice::parse).filter(|_| choosing != Choosing::Fixed) else {
        return session;
    };
    match choice {
        AgentChoice::Lead => AgentSession { agent: None, ..session },
        AgentChoice::Named(name) => with_agent(session, name),
        AgentChoice::New(name) if shared.agent.has_agent(&name, Some(&owner)).await => {
            // The agent exists now, so it becomes an ordinary choice.
            let keep = || shared.db.set_agent(key, Some(&name));
            retry_until_stored("failed to store choice of agent", keep).await;
            with_agent(session, name)
        }
        AgentChoice::New(name) if may_create(&policy, person, &owner) => {
            AgentSession { agent: None, authoring: Authoring::New(name), ..session }
        }
        AgentChoice::Bootstrap(mark) if may_bootstrap(&policy, person) => {
            if shared.agent.lead_soul_mark().await.is_some_and(|now| now != mark) {
                // The lead agent has its new soul, so it becomes the choice here.
                let lead = || shared.db.set_agent(key, Some(LEAD));
                retry_until_stored("failed to store choice of agent", lead).await;
                return AgentSession { agent: None, ..session };
            }
            AgentSession { agent: None, authoring: Authoring::Lead, ..session }
        }
        AgentChoice::New(_) | AgentChoice::Bootstrap(_) => session,
    }
}

/// Returns whether a person may create an agent for `owner`, which is their own user or the room. The local user's
/// agents are shared.
pub(super) fn may_create(policy: &AccountRules, person: &str, owner: &UserId) -> bool {
    let is_shared = *owner == UserId::local();
    policy.choosing(person) == Choosing::Create && (!is_shared || policy.may_change_shared(person))
}

/// Returns whether a person may write the soul of the lead agent, which is shared.
pub(super) fn may_bootstrap(policy: &AccountRules, person: &str) -> bool {
    policy.choosing(person) == Choosing::Create && policy.may_change_shared(person)
}

/// Returns the custom agent of a session, if it has one that can be read.
pub(super) async fn custom(shared: &Shared, session: &AgentSession) -> Option<CustomAgent> {
    shared.agent.custom_agent(session.agent.as_ref()?, session.agents_of.as_ref()).await.ok()
}

/// Returns the skills that a session's agent may use: shared ones and those of a user.
pub(super) async fn skills(shared: &Shared, session: &AgentSession, user: &UserId) -> Arc<[Skill]> {
    if matches!(session.authoring, Authoring::New(_) | Authoring::Lead) {
        return Arc::default();
    }
    let catalog = shared.agent.catalog_of(user).await;
    match custom(shared, session).await {
        Some(agent) => agent.profile.skills_of(&catalog),
        None => catalog.enabled(),
    }
}

/// Returns the user-facing message for an agent error.
pub(super) fn problem(language: Language, error: &AgentError) -> String {
    match error {
        AgentError::Unknown(name) => language.agent_unknown(name),
        AgentError::Exists(name) => language.agent_exists(name),
        AgentError::Broken { name, why } => language.agent_broken(name, why),
        AgentError::Full(most) => language.agents_full(most),
        AgentError::Name { name, why } => match why {
            NameProblem::TooLong => language.agent_name_long(MAX_NAME_CHARS, name),
            NameProblem::Characters => language.agent_name_odd(name),
            NameProblem::Taken => language.agent_name_taken(name),
        },
        error @ (AgentError::Shared(_)
        | AgentError::Legacy(_)
        | AgentError::Wrong(_)
        | AgentError::Io { .. }) => {
            tracing::error!(%error, "failed to read an agent");
            language.agent_unreadable().to_owned()
        }
    }
}

/// Returns a refusal if a message requests a skill that the session's agent does not have.
pub(super) async fn withheld(
    shared: &Shared,
    session: &AgentSession,
    language: Language,
    user: &UserId,
    text: &str,
) -> Option<String> {
    let word = text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    let all = shared.agent.catalog_of(user).await.enabled();
    let skill = named(&all, word)?;
    if skills(shared, session, user).await.iter().any(|own| own.name == skill.name) {
        return None;
    }
    Some(language.skill_withheld(session.agent_name(language), &skill.name))
}

impl AgentSession {
    /// Returns the name of the agent that answers.
    pub(super) fn agent_name(&self, language: Language) -> String {
        match (&self.authoring, &self.agent) {
            (Authoring::New(name), _) => language.agent_being_made(name),
            (Authoring::Lead, _) => language.agent_being_made(LEAD),
            (_, Some(name)) => pudu_agent::agents::normal(name).unwrap_or_else(|_| name.clone()),
            (_, None) => LEAD.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_choices_round_trip() {
        for (choice, text) in [
            (AgentChoice::Lead, "lead_agent"),
            (AgentChoice::Named("poet".into()), "poet"),
            (AgentChoice::New("poet".into()), "new:poet"),
            (AgentChoice::Bootstrap("none".into()), "bootstrap:none"),
        ] {
            assert_eq!((choice.stored().as_str(), &AgentChoice::parse(text)), (text, &choice));
        }
    }
}
