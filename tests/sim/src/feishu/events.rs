//! Events for the bot, each stored until it is acknowledged or given up. No I/O: the delivery asks for due events.

use super::{wire, world::World};
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// Maximum number of stored events; older ones cannot be repeated.
const KEPT: usize = 20_000;

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    /// The envelope.
    pub(crate) body: Value,
    /// The message of the event.
    pub(crate) message: Option<String>,
    pub(crate) number: u64,
    pub(crate) state: State,
    tries: usize,
    /// Whether it is a click: its response is used, and it is sent once.
    pub(crate) click: bool,
}

/// State of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be delivered at this time.
    Due(Instant),
    /// Delivered; failed unless acknowledged by this time.
    Sent(Instant),
    /// Acknowledged, or given up.
    Over,
}

/// All events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    all: VecDeque<Event>,
}

impl Events {
    /// Returns the number of unfinished events.
    pub(crate) fn waiting(&self) -> usize {
        self.all.iter().filter(|event| event.state != State::Over).count()
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Event> {
        self.all.iter_mut().find(|event| event.id == id)
    }

    /// Returns the time of the next automatic change.
    pub(crate) fn next(&self) -> Option<Instant> {
        let time = |event: &Event| match event.state {
            State::Due(at) | State::Sent(at) => Some(at),
            State::Over => None,
        };
        self.all.iter().filter_map(time).min()
    }

    /// Fails the events without an acknowledgement; returns those to deliver now.
    pub(crate) fn due(&mut self, now: Instant, ack: Duration, pauses: &[Duration]) -> Vec<Event> {
        for event in &mut self.all {
            if matches!(event.state, State::Sent(until) if until <= now) {
                event.fail(now, pauses);
            }
        }
        let mut due = Vec::new();
        for event in &mut self.all {
            if matches!(event.state, State::Due(at) if at <= now) {
                event.state = State::Sent(now + ack);
                due.push(event.clone());
            }
        }
        due
    }
}

impl Event {
    /// Schedules a repetition after a pause, until the pauses are used up.
    pub(crate) fn fail(&mut self, now: Instant, pauses: &[Duration]) {
        let pause = pauses.get(self.tries).filter(|_| !self.click);
        self.tries += 1;
        self.state = pause.map_or(State::Over, |pause| State::Due(now + *pause));
    }
}

impl World {
    /// Adds an event.
    pub(crate) fn tell(&mut self, kind: &str, event: &Value) -> String {
        self.tell_of(kind, event, None)
    }

    /// Adds an event of a message.
    pub(crate) fn tell_of(&mut self, kind: &str, event: &Value, message: Option<&str>) -> String {
        let number = self.number();
        let id = format!("{number:032x}");
        let event = Event {
            body: wire::envelope(self, &id, kind, event),
            id: id.clone(),
            message: message.map(str::to_owned),
            number,
            state: State::Due(Instant::now()),
            tries: 0,
            click: kind == "card.action.trigger",
        };
        if self.events.all.len() == KEPT {
            self.events.all.pop_front();
        }
        self.events.all.push_back(event);
        id
    }

    /// Repeats the event of a message with the same IDs.
    pub(crate) fn redeliver(&mut self, message: &str) {
        let mut all = self.events.all.iter_mut();
        if let Some(event) = all.find(|event| event.message.as_deref() == Some(message)) {
            event.state = State::Due(Instant::now());
            event.tries = 0;
        }
    }

    /// Processes the bot's acknowledgement of an event, and its response.
    pub(crate) fn acknowledged(&mut self, id: &str, code: i64, data: Option<Value>) {
        let now = Instant::now();
        let pauses = self.options.redelivery.clone();
        let Some(event) = self.events.get_mut(id) else {
            self.violations.push(format!("an acknowledgement of an event {id} that nobody sent"));
            return;
        };
        let in_time = matches!(event.state, State::Sent(_));
        if code != 200 {
            if in_time {
                event.fail(now, &pauses);
            }
            return;
        }
        event.state = State::Over;
        if event.click && in_time {
            let answer = data.unwrap_or_default();
            if let Some(press) = self.presses.iter_mut().find(|press| press.event == id) {
                press.answer = Some(answer);
            }
        }
    }
}
