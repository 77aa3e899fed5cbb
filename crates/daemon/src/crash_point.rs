//! Crash points for tests. A release build has none.

use pudu_client::store::crash;
use pudu_config::Start;

/// Arms the crash point that `PUDU_CRASH_AT=NAME#NTH` names.
pub fn arm(start: &Start) {
    let Some(wanted) = start.env.get("PUDU_CRASH_AT").filter(|wanted| !wanted.is_empty()) else { return };
    let (name, nth) = wanted.rsplit_once('#').unwrap_or((wanted, "1"));
    crash::arm(name, nth.parse().unwrap_or(1));
}
