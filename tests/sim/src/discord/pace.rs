//! Rate limits: a bucket for each kind of call in each channel. Disabled by default; the headers report them in any
//! case.

use super::error::{Answer, Refusal};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// Recent calls.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) on: bool,
    /// All calls are refused until this time.
    pub(crate) closed: Option<Instant>,
    /// Number of calls refused with 401, 403 or 429: too many ban an address.
    pub(crate) invalid: u64,
    calls: HashMap<(String, String), VecDeque<Instant>>,
}

/// Returns the size and the period of a method's bucket.
fn bucket(method: &str) -> (usize, Duration) {
    match method {
        "message.create" | "message.edit" | "message.delete" | "typing" => (5, Duration::from_secs(5)),
        "reaction.add" => (1, Duration::from_millis(250)),
        "thread.create" => (50, Duration::from_secs(300)),
        _ => (50, Duration::from_secs(1)),
    }
}

impl Meter {
    /// Counts a call, or refuses it; returns the headers of the bucket.
    pub(crate) fn pass(
        &mut self,
        method: &str,
        major: &str,
        now: Instant,
    ) -> Answer<Vec<(&'static str, String)>> {
        if let Some(until) = self.closed.filter(|until| *until > now) {
            return Err(Refusal::too_many((until - now).as_secs_f64(), true));
        }
        let (most, window) = bucket(method);
        let calls = self.calls.entry((method.to_owned(), major.to_owned())).or_default();
        while calls.front().is_some_and(|at| now.duration_since(*at) >= window) {
            calls.pop_front();
        }
        let left = calls.front().map_or(window, |first| window.saturating_sub(now.duration_since(*first)));
        let headers = |remaining: usize| {
            vec![
                ("x-ratelimit-bucket", format!("{:08x}", method.bytes().map(u32::from).sum::<u32>())),
                ("x-ratelimit-limit", most.to_string()),
                ("x-ratelimit-remaining", remaining.to_string()),
                ("x-ratelimit-reset-after", format!("{:.3}", left.as_secs_f64())),
            ]
        };
        if !self.on {
            return Ok(headers(most - 1));
        }
        if calls.len() >= most {
            let mut refusal = Refusal::too_many(left.as_secs_f64(), false);
            refusal.headers.extend(headers(0));
            return Err(refusal);
        }
        calls.push_back(now);
        Ok(headers(most - calls.len()))
    }
}
