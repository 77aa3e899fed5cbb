//! Reminds a run that continues past midnight of the new date. Every user message has its time, so a new turn needs no
//! reminder.

use super::Middleware;
use crate::{RunState, WallClock};
use pudu_base::{BoxFuture, Message, Request, RunFailure};

/// Prefix of the reminder.
const NOW: &str = "It is now ";

/// Adds a reminder when the date changes.
pub struct Midnight(pub Option<WallClock>);

impl Middleware for Midnight {
    fn name(&self) -> &'static str {
        "midnight"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        if let Some(now) = self.0.as_ref().map(WallClock::now)
            && newest_time(run_state).is_some_and(|newest| day(&newest) != day(&now))
        {
            run_state.remind(request, format!("{NOW}{now}."));
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the newest time in the messages.
fn newest_time(run_state: &RunState) -> Option<String> {
    run_state.state().messages.values().rev().find_map(|message| match &**message {
        Message::Human(human) => human.at.clone(),
        Message::Reminder(reminder) => reminder.text.strip_prefix(NOW).map(str::to_owned),
        Message::Assistant(_) | Message::Tool(_) => None,
    })
}

/// Returns the day part of a time in words, such as `Friday 2026-11-20` in `Friday 2026-11-20 13:53, …`.
fn day(words: &str) -> Vec<&str> {
    words.split_whitespace().take(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Bench, call, calls, text_reply};
    use pudu_base::{Human, Update};
    use serde_json::json;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    #[tokio::test]
    async fn a_run_past_midnight_is_reminded_of_the_new_day_once() {
        let looks = |id: &str| calls(vec![call(id, "reads", json!({}))]);
        let mut bench = Bench::new(vec![looks("1"), looks("2"), text_reply("done")]);
        let calls = AtomicU32::new(0);
        let clock = move || match calls.fetch_add(1, Ordering::SeqCst) {
            0 => "Friday 2026-11-20 23:59, (UTC+01:00)".to_owned(),
            later => format!("Saturday 2026-11-21 00:0{later}, (UTC+01:00)"),
        };
        bench.agent.clock = Some(WallClock::new(clock));
        let at = Some("Friday 2026-11-20 23:58, (UTC+01:00)".to_owned());
        let asks = Human { at, ..Human::new("q", "watch") };
        let bench = bench.past(vec![Update::Message(Arc::new(Message::Human(asks)))]);
        bench.run(None).await;
        let requests = bench.asked();
        let newest: Vec<_> = requests[2].iter().filter(|line| line.starts_with("reminder: ")).collect();
        assert_eq!(newest, ["reminder: It is now Saturday 2026-11-21 00:01, (UTC+01:00)."]);
        assert_eq!(requests[1].last(), Some(newest[0]));
    }
}
