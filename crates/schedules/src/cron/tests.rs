use super::*;
use jiff::civil::{Date, date};

const ZONES: [&str; 7] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Africa/Cairo",
];

const EXPRESSIONS: [&str; 12] = [
    "30 2 * * *",
    "30 2,14 * * *",
    "0 0 * * *",
    "0,30 1-3 * * *",
    "15 * * * *",
    "*/20 * * * *",
    "*/30 2 * * *",
    "0 */6 * * *",
    "0 9 * * 1-5",
    "30 3 1 * *",
    "0 3 13 * 5",
    "45 23 29 2 *",
];

/// Minutes since 1970 of a civil date's start.
fn start_of(day: Date) -> i64 {
    i64::from(date(1970, 1, 1).until(day).unwrap().get_days()) * 1440
}

/// An independent parser of expressions for comparison: numbers, `*`, ranges, lists and steps.
struct NaiveExpression(Vec<Vec<i64>>, [bool; 2]);

impl NaiveExpression {
    fn read(text: &str) -> Self {
        let fields: Vec<&str> = text.split(' ').collect();
        let ranges = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
        let values = fields.iter().zip(ranges).map(|(field, (low, high))| {
            field.split(',').flat_map(|part| Self::part(part, low, high)).collect()
        });
        Self(values.collect(), [fields[2] == "*", fields[4] == "*"])
    }

    fn part(part: &str, low: i64, high: i64) -> Vec<i64> {
        let (range, step) = part.split_once('/').map_or((part, 1), |(range, n)| (range, n.parse().unwrap()));
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (low, high),
            (_, Some((from, to))) => (from.parse().unwrap(), to.parse().unwrap()),
            (one, None) => (one.parse().unwrap(), one.parse().unwrap()),
        };
        (from..=to).step_by(step).collect()
    }

    fn matches_day(&self, day: Date) -> bool {
        let Self(fields, [any_date, any_weekday]) = self;
        let by_date = fields[2].contains(&i64::from(day.day()));
        let by_weekday = fields[4].contains(&i64::from(day.weekday().to_sunday_zero_offset()));
        let both = by_date && by_weekday;
        let matches = if *any_date || *any_weekday { both } else { by_date || by_weekday };
        matches && fields[3].contains(&i64::from(day.month()))
    }

    /// Returns whether each civil minute matches, from `first` to `last`.
    fn minutes(&self, first: Date, last: Date) -> Vec<bool> {
        let mut minutes = Vec::new();
        for day in first.series(1.day()).take_while(|day| *day <= last) {
            let start = minutes.len();
            minutes.resize(start + 1440, false);
            for hour in self.0[1].iter().filter(|_| self.matches_day(day)) {
                self.0[0].iter().for_each(|minute| minutes[start + (hour * 60 + minute) as usize] = true);
            }
        }
        minutes
    }
}

/// The civil time of each real minute of a year.
struct CivilYear {
    year: i16,
    zone: TimeZone,
    minutes: Vec<i64>,
}

impl CivilYear {
    fn new(zone: TimeZone, year: i16) -> Self {
        let civil = |minute: i64| {
            minute + i64::from(zone.to_offset(Timestamp::from_second(minute * 60).unwrap()).seconds()) / 60
        };
        let [first, last] = [year, year + 1].map(|year| start_of(date(year, 1, 1)));
        let minutes = (first..last).map(civil).collect();
        Self { year, zone, minutes }
    }

    /// Returns the due times of the year, by checking each real minute.
    fn walk(&self, expression: &str) -> Vec<i64> {
        let first = date(self.year - 1, 12, 30);
        let matching = NaiveExpression::read(expression).minutes(first, date(self.year + 1, 1, 2));
        let (first, start) = (start_of(first), start_of(date(self.year, 1, 1)));
        let matches = |civil: i64| matching[(civil - first) as usize];
        let is_wildcard = expression.split(' ').take(2).any(|field| field.starts_with('*'));
        let (mut due, mut newest) = (Vec::new(), self.minutes[0] - 1);
        for (minute, civil) in (start..).zip(&self.minutes) {
            let is_due = match is_wildcard {
                true => matches(*civil),
                // A jump of the clock passes all minutes in between.
                false => (newest + 1..=*civil).any(matches),
            };
            if is_due {
                due.push(minute);
            }
            newest = newest.max(*civil);
        }
        due
    }
}

/// Returns the due times of a year, each computed from the previous one.
fn found(expression: &str, CivilYear { zone, year, .. }: &CivilYear) -> Vec<i64> {
    let cron = CronExpression::parse(expression).unwrap();
    let [first, last] = [*year, year + 1].map(|year| start_of(date(year, 1, 1)) * 60);
    let next = |after: &i64| {
        let next = cron.next_after(Timestamp::from_second(*after).unwrap(), zone)?.as_second();
        (next < last).then_some(next)
    };
    let times = std::iter::successors(next(&(first - 1)), next).collect::<Vec<_>>();
    assert!(times.iter().all(|time| time % 60 == 0));
    times.into_iter().map(|time| time / 60).collect()
}

#[test]
fn each_due_time_of_a_year_occurs_once_in_every_zone() {
    for name in ZONES {
        let zone = find_zone(name).unwrap();
        // In 2018, São Paulo skipped a midnight.
        let year = if name == "America/Sao_Paulo" { 2018 } else { 2026 };
        let civil = CivilYear::new(zone, year);
        for expression in EXPRESSIONS {
            assert_eq!(civil.walk(expression), found(expression, &civil), "{expression} in {name}");
        }
    }
}

#[test]
fn clock_changes_follow_the_documented_rules() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        // In Berlin, 02:00 to 03:00 is missing on 29 March 2026 and occurs twice on 25 October.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00+01:00",
            &["03-29T03:00:00+02:00", "03-30T02:30:00+02:00"],
        ),
        (
            "30 2,14 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00+01:00",
            &["03-29T03:00:00+02:00", "03-29T14:30:00+02:00"],
        ),
        (
            "0,30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00+01:00",
            &["03-29T03:00:00+02:00", "03-29T03:30:00+02:00"],
        ),
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00+01:00", &["03-30T02:00:00+02:00"]),
        ("30 * * * *", "Europe/Berlin", "2026-03-29T01:30:00+01:00", &["03-29T03:30:00+02:00"]),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00+02:00",
            &["10-25T02:30:00+02:00", "10-26T02:30:00+01:00"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25T01:30:00+02:00",
            &["10-25T02:30:00+02:00", "10-25T02:30:00+01:00", "10-25T03:30:00+01:00"],
        ),
        // The second pass has begun.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", &["10-26T02:30:00+01:00"]),
        // Half an hour is missing, and is repeated.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00:00+10:30", &["10-04T02:30:00+11:00"]),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-05T00:00:00+11:00",
            &["04-05T01:45:00+11:00", "04-06T01:45:00+10:30"],
        ),
        // A midnight is missing.
        (
            "0 0 * * *",
            "America/Sao_Paulo",
            "2018-11-03T12:00:00-03:00",
            &["11-04T01:00:00-02:00", "11-05T00:00:00-02:00"],
        ),
        ("0 9 L * *", "Asia/Kathmandu", "2026-12-01T00:00:00+05:45", &["12-31T09:00:00+05:45"]),
        ("0 9 * * fri#2", "UTC", "2026-12-01T00:00:00+00:00", &["12-11T09:00:00+00:00"]),
    ];
    for (expression, zone, after, expected) in table {
        let (cron, tz) = (CronExpression::parse(expression).unwrap(), find_zone(zone).unwrap());
        let next = |after: &Timestamp| cron.next_after(*after, &tz);
        let times = std::iter::successors(next(&after.parse().unwrap()), next).take(expected.len());
        let times = times.map(|time| time.to_zoned(tz.clone()).strftime("%m-%dT%H:%M:%S%:z").to_string());
        assert_eq!(times.collect::<Vec<_>>(), *expected, "{expression} in {zone} after {after}");
    }
}

#[test]
fn unreadable_expressions_and_zones_are_refused() {
    for (text, expected) in [
        ("", "exactly 5 fields"),
        ("@daily", "exactly 5 fields"),
        ("0 9 * *", "exactly 5 fields"),
        ("0 0 9 * * *", "exactly 5 fields"),
        ("60 9 * * *", "cannot be read"),
        ("0 24 * * *", "cannot be read"),
        ("0 9 32 * *", "cannot be read"),
        ("0 9 * 13 *", "cannot be read"),
        ("*/0 * * * *", "cannot be read"),
        ("5-1 * * * *", "cannot be read"),
        ("\0 * * * *", "cannot be read"),
        ("a b c d e", "cannot be read"),
        ("💣 * * * *", "cannot be read"),
        ("@daily @daily @daily @daily @daily", "cannot be read"),
        ("99999999999999999999 * * * *", "cannot be read"),
        ("0 0 30 2 *", "never"),
        (&"1,".repeat(500), "at most 255"),
    ] {
        let refusal = CronExpression::parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{text:?}: {refusal}");
    }
    for zone in
        ["", "Nowhere/Else", "/etc/passwd", "../../etc/passwd", "UTC\0", "Europe/Berlin ", &"A".repeat(999)]
    {
        assert!(find_zone(zone).is_none(), "{zone:?}");
    }
    assert!(find_zone("Asia/Shanghai").is_some());
}
