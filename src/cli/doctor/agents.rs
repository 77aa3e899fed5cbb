//! Whether the custom agents can answer, and whether those that accounts name are there.

use crate::{
    agent,
    config::{LoadedConfig, ModelConfig},
    connections,
};
use pudu_channels::Check;
use pudu_client::{
    ToolGroups,
    agents::{AgentError, Agents, BrokenAgent, CustomAgent, LEAD, normal},
};

/// Looks at each agent, and at whom each account lets answer.
pub(super) fn check(loaded: &LoadedConfig, models: &[ModelConfig]) -> Vec<Check> {
    let agents = Agents::new(loaded.config.fixed.home.clone());
    let (roster, groups) = (agents.list(), agent::groups(&loaded.config.hot));
    let mut checks: Vec<Check> = roster.agents.iter().map(|custom| usable(custom, models, &groups)).collect();
    checks.extend(roster.broken.iter().map(|BrokenAgent { name, why }| {
        let help = match normal(name).is_ok_and(|normal| normal == *name) {
            true => format!("mend its files, or take it away: pudu agent remove {name}"),
            false => "rename its folder, or delete it".to_owned(),
        };
        Check::bad(name, why.clone(), help)
    }));
    if let Err(error) = agents.lead_soul() {
        let help = format!("mend SOUL.md in {}, or delete it", loaded.config.fixed.home.display());
        checks.push(Check::bad(LEAD, error.to_string(), help));
    }
    let hot = &loaded.config.hot;
    for (account, configured) in &hot.policies {
        let policy = connections::policy(hot, account);
        // Nobody has an empty id: that is what holds for all who are not named.
        let people = std::iter::once("").chain(configured.session.users.keys().map(String::as_str));
        let mut named: Vec<String> = people.filter_map(|person| policy.session(person).agent).collect();
        named.sort();
        named.dedup();
        for name in named {
            if let Err(error @ (AgentError::Unknown(_) | AgentError::Name { .. })) = agents.find(&name) {
                let help = "make it (pudu agent new), or name another one in its `session`";
                checks.push(Check::bad(format!("channels.{account}"), error.to_string(), help));
            }
        }
    }
    checks
}

fn usable(custom: &CustomAgent, models: &[ModelConfig], groups: &ToolGroups) -> Check {
    let lacks = custom.lacks(models.iter().map(|model| model.settings.name.as_str()), groups);
    match lacks.as_slice() {
        [] => Check::good(&custom.name, "can answer"),
        lacks => Check::poor(&custom.name, lacks.join("; "), "mend its config.yaml (docs/agents.md)"),
    }
}
