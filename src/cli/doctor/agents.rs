//! Checks whether the custom agents can answer, and whether the agents named by bots exist.

use pudu_agent::{
    ToolGroups,
    agents::{Agents, BrokenAgent, CustomAgent, LEAD, normal},
};
use pudu_channels::Check;
use pudu_config::{AccountPolicy, Choosing, HotConfig, LoadedConfig, ModelConfig, Problem};
use pudu_daemon::{agent, missing_agents};
use pudu_dispatch::connections;

/// Checks each agent and the agents of each bot.
pub(super) fn check(loaded: &LoadedConfig, models: &[ModelConfig]) -> Vec<Check> {
    let agents = Agents::new(loaded.config.fixed.home.clone());
    let (roster, groups) = (agents.list(), agent::groups(&loaded.config.hot));
    let mut checks: Vec<Check> = roster.agents.iter().map(|custom| usable(custom, models, &groups)).collect();
    for owner in agents.owners() {
        let own = agents.own_of(&owner);
        checks.extend(own.agents.iter().map(|custom| {
            let Check { what, found } = usable(custom, models, &groups);
            Check { what: format!("{what} of {owner}"), found }
        }));
        let help = "rename or fix its folder; it belongs only to that user";
        checks.extend(
            own.broken
                .into_iter()
                .map(|BrokenAgent { name, why }| Check::poor(format!("{name} of {owner}"), why, help)),
        );
    }
    checks.extend(roster.broken.iter().map(|BrokenAgent { name, why }| {
        let help = match normal(name).is_ok_and(|normal| normal == *name) {
            true => format!("fix its files, or remove it: pudu agent remove {name}"),
            false => "rename its folder, or delete it".to_owned(),
        };
        Check::bad(name, why.clone(), help)
    }));
    if let Err(error) = agents.lead_soul() {
        let help = format!("fix SOUL.md in {}, or delete it", loaded.config.fixed.home.display());
        checks.push(Check::bad(LEAD, error.to_string(), help));
    }
    checks.push(Check::good("shared agents", changers(&loaded.config.hot)));
    checks.extend(
        missing_agents::problems(loaded)
            .into_iter()
            .map(|Problem { key, what, help, .. }| Check::bad(key, what, help)),
    );
    checks
}

/// Returns the users who may change shared agents, including the lead agent.
fn changers(hot: &HotConfig) -> String {
    let of_account = |(account, policy): (&String, &AccountPolicy)| {
        let ids: Vec<&str> = policy.approvers.iter().map(String::as_str).collect();
        let may = connections::policy(hot, account).agent_choice != Some(Choosing::Fixed);
        (may && !ids.is_empty()).then(|| format!("{account} {}", ids.join(", ")))
    };
    let accounts: Vec<String> = hot.policies.iter().filter_map(of_account).collect();
    let approvers = match accounts.as_slice() {
        [] => "none are configured".to_owned(),
        named => named.join("; "),
    };
    format!("editable by approvers ({approvers}), administrators, the page and the terminal")
}

fn usable(custom: &CustomAgent, models: &[ModelConfig], groups: &ToolGroups) -> Check {
    let lacks = custom.lacks(models.iter().map(|model| model.settings.name.as_str()), groups);
    match lacks.as_slice() {
        [] => Check::good(&custom.name, "can answer"),
        lacks => Check::poor(&custom.name, lacks.join("; "), "fix its config.yaml (docs/agents.md)"),
    }
}
