//! Whether budgets are used up, so that somebody gets no answer.

use crate::{
    cli::usage,
    config::{LoadedConfig, Start},
    gateway,
};
use pudu_channels::Check;

/// So many budgets are named.
const MAX_NAMED: usize = 10;

/// Looks at the budgets, if there are any.
pub(super) async fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Check> {
    if loaded.config.hot.budgets.limits.is_empty() {
        return Vec::new();
    }
    match usage::facts(start, loaded, gateway::usage::DAYS.0).await {
        Err(error) => {
            let help = "see what is said about the store";
            vec![Check::poor("budgets", format!("they cannot be read: {error:#}"), help)]
        }
        Ok(facts) => match usage::used_up(&facts).as_slice() {
            [] => vec![Check::good("budgets", "none is used up")],
            used => {
                let named: Vec<&str> = used.iter().take(MAX_NAMED).map(|line| line.trim()).collect();
                let what = format!("{} used up: {}", used.len(), named.join("; "));
                vec![Check::poor("budgets", what, "wait, or raise the limit under `budgets`")]
            }
        },
    }
}
