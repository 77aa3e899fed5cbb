//! Missing models, tool groups and skills of an agent: logged once, and shown in descriptions of agents.

use super::CustomAgent;
use crate::{AgentSetup, setup::ToolGroups};
use pudu_skills::Catalog;

impl CustomAgent {
    /// Returns the problems of an agent with the current setup.
    pub(crate) fn notes(&self, setup: &AgentSetup, skills: &Catalog) -> Vec<String> {
        let mut notes = self.lacks(setup.models.iter().map(|(info, _)| info.name.as_str()), &setup.groups);
        for name in self.profile.skills.iter().flatten() {
            match skills.get(name) {
                None => notes.push(format!("there is no skill `{name}`")),
                Some(entry) if !entry.enabled => notes.push(format!("the skill `{name}` is disabled")),
                Some(_) => {}
            }
        }
        notes
    }
}

impl CustomAgent {
    /// Returns the problems in an agent's file, and a note for each of its models and tool groups that does not exist.
    #[must_use]
    pub fn lacks<'a>(&self, models: impl IntoIterator<Item = &'a str>, groups: &ToolGroups) -> Vec<String> {
        let mut notes = self.odd.clone();
        let mut models = models.into_iter();
        if let Some(model) =
            self.profile.model.as_ref().filter(|wanted| models.all(|model| model != **wanted))
        {
            notes.push(format!("there is no model `{model}`, so the default model is used"));
        }
        notes.extend(unknown_groups(groups, self.profile.tool_groups.as_deref().unwrap_or_default()));
        notes
    }
}

/// Returns a note for each tool group that does not exist.
pub(crate) fn unknown_groups(groups: &ToolGroups, wanted: &[String]) -> Vec<String> {
    let unknown = wanted.iter().filter(|group| !groups.names.contains(*group));
    let known: Vec<&str> = groups.names.iter().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    unknown.map(|group| format!("there is no tool group `{group}` (there are: {known})")).collect()
}
