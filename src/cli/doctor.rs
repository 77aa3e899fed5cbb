//! `pudu doctor`: checks everything that pudu needs to work, and suggests fixes.

mod agents;
mod budgets;
mod container;
mod elsewhere;
mod extensions;
mod findings;
mod guardrails;
mod model;
mod skills;
mod store;

use super::run;
use findings::Findings;
use futures_util::{StreamExt, stream::FuturesOrdered};
use pudu_channels::{BoxFuture, Check, CheckResult};
use pudu_config::{AccountConfig, CLOSING, HotConfig, LoadedConfig, Problem, SandboxBackend, Start};
use pudu_daemon::machine::Machine;
use pudu_dispatch::connections;
use pudu_net::scrub;
use pudu_sandbox::{Proof, Unconfined, prove};
use serde_json::{Value, json};
use std::{
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

/// Timeout for checking one bot.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before the pending check is shown.
const PENDING_NOTICE_DELAY: Duration = Duration::from_secs(1);

/// Checks the configuration, the models and each bot. Findings are printed as they arrive, always in the same order;
/// JSON is printed at the end.
pub(super) fn doctor(start: &Start, json: bool) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let mut findings = Findings::new(!json);
    runtime.block_on(examine(start, &loaded, &mut findings));
    let words = match json {
        true => scrub::hide(&format!("{:#}\n", as_json(&findings.groups))).into_owned(),
        false => String::new(),
    };
    let checks = findings.groups.iter().flat_map(|(_, checks)| checks);
    let bad = checks.into_iter().any(|check| matches!(check.found, CheckResult::Bad { .. }));
    let code = if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    super::print_output(words, code)
}

/// A group of checks: its name and its results.
type Examination<'a> = (String, BoxFuture<'a, Vec<Check>>);

/// Runs all checks concurrently and reports them in order.
async fn examine(start: &Start, loaded: &LoadedConfig, findings: &mut Findings) {
    let (fixed, hot) = (&loaded.config.fixed, &loaded.config.hot);
    findings.add("pudu", config(start, loaded));
    let (machine, model) = Machine::detect(&fixed.home, &fixed.provider, hot).await;
    let configured = if hot.models.is_empty() { &machine.models } else { &hot.models };
    let mut parts: Vec<Examination<'_>> = Vec::new();
    parts.push(("pudu".to_owned(), Box::pin(async { vec![store::check(loaded).await] })));
    parts.push(("pudu".to_owned(), Box::pin(async { vec![Check::good("default model", model)] })));
    for model in configured {
        parts.push(("pudu".to_owned(), Box::pin(async { vec![model::check(&model.settings).await] })));
    }
    parts.push(("sandbox".to_owned(), Box::pin(sandbox(&machine, hot))));
    if let Some(config) = &hot.guardrails {
        parts.push(("guardrails".to_owned(), Box::pin(guardrails::check(config))));
    }
    parts.push(("skills".to_owned(), Box::pin(async { skills::check(start, loaded) })));
    parts.push(("MCP servers".to_owned(), Box::pin(extensions::check(start, loaded))));
    parts.push(("pudu".to_owned(), Box::pin(budgets::check(start, loaded, &machine))));
    parts.push(("agents".to_owned(), Box::pin(async { agents::check(loaded, configured) })));
    for account in &hot.accounts {
        let name = format!("{} ({})", account.name, account.platform.name());
        parts.push((name, Box::pin(connection(account, hot))));
    }
    let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let mut found: FuturesOrdered<_> = parts.into_iter().map(|(_, checks)| checks).collect();
    for name in names {
        let checks = match tokio::time::timeout(PENDING_NOTICE_DELAY, found.next()).await {
            Ok(checks) => checks,
            Err(_) => {
                findings.wait_for(&name);
                found.next().await
            }
        };
        findings.add(&name, checks.unwrap_or_default());
    }
}

/// Returns the problems that prevent a start. Problems in the MCP servers' file are reported by its own check.
fn config(start: &Start, loaded: &LoadedConfig) -> Vec<Check> {
    let file = &loaded.report.file;
    let reports =
        pudu_config::extensions::check(start, loaded).into_iter().filter(|report| report.file == *file);
    let refused: Vec<_> = reports
        .flat_map(|report| report.problems)
        .map(|Problem { key, what, help, .. }| Check::bad("config", format!("{key}: {what}"), help))
        .collect();
    match file {
        _ if !refused.is_empty() => refused,
        Some(file) => vec![Check::good("config", format!("{} is valid", file.display()))],
        None => vec![Check::good("config", "no config file; the defaults apply")],
    }
}

/// Checks the connection to a bot's platform.
async fn connection(account: &AccountConfig, hot: &HotConfig) -> Vec<Check> {
    let mut checks = match connections::channel(account) {
        Ok(channel) => tokio::time::timeout(CHECK_TIMEOUT, channel.check()).await.unwrap_or_else(|_| {
            let help = "check that this machine can reach the platform";
            vec![Check::bad("connection", "timed out", help)]
        }),
        Err(error) => vec![Check::bad("config", format!("{error:#}"), "fix it in the configuration")],
    };
    if hot.open_to_the_world().contains(&account.name.as_str()) {
        checks.push(Check::poor("access", "open to everyone", CLOSING));
    }
    checks
}

/// Checks the command sandbox and attempts to escape from it.
async fn sandbox(machine: &Machine, hot: &HotConfig) -> Vec<Check> {
    let words = machine.describe_sandbox(hot);
    if let SandboxBackend::Docker(docker) = machine.provider() {
        return container::check(machine, docker, hot).await;
    }
    if let Some(found) = machine.examine(hot).await {
        return elsewhere::check(machine, hot, found).await;
    }
    let jail = match machine.jail() {
        Ok(jail) => jail.clone(),
        Err(Unconfined { why, help }) if hot.sandbox.allow_host_bash => {
            return vec![Check::poor("shell", format!("{words}; not confined: {why}"), help)];
        }
        Err(Unconfined { why, help }) => return vec![Check::poor("shell", format!("{words}: {why}"), help)],
    };
    let mut checks = vec![Check::good("shell", words)];
    checks.extend(mounts(hot));
    let Ok(folder) = Scratch::make(&std::env::temp_dir()) else {
        checks.push(Check::bad(
            "escape",
            "the folder for temporary files is not writable",
            "free some disk space",
        ));
        return checks;
    };
    checks.push(match prove(jail, &folder.0, hot.sandbox.network).await {
        Ok(proofs) => verdict(&proofs),
        Err(error) => Check::bad("escape", error.to_string(), "see docs/sandbox.md"),
    });
    checks
}

/// Reports mounts that are ignored.
fn mounts(hot: &HotConfig) -> Vec<Check> {
    let missing = hot.sandbox.mounts.iter().filter(|mount| !mount.host.is_dir());
    let checks = missing.map(|mount| {
        let why = format!("the folder {} does not exist", mount.host.display());
        Check::poor(&mount.agent, why, "create it, or remove the mount")
    });
    checks.collect()
}

fn verdict(proofs: &[Proof]) -> Check {
    let broken: Vec<&str> = proofs.iter().filter(|proof| proof.broken.is_some()).map(|p| p.attempt).collect();
    match broken.as_slice() {
        [] => {
            let tried: Vec<&str> = proofs.iter().map(|proof| proof.attempt).collect();
            Check::good("escape", format!("tried and failed: {}", tried.join(", ")))
        }
        broken => {
            let help = "do not let untrusted users use the agent; remove bash from `tools:`, and report this as a \
                 bug";
            Check::bad("escape", format!("a command can {}", broken.join(", ")), help)
        }
    }
}

/// A temporary folder, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn make(place: &Path) -> io::Result<Self> {
        let folder = place.join(format!("pudu-doctor-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(place)?;
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Formats the findings as JSON.
fn as_json(groups: &[(String, Vec<Check>)]) -> Value {
    let check = |Check { what, found }: &Check| match found {
        CheckResult::Good(how) => json!({ "check": what, "result": "ok", "found": how, "help": null }),
        CheckResult::Poor { why, help } => {
            json!({ "check": what, "result": "poor", "found": why, "help": help })
        }
        CheckResult::Bad { why, help } => {
            json!({ "check": what, "result": "bad", "found": why, "help": help })
        }
    };
    let group = |(name, checks): &(String, Vec<Check>)| json!({ "name": name, "checks": checks.iter().map(check).collect::<Vec<_>>() });
    json!({ "groups": groups.iter().map(group).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    use findings::lines;

    fn render_checks(name: &str, checks: &[Check]) -> String {
        format!("{name}\n{}", lines(checks))
    }

    #[test]
    fn a_way_out_is_told_as_what_a_command_can_do() {
        let proof = |attempt, broken: Option<&str>| Proof { attempt, broken: broken.map(str::to_owned) };
        let fine = verdict(&[proof("mount", None), proof("be root", None)]);
        assert_eq!(render_checks("s", &[fine]), "s\n  ok    escape: tried and failed: mount, be root\n");
        let bad = render_checks("s", &[verdict(&[proof("mount", Some("ESCAPED")), proof("be root", None)])]);
        assert!(bad.starts_with("s\n  BAD   escape: a command can mount\n        help: "), "{bad}");
    }

    #[test]
    fn each_failing_line_has_its_mend() {
        let checks = [
            Check::good("token", "@pudu_bot"),
            Check::poor("privacy", "it is on", "switch it off"),
            Check::bad("socket", "refused", "open the firewall"),
        ];
        let expected = "telegram\n  ok    token: @pudu_bot\n  poor  privacy: it is on\n        help: switch it off\n  \
                        BAD   socket: refused\n        help: open the firewall\n";
        assert_eq!(render_checks("telegram", &checks), expected);
    }
}
