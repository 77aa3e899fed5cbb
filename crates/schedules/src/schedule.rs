//! The times of a task.

use crate::{CronExpression, ScheduleError, cron::first_moment, find_zone};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use pudu_store::{ScheduleKind, ScheduledTask};
use serde_json::{Value, json};

/// Times of a task in a time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    zone: TimeZone,
    times: Times,
}

#[derive(Clone, Debug)]
enum Times {
    Cron(Box<CronExpression>),
    Once(Timestamp),
}

impl Schedule {
    /// Parses a schedule in DeerFlow's form: `{"cron": "0 9 * * 1-5"}`, or `{"run_at": "2026-11-27T15:00"}`. A time
    /// without an offset is a time of the zone's clock.
    ///
    /// # Errors
    /// If the zone is unknown, or the schedule cannot be read.
    pub fn parse(kind: ScheduleKind, spec: &Value, zone: &str) -> Result<Self, ScheduleError> {
        let zone = find_zone(zone).ok_or_else(|| ScheduleError::Zone(zone.to_owned()))?;
        let times = match kind {
            ScheduleKind::Cron => {
                let text =
                    spec["cron"].as_str().ok_or(ScheduleError::Field("schedule_spec.cron is required"))?;
                Times::Cron(Box::new(CronExpression::parse(text)?))
            }
            ScheduleKind::Once => {
                let text = spec["run_at"]
                    .as_str()
                    .ok_or(ScheduleError::Field("schedule_spec.run_at is required"))?;
                let time = moment(text.trim(), &zone);
                Times::Once(time.ok_or(ScheduleError::Field("schedule_spec.run_at is not an ISO 8601 time"))?)
            }
        };
        Ok(Self { zone, times })
    }

    /// Parses the schedule of a stored task.
    ///
    /// # Errors
    /// If the zone is no longer known.
    pub fn of_task(task: &ScheduledTask) -> Result<Self, ScheduleError> {
        let spec = serde_json::from_str(&task.spec).unwrap_or_default();
        Self::parse(task.kind, &spec, &task.zone)
    }

    /// Returns the first time after `after`, both in milliseconds since 1970.
    #[must_use]
    pub fn next_after(&self, after: i64) -> Option<i64> {
        let after = Timestamp::from_millisecond(after).ok()?;
        let next = match &self.times {
            Times::Cron(cron) => cron.next_after(after, &self.zone),
            Times::Once(time) => Some(*time).filter(|time| *time > after),
        };
        next.map(Timestamp::as_millisecond)
    }

    /// Returns the schedule in DeerFlow's form, without other keys.
    #[must_use]
    pub fn to_spec(kind: ScheduleKind, spec: &Value) -> String {
        let key = match kind {
            ScheduleKind::Cron => "cron",
            ScheduleKind::Once => "run_at",
        };
        json!({ key: spec[key] }).to_string()
    }
}

/// Formats a time for people, on the clock of a zone: `2026-11-27 16:00 (UTC+01:00)`.
#[must_use]
pub fn local_time(millis: i64, zone: &str) -> String {
    let zone = find_zone(zone).unwrap_or(TimeZone::UTC);
    let time = Timestamp::from_millisecond(millis).unwrap_or_default().to_zoned(zone);
    time.strftime("%Y-%m-%d %H:%M (UTC%:z)").to_string()
}

fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let time = text.parse::<Timestamp>().ok();
    time.or_else(|| first_moment(text.parse::<DateTime>().ok()?, zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_and_without_an_offset_is_the_same_moment() {
        let next = |text: &str| {
            let schedule = Schedule::parse(ScheduleKind::Once, &json!({ "run_at": text }), "Europe/Berlin");
            schedule.unwrap().next_after(0).unwrap()
        };
        let expected = 1_795_791_600_000;
        for text in
            ["2026-11-27T16:00:00+01:00", "2026-11-27T16:00", " 2026-11-27 16:00:00 ", "2026-11-27T15:00:00Z"]
        {
            assert_eq!(next(text), expected, "{text}");
        }
        assert_eq!(local_time(expected, "Europe/Berlin"), "2026-11-27 16:00 (UTC+01:00)");
        // 02:30 is missing in this night, so the task runs right after the gap.
        assert_eq!(next("2026-03-29T02:30"), next("2026-03-29T03:00+02:00"));
    }

    #[test]
    fn unreadable_schedules_are_refused() {
        for (kind, spec, zone, expected) in [
            (ScheduleKind::Cron, json!({}), "UTC", "schedule_spec.cron is required"),
            (ScheduleKind::Cron, json!({"cron": 5}), "UTC", "schedule_spec.cron is required"),
            (ScheduleKind::Cron, json!([]), "UTC", "schedule_spec.cron is required"),
            (ScheduleKind::Cron, json!({"cron": "0 9 * * *"}), "Mars/Base", "Unknown timezone: Mars/Base"),
            (ScheduleKind::Once, json!({"cron": "0 9 * * *"}), "UTC", "schedule_spec.run_at is required"),
            (ScheduleKind::Once, json!({"run_at": "tomorrow"}), "UTC", "is not an ISO 8601 time"),
            (ScheduleKind::Once, json!({"run_at": "99999-01-01T00:00"}), "UTC", "is not an ISO 8601 time"),
            (ScheduleKind::Once, json!({"run_at": "2026-02-30T00:00"}), "UTC", "is not an ISO 8601 time"),
        ] {
            let refusal = Schedule::parse(kind, &spec, zone).map(|_| ()).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{spec} {zone}: {refusal}");
        }
    }
}
