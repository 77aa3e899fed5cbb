//! Whether the custom agents can answer, and whether those that accounts name are there.

use crate::{config::Loaded, lines};
use pudu_channels::Check;
use pudu_client::agents::{AgentError, Agents, Broken, Persona};

/// Looks at each agent, and at whom each account lets answer.
pub(super) fn check(loaded: &Loaded) -> Vec<Check> {
    let agents = Agents::new(loaded.config.fixed.home.clone());
    let roster = agents.list();
    let mut checks: Vec<Check> = roster.agents.iter().map(usable).collect();
    checks.extend(roster.broken.iter().map(|Broken { name, why }| {
        Check::bad(name, why.clone(), format!("mend its files, or take it away: pudu agent remove {name}"))
    }));
    let live = &loaded.config.live;
    for (account, manners) in &live.manners {
        let policy = lines::policy(live, account);
        // Nobody has an empty id: that is what holds for all who are not named.
        let people = std::iter::once("").chain(manners.session.users.keys().map(String::as_str));
        let mut named: Vec<String> = people.filter_map(|person| policy.session(person).agent).collect();
        named.sort();
        named.dedup();
        for name in named {
            if let Err(error @ (AgentError::Unknown(_) | AgentError::Name { .. })) = agents.find(&name) {
                let mend = "make it (pudu agent new), or name another one in its `session`";
                checks.push(Check::bad(format!("channels.{account}"), error.to_string(), mend));
            }
        }
    }
    checks
}

fn usable(persona: &Persona) -> Check {
    let Persona { name, odd, .. } = persona;
    match odd.as_slice() {
        [] => Check::good(name, "can answer"),
        odd => Check::poor(name, odd.join("; "), "see docs/agents.md for the keys there are"),
    }
}
