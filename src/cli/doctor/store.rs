//! Checks whether the store can be opened. A store in use by a daemon is left alone.

use anyhow::Result;
use pudu_channels::Check;
use pudu_config::{Backend, LoadedConfig};
use pudu_daemon::store;
use pudu_kit::home;

/// Opens the store and closes it again.
pub(super) async fn check(loaded: &LoadedConfig) -> Check {
    let fixed = &loaded.config.fixed;
    let words = store::describe(&fixed.database.backend);
    if let Some(url) = home::running_url(&fixed.home) {
        return Check::good("store", format!("{words}; the pudu at {url} works with it"));
    }
    match opened(loaded).await {
        Ok(()) => Check::good("store", format!("{words} can be opened")),
        Err(error) => {
            let help = match fixed.database.backend {
                Backend::Postgres { .. } => {
                    "see `database` in docs/configuration.md, and whether the server runs"
                }
                Backend::Memory | Backend::Sqlite { .. } => "let pudu's user write there, and make room",
            };
            Check::bad("store", format!("{words}: {error:#}"), help)
        }
    }
}

async fn opened(loaded: &LoadedConfig) -> Result<()> {
    let fixed = &loaded.config.fixed;
    let db = store::open(&fixed.database, &fixed.home).await?;
    let alone = db.check_unclaimed().await;
    db.close().await;
    alone?;
    Ok(())
}
