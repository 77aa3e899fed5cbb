//! Checks whether the store can be opened. A store in use by a daemon is left alone.

use pudu_channels::Check;
use pudu_config::LoadedConfig;
use pudu_daemon::store::{self, UnusableStore};
use pudu_kit::home;
use pudu_store::StoreError;

/// Opens the store and closes it again.
pub(super) async fn check(loaded: &LoadedConfig) -> Check {
    let fixed = &loaded.config.fixed;
    let words = store::describe(&fixed.database.backend);
    if let Some(url) = home::running_url(&fixed.home) {
        return Check::good("store", format!("{words}; used by the pudu at {url}"));
    }
    let unusable =
        |cause: &StoreError, remedy: &str| Check::bad("store", format!("{words}: {cause}"), remedy);
    let db = match store::open(&fixed.database).await {
        Ok(db) => db,
        Err(UnusableStore { cause, remedy, .. }) => return unusable(&cause, remedy),
    };
    let unclaimed = db.check_unclaimed().await;
    db.close().await;
    match unclaimed {
        Ok(()) => Check::good("store", format!("{words} can be opened")),
        Err(cause @ StoreError::Conflict(_)) => unusable(&cause, "stop the other pudu"),
        Err(cause) => unusable(&cause, store::remedy(&fixed.database.backend, &cause)),
    }
}
