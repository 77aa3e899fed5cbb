//! Crash points for tests. Release builds have none.

use pudu_config::Start;
use pudu_store::crash;

/// Arms the crash point named by `PUDU_CRASH_AT=NAME#NTH`.
pub fn arm(start: &Start) {
    let Some(wanted) = start.env.get("PUDU_CRASH_AT").filter(|wanted| !wanted.is_empty()) else { return };
    let (name, nth) = wanted.rsplit_once('#').unwrap_or((wanted, "1"));
    crash::arm(name, nth.parse().unwrap_or(1));
}
