//! The events that the bot is told of, each until it is acknowledged or given up. No IO: who delivers asks
//! what is due.

use super::{wire, world::World};
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// How many events are kept; older ones cannot be delivered anew.
const KEPT: usize = 20_000;

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    /// The envelope.
    pub(crate) body: Value,
    /// The message that it tells of.
    pub(crate) message: Option<String>,
    pub(crate) number: u64,
    pub(crate) state: State,
    tries: usize,
    /// Whether it is a click: its answer is wanted, and it is told of once.
    pub(crate) click: bool,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// To be delivered then.
    Due(Instant),
    /// Delivered; acknowledged by then, or it failed.
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
    /// How many are not over.
    pub(crate) fn waiting(&self) -> usize {
        self.all.iter().filter(|event| event.state != State::Over).count()
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Event> {
        self.all.iter_mut().find(|event| event.id == id)
    }

    /// When something next happens by itself.
    pub(crate) fn next(&self) -> Option<Instant> {
        let time = |event: &Event| match event.state {
            State::Due(at) | State::Sent(at) => Some(at),
            State::Over => None,
        };
        self.all.iter().filter_map(time).min()
    }

    /// Those whose acknowledgement did not come fail; returns those to deliver now.
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
    /// It was not taken: once more after a pause, until those are used up.
    pub(crate) fn fail(&mut self, now: Instant, pauses: &[Duration]) {
        let pause = pauses.get(self.tries).filter(|_| !self.click);
        self.tries += 1;
        self.state = pause.map_or(State::Over, |pause| State::Due(now + *pause));
    }
}

impl World {
    /// The bot is told of something.
    pub(crate) fn tell(&mut self, kind: &str, event: &Value) -> String {
        self.tell_of(kind, event, None)
    }

    /// The same, of a message.
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

    /// The bot is told of a message once more, under the same ids.
    pub(crate) fn redeliver(&mut self, message: &str) {
        let mut all = self.events.all.iter_mut();
        if let Some(event) = all.find(|event| event.message.as_deref() == Some(message)) {
            event.state = State::Due(Instant::now());
            event.tries = 0;
        }
    }

    /// The bot's word on an event: whether it has it, and what it answers.
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
