//! Checks for budgets that are used up, or too small for any answer.

use crate::cli::usage;
use anyhow::{Result, anyhow};
use pudu_agent::Agent;
use pudu_base::UsedBudget;
use pudu_channels::Check;
use pudu_config::{Config, LoadedConfig, Start};
use pudu_daemon::{agent, machine::Machine, skills};
use pudu_gateway::DAYS;
use pudu_store::{Db, DbLocation};

/// Maximum number of budgets named in a finding.
const MAX_NAMED: usize = 10;

/// Checks the budgets, if any are configured.
pub(super) async fn check(start: &Start, loaded: &LoadedConfig, machine: &Machine) -> Vec<Check> {
    if loaded.config.hot.budgets.limits.is_empty() {
        return Vec::new();
    }
    let mut checks = vec![used_up(start, loaded).await];
    for used in small(start, loaded, machine).await.unwrap_or_default() {
        let help = format!("raise the limit under `budgets.{}`", used.scope.as_str());
        checks.push(Check::poor("budgets", format!("too small for any answer: {used}"), help));
    }
    checks
}

/// Returns the budgets that are too small for any answer.
async fn small(start: &Start, loaded: &LoadedConfig, machine: &Machine) -> Result<Vec<UsedBudget>> {
    let Config { fixed, hot } = &loaded.config;
    let skills = skills::open(start, fixed, loaded.report.file.as_deref())?;
    let setup = agent::setup(hot, machine, Vec::new())?;
    let db = Db::open(&DbLocation::Memory).await?;
    let agent = Agent::new(db, machine.folders.clone(), setup, skills);
    agent.small_budgets().await.map_err(|cause| anyhow!("{cause}"))
}

async fn used_up(start: &Start, loaded: &LoadedConfig) -> Check {
    match usage::facts(start, Some(loaded), DAYS.0).await {
        Err(error) => {
            let help = "see the check of the store";
            Check::poor("budgets", format!("cannot read the budgets: {error:#}"), help)
        }
        Ok(facts) => match usage::used_up(&facts).as_slice() {
            [] => Check::good("budgets", "none is exhausted"),
            used => {
                let listed: Vec<&str> = used.iter().take(MAX_NAMED).map(|line| line.trim()).collect();
                let what = format!("{} exhausted: {}", used.len(), listed.join("; "));
                Check::poor("budgets", what, "wait, or raise the limit under `budgets`")
            }
        },
    }
}
