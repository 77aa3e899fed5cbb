//! Checks whether the skills can be read.

use pudu_channels::Check;
use pudu_client::skills::BrokenSkill;
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::skills;

/// Counts the skills and names each broken one.
pub(super) fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Check> {
    let catalog = match skills::open(start, &loaded.config.fixed, loaded.report.file.as_deref()) {
        Ok(skills) => skills.read(),
        Err(error) => {
            return vec![Check::bad("folder", format!("{error:#}"), "let pudu write into its home")];
        }
    };
    let on = catalog.entries.iter().filter(|entry| entry.enabled).count();
    let off = catalog.entries.len() - on;
    let hidden = match catalog.hidden.len() {
        0 => String::new(),
        count => format!(", {count} that ship give way to the team's own of their name"),
    };
    let mut checks = vec![Check::good("found", format!("{on} on, {off} off{hidden}"))];
    checks.extend(catalog.broken.iter().map(|BrokenSkill { folder, why }| {
        Check::poor(folder.display().to_string(), why.clone(), "mend it (docs/skills.md), or take it away")
    }));
    let unknown = skills::unknown(&loaded.config.hot.subagents, &catalog).into_iter();
    checks.extend(unknown.map(|line| {
        Check::poor(
            "sub-agents",
            line,
            "mend `skills` under `subagents`, or install it: pudu skill install FILE",
        )
    }));
    checks
}
