//! Checks each guardrail provider.

use pudu_channels::Check;
use pudu_config::GuardrailsConfig;
use pudu_daemon::agent;

/// Checks the configured providers.
pub(super) async fn check(config: &GuardrailsConfig) -> Vec<Check> {
    let guards = match agent::guardrails(config) {
        Ok(guards) => guards,
        Err(error) => {
            return vec![Check::bad("http", error.to_string(), "fix the system's TLS root certificates")];
        }
    };
    let mut checks = Vec::new();
    for provider in guards.providers() {
        checks.push(match provider.check().await {
            Ok(found) => Check::good(provider.name(), found),
            Err(why) => Check::bad(provider.name(), why, help(provider.name(), config.fail_closed)),
        });
    }
    if !config.fail_closed {
        let why = "calls are allowed when a provider fails";
        checks.push(Check::poor("fail_closed", why, "write `guardrails.fail_closed: true`"));
    }
    checks
}

fn help(provider: &str, fail_closed: bool) -> String {
    let outcome = if fail_closed { "refused" } else { "allowed" };
    let then = format!("until then all tool calls are {outcome}");
    match provider {
        "passport" => "fix `guardrails.passport`; until then affected calls are refused".to_owned(),
        _ => format!("check that `guardrails.provider.config.url` answers; {then}"),
    }
}
