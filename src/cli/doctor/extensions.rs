//! Checks whether the MCP servers start and offer tools.

use pudu_channels::Check;
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::servers::{self, TriedServers};
use pudu_mcp::Skipped;

/// Starts each server briefly. Returns no findings if there are no servers.
pub(super) async fn check(start: &Start, loaded: &LoadedConfig) -> Vec<Check> {
    let help = "see docs/extensions.md";
    let tried = servers::try_servers(start, loaded.report.file.as_deref(), &loaded.config.fixed.home).await;
    let TriedServers { tools, skipped, notes } = match tried {
        None => return Vec::new(),
        Some(Err(error)) => return vec![Check::bad("file", error, help)],
        Some(Ok(tried)) => tried,
    };
    let mut checks = vec![Check::good("tools", format!("{tools} from reachable servers"))];
    checks.extend(
        skipped.into_iter().map(|Skipped { server, failure }| Check::bad(server, failure.to_string(), help)),
    );
    checks.extend(notes.iter().map(|note| match note.is_left_out {
        true => Check::poor(&note.server, note.to_string(), help),
        false => Check::good(&note.server, note.to_string()),
    }));
    checks
}
