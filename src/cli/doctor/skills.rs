//! Checks whether the skills can be read.

use pudu_channels::Check;
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::skills;
use pudu_skills::BrokenSkill;

/// Counts the skills and names each broken one.
pub(super) fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Check> {
    let catalog = match skills::open(start, &loaded.config.fixed, loaded.report.file.as_deref()) {
        Ok(skills) => skills.read(),
        Err(error) => {
            return vec![Check::bad("folder", format!("{error:#}"), "give pudu write access to its home")];
        }
    };
    let on = catalog.entries.iter().filter(|entry| entry.enabled).count();
    let off = catalog.entries.len() - on;
    let hidden = match catalog.hidden.len() {
        0 => String::new(),
        count => format!(", {count} built-in ones replaced by installed ones"),
    };
    let mut checks = vec![Check::good("found", format!("{on} enabled, {off} disabled{hidden}"))];
    checks.extend(catalog.broken.iter().map(|BrokenSkill { folder, why }| {
        Check::poor(folder.display().to_string(), why.clone(), "fix it (docs/skills.md), or remove it")
    }));
    let unknown = skills::unknown(&loaded.config.hot.subagents, &catalog).into_iter();
    checks.extend(unknown.map(|line| {
        Check::poor(
            "sub-agents",
            line,
            "fix `skills` under `subagents`, or install it: pudu skill install FILE",
        )
    }));
    checks
}
