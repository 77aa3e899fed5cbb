//! Finds bots whose configured agent does not exist.

use pudu_agent::agents::{AgentError, Agents};
use pudu_config::{LoadedConfig, Problem, nearest};
use pudu_dispatch::connections;

/// Returns a warning for each account that names a nonexistent agent. The agent can still be created while pudu runs.
pub fn problems(loaded: &LoadedConfig) -> Vec<Problem> {
    let agents = Agents::new(loaded.config.fixed.home.clone());
    let hot = &loaded.config.hot;
    let mut problems = Vec::new();
    for (account, configured) in &hot.policies {
        let policy = connections::policy(hot, account);
        // No user has an empty ID, so it gets the settings of all users without their own.
        let people = std::iter::once("").chain(configured.session.users.keys().map(String::as_str));
        for person in people {
            let Some(name) = policy.session(person).agent else { continue };
            let Err(error @ (AgentError::Unknown(_) | AgentError::Name { .. })) = agents.find(&name) else {
                continue;
            };
            let keys =
                if person.is_empty() { &["assistant_id", "context"][..] } else { &["users", "assistant_id"] };
            let places = keys.iter().flat_map(|key| {
                [format!("channels.{account}.session.{key}"), format!("channels.session.{key}")]
            });
            let (key, at) = places
                .filter_map(|key| loaded.said_at(&key).map(|at| (key, at)))
                .next()
                .map_or((format!("channels.{account}.session"), None), |(key, at)| (key, Some(at)));
            let what = error.to_string();
            let what = what.trim_end_matches('.');
            let known = agents.list().agents;
            let near = nearest(&name, known.iter().map(|agent| agent.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("create it (`pudu agent new {name}`), or use another one"),
            };
            let problem = Problem::warning(at, &key, what, help);
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}
