//! `pudu doctor`: tries what pudu needs to work, and says how to mend what does not.

use super::run;
use crate::{
    config::{Loaded, Start},
    discover, lines,
};
use pudu_channels::{Check, Found};
use std::{fmt::Write, io, process::ExitCode, time::Duration};

/// No account is asked for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks at the configuration, the models and each account.
pub(super) fn doctor(start: &Start) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    let patients = runtime.block_on(examine(&loaded));
    let words: String = patients.iter().map(|(name, checks)| told(name, checks)).collect();
    io::Write::write_all(&mut io::stdout(), words.as_bytes()).ok();
    let bad =
        patients.iter().flat_map(|(_, checks)| checks).any(|check| matches!(check.found, Found::Bad { .. }));
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn examine(loaded: &Loaded) -> Vec<(String, Vec<Check>)> {
    let live = &loaded.config.live;
    let config = match &loaded.report.file {
        Some(file) => Check::good("config", format!("{} can be used", file.display())),
        None => Check::good("config", "no file; the defaults are used"),
    };
    let (_, model) = discover::models(live).await;
    let mut found = vec![("pudu".to_owned(), vec![config, Check::good("model", model)])];
    for account in &live.accounts {
        let checks = match lines::channel(account) {
            Ok(channel) => tokio::time::timeout(PATIENCE, channel.check()).await.unwrap_or_else(|_| {
                vec![Check::bad(
                    "connection",
                    "no answer in time",
                    "see whether this machine reaches the platform",
                )]
            }),
            Err(error) => vec![Check::bad("config", format!("{error:#}"), "mend it in the configuration")],
        };
        found.push((format!("{} ({})", account.name, account.platform.name()), checks));
    }
    found
}

/// One line a check, and one more for the mend of what fails.
fn told(name: &str, checks: &[Check]) -> String {
    let mut out = format!("{name}\n");
    for Check { what, found } in checks {
        // Writing to a String cannot fail.
        let _ = match found {
            Found::Good(how) => writeln!(out, "  ok    {what}: {how}"),
            Found::Poor { why, mend } => writeln!(out, "  poor  {what}: {why}\n        mend: {mend}"),
            Found::Bad { why, mend } => writeln!(out, "  BAD   {what}: {why}\n        mend: {mend}"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failing_line_has_its_mend() {
        let checks = [
            Check::good("token", "@pudu_bot"),
            Check::poor("privacy", "it is on", "switch it off"),
            Check::bad("socket", "refused", "open the firewall"),
        ];
        let expected = "telegram\n  ok    token: @pudu_bot\n  poor  privacy: it is on\n        mend: switch it off\n  \
                        BAD   socket: refused\n        mend: open the firewall\n";
        assert_eq!(told("telegram", &checks), expected);
    }
}
