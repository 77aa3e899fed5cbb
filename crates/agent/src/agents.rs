//! Custom agents, which may answer instead of the lead agent. Each is a folder in the home, in DeerFlow's layout:
//! `SOUL.md` contains its character, `config.yaml` its limits. The local user's agents are shared. Any other user, a
//! person or a group chat, may have agents of its own. A shared agent takes precedence over one with the same name, so
//! a name in the configuration means the same agent for every user.
//!
//! An agent whose `config.yaml` cannot be parsed is broken and never answers, because its restrictions are unknown. All
//! functions here do blocking file I/O. Deliberately absent: running an agent, and the check of who may choose or
//! change one.

mod disk;
mod error;
mod file;
mod lookup;
mod name;
mod notes;
mod place;
mod profile;
mod setup_agent;
mod update_agent;

pub use error::{AgentError, MAX_NAME_CHARS, NameProblem};
pub use file::read_options;
pub use name::{LEAD, is_lead, normal};
pub use place::AgentPlace;
pub use profile::{AgentProfile, MAX_SOUL_BYTES};
pub use update_agent::UPDATE_AGENT;
pub(crate) use {
    notes::unknown_groups,
    setup_agent::{SETUP_AGENT, SetupAgent, SetupLead},
    update_agent::{AgentOptions, UpdateAgent},
};

use error::FULL;
use pudu_base::{Sampling, Thinking, UserId};
use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::UNIX_EPOCH,
};

/// Maximum number of agents listed.
const MAX_AGENTS: usize = 200;
/// Maximum length of an agent's description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Maximum number of tool groups or skills that an agent may list.
pub const MAX_LISTED_NAMES: usize = 200;
/// Maximum length of the name of a group, a skill or a model, in characters.
const MAX_LISTED_NAME_CHARS: usize = 200;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomAgent {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// Its profile.
    pub profile: AgentProfile,
    /// Where it is stored.
    pub place: AgentPlace,
    /// Problems in its file.
    pub odd: Vec<String>,
}

/// An agent that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenAgent {
    /// The folder's name.
    pub name: String,
    /// The cause and the remedy.
    pub why: String,
}

/// A snapshot of all agents, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roster {
    /// Agents that can answer.
    pub agents: Vec<CustomAgent>,
    /// Agents that cannot answer.
    pub broken: Vec<BrokenAgent>,
    /// Number of agents beyond the limit.
    pub more: usize,
}

/// A change of an agent. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentChange {
    /// Its purpose.
    pub about: Option<String>,
    /// Its model; `Some(None)` for the default.
    pub model: Option<Option<String>>,
    /// Its tool groups; `Some(None)` for all.
    pub tool_groups: Option<Option<Vec<String>>>,
    /// Its skills; `Some(None)` for all.
    pub skills: Option<Option<Vec<String>>>,
    /// The thinking effort of its model; `Some(None)` for the conversation's.
    pub thinking: Option<Option<Thinking>>,
    /// The sampling of its model.
    pub sampling: Option<Sampling>,
    /// Its identity.
    pub soul: Option<String>,
    /// Whether tools and skills may only be removed.
    pub only_less: bool,
}

impl AgentChange {
    /// Returns the first tool group or skill that an agent would gain.
    fn first_gain(&self, now: &AgentProfile) -> Option<(&'static str, &str)> {
        let both = [("tools", &self.tool_groups, &now.tool_groups), ("skills", &self.skills, &now.skills)];
        both.into_iter().find_map(|(what, wanted, has)| match (wanted.as_ref()?, has.as_ref()?) {
            (None, _) => Some((what, "all")),
            (Some(wanted), has) => Some((what, wanted.iter().find(|name| !has.contains(name))?.as_str())),
        })
    }
}

/// The agents of a home that are visible to one user: the shared ones, then their own. Clones share one state.
#[derive(Clone, Debug)]
pub struct Agents {
    inner: Arc<Inner>,
    /// The user whose own agents are visible, if that is not the local user.
    owner: Option<UserId>,
    /// Whether shared agents may be changed and new agents are shared.
    edits_shared: bool,
}

#[derive(Debug)]
struct Inner {
    home: PathBuf,
    /// The notes of each agent that were already logged, so that each is logged once.
    logged: Mutex<HashMap<String, Vec<String>>>,
}

impl Agents {
    /// Creates a handle on the shared agents of a home, with the operator's rights. Nothing is read yet.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self { inner: Arc::new(Inner { home, logged: Mutex::default() }), owner: None, edits_shared: true }
    }

    /// Returns the agents that are visible to a user; without a user, only the shared ones. With `edits_shared`, shared
    /// agents may be changed, otherwise only the user's own.
    #[must_use]
    pub fn for_user(&self, owner: Option<&UserId>, edits_shared: bool) -> Self {
        let owner = owner.filter(|owner| **owner != UserId::local()).cloned();
        Self { inner: self.inner.clone(), owner, edits_shared }
    }

    /// Lists the users that have agents of their own.
    #[must_use]
    pub fn owners(&self) -> Vec<UserId> {
        disk::owners(&self.inner.home.join("users"))
    }

    /// Finds an agent by its name as typed by people.
    ///
    /// # Errors
    /// If there is no such agent, or it is broken.
    pub fn find(&self, wanted: &str) -> Result<CustomAgent, AgentError> {
        let name = normal(wanted)?;
        let Some((root, place)) = self.root_of(&name) else { return Err(AgentError::Unknown(name)) };
        let read = file::read(&root.join(&name));
        let (profile, odd) = read.map_err(|why| AgentError::Broken { name: name.clone(), why })?;
        Ok(CustomAgent { name, profile, place, odd })
    }

    /// Returns whether there is an agent with this name, broken or not.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        normal(name).is_ok_and(|name| self.root_of(&name).is_some())
    }

    /// Lists the agents.
    #[must_use]
    pub fn list(&self) -> Roster {
        let mut roster = Roster::default();
        for name in disk::names(&self.roots()) {
            if roster.agents.len() + roster.broken.len() == MAX_AGENTS {
                roster.more += 1;
                continue;
            }
            match self.find(&name) {
                Ok(custom) if custom.name == name => roster.agents.push(custom),
                Ok(_) | Err(AgentError::Unknown(_) | AgentError::Name { .. }) => {
                    let why = "the name of an agent's folder must consist of lower-case letters, digits and hyphens: rename it";
                    roster.broken.push(BrokenAgent { name, why: why.to_owned() });
                }
                Err(AgentError::Broken { why, .. }) => roster.broken.push(BrokenAgent { name, why }),
                Err(error) => roster.broken.push(BrokenAgent { name, why: error.public_message() }),
            }
        }
        roster
    }

    /// Lists a user's own agents, by name. Agents with the name of a shared one are listed as broken.
    #[must_use]
    pub fn own_of(&self, owner: &UserId) -> Roster {
        let shared = disk::names(&self.for_user(None, false).roots());
        let mut roster = self.for_user(Some(owner), false).list();
        roster.agents.retain(|agent| agent.place == AgentPlace::Own);
        roster.broken.retain(|agent| !shared.contains(&agent.name));
        let own = disk::names(&[(self.own(owner), AgentPlace::Own)]);
        roster.broken.extend(own.intersection(&shared).map(|name| BrokenAgent {
            name: name.clone(),
            why: "a shared agent has the same name and answers instead: rename its folder".to_owned(),
        }));
        roster
    }

    /// Returns the normal form of a new agent's name, if it is free.
    ///
    /// # Errors
    /// If the name is taken or invalid, or there are too many agents.
    pub fn vacant(&self, wanted: &str) -> Result<String, AgentError> {
        let name = name::fresh(wanted)?;
        if self.root_of(&name).is_some() {
            return Err(AgentError::Exists(name));
        }
        match disk::names(&self.roots()).len() {
            FULL.. => Err(AgentError::Full(FULL)),
            _ => Ok(name),
        }
    }

    /// Creates an agent.
    ///
    /// # Errors
    /// If the name is taken or invalid, a value of the profile is invalid, shared agents may not be created, or the
    /// disk fails. Nothing is stored in these cases.
    pub fn create(&self, wanted: &str, profile: &AgentProfile) -> Result<CustomAgent, AgentError> {
        let profile = checked(profile.clone())?;
        let (root, place) = match &self.owner {
            _ if self.edits_shared => (self.shared(), AgentPlace::Shared),
            Some(owner) => (self.own(owner), AgentPlace::Own),
            None => return Err(AgentError::Shared(wanted.to_owned())),
        };
        let _alone = disk::lock(&root)?;
        let name = self.vacant(wanted)?;
        let config = file::config(&name, &profile, None).map_err(AgentError::Wrong)?;
        disk::create(&root, &name, &[config, file::soul(&profile.soul)])?;
        tracing::info!(agent = name, "created agent");
        Ok(CustomAgent { name, profile, place, odd: Vec::new() })
    }

    /// Changes an agent, from its next run on. Each of the two files is written completely or not at all, the config
    /// before the soul.
    ///
    /// # Errors
    /// If there is no such agent, it is broken or may not be changed, a value is invalid, or the disk fails.
    pub fn update(&self, wanted: &str, change: AgentChange) -> Result<CustomAgent, AgentError> {
        let root = self.editable(wanted)?;
        let _alone = disk::lock(&root)?;
        let old = self.find(wanted)?;
        let folder = disk::inside(&root, &old.name)?;
        let now = old.profile.clone();
        if let Some((what, more)) = change.first_gain(&now).filter(|_| change.only_less) {
            let help = "an operator can add it to config.yaml, or allow approval of \
                        update_agent (approvals.tools)";
            return Err(AgentError::Wrong(format!("you cannot give yourself more {what} ({more}): {help}")));
        }
        let profile = checked(AgentProfile {
            about: change.about.unwrap_or(now.about),
            thinking: change.thinking.unwrap_or(now.thinking),
            sampling: change.sampling.unwrap_or(now.sampling),
            model: change.model.unwrap_or(now.model),
            tool_groups: change.tool_groups.unwrap_or(now.tool_groups),
            skills: change.skills.unwrap_or(now.skills),
            soul: change.soul.unwrap_or(now.soul),
        })?;
        let mut files = Vec::new();
        if (AgentProfile { soul: old.profile.soul.clone(), ..profile.clone() }) != old.profile {
            let unknown =
                file::mapping(&folder).map_err(|why| AgentError::Broken { name: old.name.clone(), why })?;
            files.push(file::config(&old.name, &profile, Some(unknown)).map_err(AgentError::Wrong)?);
        }
        if profile.soul != old.profile.soul {
            files.push(file::soul(&profile.soul));
        }
        disk::replace(&folder, &files)?;
        tracing::info!(agent = old.name, files = files.len(), "changed agent");
        Ok(CustomAgent { profile, ..old })
    }

    /// Returns the soul of the lead agent, if it has one: a `SOUL.md` in the home itself.
    ///
    /// # Errors
    /// If the file exists but is invalid.
    pub fn lead_soul(&self) -> Result<Option<String>, AgentError> {
        let read = file::character(&self.inner.home);
        read.map_err(|why| AgentError::Broken { name: LEAD.to_owned(), why })
    }

    /// Returns the write time of the lead agent's soul as text, or `none` if it has no soul. Returns `None` if the time
    /// cannot be read.
    #[must_use]
    pub fn lead_soul_mark(&self) -> Option<String> {
        let written = file::soul_path(&self.inner.home).metadata().and_then(|found| found.modified());
        match written {
            Ok(at) => Some(at.duration_since(UNIX_EPOCH).ok()?.as_nanos().to_string()),
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then(|| "none".to_owned()),
        }
    }

    /// Sets the lead agent's soul, from its next run on.
    ///
    /// # Errors
    /// If it is too long, shared agents may not be changed, or the disk fails.
    pub fn set_lead_soul(&self, soul: &str) -> Result<(), AgentError> {
        if !self.edits_shared {
            return Err(AgentError::Shared(LEAD.to_owned()));
        }
        let profile = checked(AgentProfile { soul: soul.to_owned(), ..AgentProfile::default() })?;
        let _alone = disk::lock(&self.shared())?;
        disk::replace(&self.inner.home, &[file::soul(&profile.soul)])?;
        tracing::info!(agent = LEAD, "changed soul of lead agent");
        Ok(())
    }

    /// Removes an agent and its folder.
    ///
    /// # Errors
    /// If there is no such agent, it may not be changed, or the disk fails.
    pub fn remove(&self, wanted: &str) -> Result<(), AgentError> {
        let root = self.editable(wanted)?;
        let _alone = disk::lock(&root)?;
        // A broken agent can be removed too.
        let name = normal(wanted)?;
        if !file::is_agent(&root.join(&name)) {
            return Err(AgentError::Unknown(name));
        }
        disk::remove(&root, &name)?;
        tracing::info!(agent = name, "removed agent");
        Ok(())
    }

    /// Returns the parent folder of an agent, if the agent may be changed.
    fn editable(&self, wanted: &str) -> Result<PathBuf, AgentError> {
        let name = normal(wanted)?;
        match self.root_of(&name) {
            None => Err(AgentError::Unknown(name)),
            Some((_, AgentPlace::Legacy)) => Err(AgentError::Legacy(name)),
            Some((_, AgentPlace::Shared)) if !self.edits_shared => Err(AgentError::Shared(name)),
            Some((root, AgentPlace::Shared | AgentPlace::Own)) => Ok(root),
        }
    }

    /// Returns the parent folder of an agent.
    fn root_of(&self, name: &str) -> Option<(PathBuf, AgentPlace)> {
        self.roots().into_iter().find(|(root, _)| file::is_agent(&root.join(name)))
    }

    /// Returns the folders with agents, in order of precedence.
    fn roots(&self) -> Vec<(PathBuf, AgentPlace)> {
        let shared =
            [(self.shared(), AgentPlace::Shared), (self.inner.home.join("agents"), AgentPlace::Legacy)];
        let own = self.owner.as_ref().map(|owner| (self.own(owner), AgentPlace::Own));
        shared.into_iter().chain(own).collect()
    }

    fn shared(&self) -> PathBuf {
        self.own(&UserId::local())
    }

    fn own(&self, owner: &UserId) -> PathBuf {
        self.inner.home.join("users").join(owner.as_str()).join("agents")
    }

    /// Logs the problems of an agent, once.
    pub(crate) fn log_notes(&self, agent: &str, notes: &[String]) {
        let mut logged = self.inner.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(agent).map(Vec::as_slice).unwrap_or_default() == notes {
            return;
        }
        notes.iter().for_each(|note| tracing::warn!(agent, note, "ignored part of agent file"));
        if logged.len() >= MAX_AGENTS {
            logged.clear();
        }
        logged.insert(agent.to_owned(), notes.to_vec());
    }
}

/// Checks and normalises a requested profile.
fn checked(profile: AgentProfile) -> Result<AgentProfile, AgentError> {
    let wrong = |text: String| Err(AgentError::Wrong(text));
    let plain: String = profile.about.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let about = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if about.chars().count() > MAX_DESCRIPTION_CHARS {
        return wrong(format!("the description has more than {MAX_DESCRIPTION_CHARS} characters"));
    }
    // A newline is added at the end of the file.
    if profile.soul.trim_end().len() >= MAX_SOUL_BYTES {
        return wrong(format!("the soul has more than {} KiB", MAX_SOUL_BYTES / 1024));
    }
    for (what, names) in [("tool groups", &profile.tool_groups), ("skills", &profile.skills)] {
        if names.as_ref().is_some_and(|names| names.len() > MAX_LISTED_NAMES) {
            return wrong(format!("there are more than {MAX_LISTED_NAMES} {what}"));
        }
    }
    let names = [&profile.tool_groups, &profile.skills].into_iter().flatten().flatten();
    for name in names.chain(&profile.model) {
        if name.trim().is_empty()
            || name.chars().count() > MAX_LISTED_NAME_CHARS
            || name.chars().any(char::is_control)
        {
            return wrong(format!("{name:?} is not a valid name of a tool group, a skill or a model"));
        }
    }
    Ok(AgentProfile { about, ..profile })
}

#[cfg(test)]
mod tests;
