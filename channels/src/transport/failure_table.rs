//! The failures of a platform as a table: error codes and HTTP statuses, each with the caller's next step.

use super::{CallError, error::ErrorCase};
use std::{ops::RangeInclusive, time::Duration};

/// Next step of a caller whose call failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning<C> {
    /// Wait as long as the response requests, or this long if it requests nothing.
    Wait(Duration),
    /// Like `Wait`, for all calls of the bot.
    WaitForAll(Duration),
    /// Wait this long, regardless of the response.
    Pause(Duration),
    /// Return an error with the platform's message.
    Act(fn(String) -> CallError<C>),
}

/// Failures of one API of a platform. The first matching row decides. `K` is the type of its error codes.
pub(crate) struct FailureTable<K: 'static, C: 'static> {
    /// Error codes in the body, grouped by meaning.
    pub(crate) codes: &'static [(&'static [K], Meaning<C>)],
    /// HTTP statuses of responses whose code is in no row.
    pub(crate) statuses: &'static [(RangeInclusive<u16>, Meaning<C>)],
    /// Meaning of all other failures.
    pub(crate) otherwise: Meaning<C>,
    /// HTTP statuses of responses that are not the platform's own: an intermediary sent or truncated them.
    pub(crate) unreadable: &'static [(RangeInclusive<u16>, Meaning<C>)],
}

impl<K, C: ErrorCase> FailureTable<K, C> {
    /// Classifies a failure. `is_code` matches its code, `what` describes it, `wait` is the delay requested by the
    /// response.
    pub(crate) fn error(
        &self,
        is_code: impl Fn(&K) -> bool,
        status: u16,
        what: String,
        wait: Option<Duration>,
    ) -> CallError<C> {
        let meaning = self.code_row(is_code).map(|row| &row.1).or_else(|| meaning_of(self.statuses, status));
        meaning.unwrap_or(&self.otherwise).error(what, wait)
    }

    /// Classifies a response that is not the platform's own.
    pub(crate) fn unreadable(&self, status: u16, wait: Option<Duration>) -> CallError<C> {
        match meaning_of(self.unreadable, status) {
            Some(meaning) => meaning.error(format!("HTTP {status}"), wait),
            None => CallError::of_status(status, wait),
        }
    }

    fn code_row(&self, is_code: impl Fn(&K) -> bool) -> Option<&(&'static [K], Meaning<C>)> {
        self.codes.iter().find(|(codes, _)| codes.iter().any(&is_code))
    }
}

impl<C> Meaning<C> {
    fn error(&self, what: String, wait: Option<Duration>) -> CallError<C> {
        match self {
            Self::Wait(default) => CallError::Wait(wait.unwrap_or(*default)),
            Self::WaitForAll(default) => CallError::WaitForAll(wait.unwrap_or(*default)),
            Self::Pause(exact) => CallError::Wait(*exact),
            Self::Act(error) => error(what),
        }
    }
}

fn meaning_of<C>(rows: &[(RangeInclusive<u16>, Meaning<C>)], status: u16) -> Option<&Meaning<C>> {
    rows.iter().find(|(statuses, _)| statuses.contains(&status)).map(|(_, meaning)| meaning)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{
        Meaning::{Act, Pause, Wait, WaitForAll},
        *,
    };
    use crate::transport::NoCase;

    const SECOND: Duration = Duration::from_secs(1);
    const TABLE: FailureTable<i64, NoCase> = FailureTable {
        codes: &[(&[1, 2], Act(CallError::Gone)), (&[3], Pause(SECOND))],
        statuses: &[(429..=429, Wait(SECOND)), (400..=499, Act(CallError::Refused))],
        otherwise: Act(CallError::Unknown),
        unreadable: &[(403..=403, WaitForAll(SECOND)), (401..=401, Act(CallError::Auth))],
    };

    /// Checks a whole table: each code is in exactly one row and is found there, and each range of statuses contains
    /// one that no earlier row contains. `recognises` compares a code in the table with a response's code, as the
    /// platform does.
    pub(crate) fn check_table<K: PartialEq + std::fmt::Debug, C: ErrorCase>(
        table: &FailureTable<K, C>,
        recognises: impl Fn(&K, &K) -> bool,
    ) {
        for row in table.codes {
            assert!(!row.0.is_empty(), "a row without codes");
            for code in row.0 {
                let found = table.code_row(|known| recognises(known, code)).unwrap();
                assert!(std::ptr::eq(found, row), "{code:?} is found in the row {:?}", found.0);
                let all = table.codes.iter().flat_map(|row| row.0);
                assert_eq!(all.filter(|known| *known == code).count(), 1, "{code:?} is there twice");
            }
        }
        for rows in [table.statuses, table.unreadable] {
            for (n, (statuses, _)) in rows.iter().enumerate() {
                let before = |status| rows.iter().take(n).any(|(earlier, _)| earlier.contains(&status));
                assert!(statuses.clone().any(|status| !before(status)), "{statuses:?} is never reached");
            }
        }
    }

    #[test]
    fn code_decides_before_status_and_first_row_before_later_ones() {
        let nine = Some(Duration::from_secs(9));
        let find = |code: i64, status| TABLE.error(|known| *known == code, status, "m".to_owned(), nine);
        assert_eq!(find(2, 429), CallError::Gone("m".into()));
        assert_eq!(find(3, 429), CallError::Wait(SECOND));
        assert_eq!(find(4, 429), CallError::Wait(SECOND * 9));
        assert_eq!(find(4, 404), CallError::Refused("m".into()));
        assert_eq!(find(4, 500), CallError::Unknown("m".into()));
        assert_eq!(TABLE.unreadable(403, None), CallError::WaitForAll(SECOND));
        assert_eq!(TABLE.unreadable(401, None), CallError::Auth("HTTP 401".into()));
        assert_eq!(TABLE.unreadable(502, nine), CallError::of_status(502, nine));
        check_table(&TABLE, |known, code| known == code);
    }

    #[test]
    #[should_panic(expected = "is never reached")]
    fn row_after_a_wider_one_is_reported() {
        check_table(
            &FailureTable::<i64, NoCase> {
                statuses: &[(400..=499, Wait(SECOND)), (404..=404, Pause(SECOND))],
                ..TABLE
            },
            |known, code| known == code,
        );
    }

    #[test]
    #[should_panic(expected = "is there twice")]
    fn code_in_two_rows_is_reported() {
        let codes: &[(&[i64], Meaning<NoCase>)] = &[(&[1], Pause(SECOND)), (&[2, 1], Wait(SECOND))];
        check_table(&FailureTable { codes, ..TABLE }, |known, code| known == code);
    }
}
