//! The wall clock, in the format that is stored and sent.

use crate::simulation::Simulation;
use jiff::tz::TimeZone;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time, in milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    match Simulation::current() {
        Some(simulation) => (simulation.now)(),
        None => millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
    }
}

/// Returns a duration in milliseconds, saturating.
#[must_use]
pub fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

/// Formats a time for users and other programs: `2026-11-20T09:00:00.123Z`.
pub fn text(millis: i64) -> String {
    jiff::Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"))
}

/// Returns the IANA name of this machine's time zone; UTC if it has none.
pub fn system_zone() -> String {
    TimeZone::system().iana_name().unwrap_or("UTC").to_owned()
}

/// Formats a time for a model: `Friday 2026-11-20 13:53, Europe/Berlin (UTC+01:00)`.
pub fn for_model(millis: i64, zone: &TimeZone) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default().to_zoned(zone.clone());
    let name = zone.iana_name().map(|name| format!("{name} ")).unwrap_or_default();
    time.strftime(&format!("%A %Y-%m-%d %H:%M, {name}(UTC%:z)")).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(super::text(1_795_179_221_004), "2026-11-20T12:53:41.004Z");
        assert_eq!(super::text(i64::MAX), i64::MAX.to_string());
    }

    #[test]
    fn a_model_gets_the_day_and_the_zone() {
        let render_in =
            |zone: &str| super::for_model(1_795_179_221_004, &super::TimeZone::get(zone).unwrap());
        assert_eq!(render_in("Europe/Berlin"), "Friday 2026-11-20 13:53, Europe/Berlin (UTC+01:00)");
        assert_eq!(
            render_in("Pacific/Kiritimati"),
            "Saturday 2026-11-21 02:53, Pacific/Kiritimati (UTC+14:00)"
        );
        let unnamed = super::TimeZone::fixed(jiff::tz::offset(-3));
        assert_eq!(super::for_model(0, &unnamed), "Wednesday 1969-12-31 21:00, (UTC-03:00)");
    }
}
