//! The stream: tickets, sockets, frames, acknowledgements, and repetitions without one.

use super::{
    Core,
    error::{Answer, Refusal},
    server::Ask,
    world::{World, unix_ms},
};
use axum::extract::ws::{Message, WebSocket};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Lifetime of a ticket.
const TICKET: Duration = Duration::from_secs(90);
/// Maximum number of frames waiting for one socket.
const WAITING: usize = 4096;
/// The topic of bot messages.
pub(crate) const MESSAGES: &str = "/v1.0/im/bot/messages/get";
/// The topic of presses on cards.
pub(crate) const CARDS: &str = "/v1.0/card/instances/callback";

/// The right to connect once.
pub(crate) struct Ticket {
    until: Instant,
    topics: Vec<(String, String)>,
}

/// An open socket.
pub(crate) struct Link {
    id: u64,
    out: mpsc::Sender<Out>,
    topics: Vec<(String, String)>,
    /// When a disconnect was announced: nothing more is delivered, and it ends at this time.
    ends: Option<Instant>,
    next_ping: Option<Instant>,
}

impl Link {
    fn takes(&self, kind: &str, topic: &str) -> bool {
        let wants = |(k, t): &(String, String)| k == kind && (t == topic || t == "*");
        self.ends.is_none() && !self.out.is_closed() && self.topics.iter().any(wants)
    }
}

enum Out {
    Text(String),
    /// The connection breaks.
    Cut,
    /// The connection stays open without any traffic.
    Freeze,
}

/// An event on its way to the bot.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) topic: &'static str,
    pub(crate) data: Value,
    due: Instant,
}

/// Answers `gateway/connections/open`.
pub(crate) fn open(world: &mut World, ask: &Ask) -> Answer {
    let (id, secret) = (ask.text("clientId"), ask.text("clientSecret"));
    if id != world.options.client_id || secret != world.options.client_secret {
        return Err(Refusal::api(401, "authFailed", "the client id or secret is not right"));
    }
    let wanted = ask.body.get("subscriptions").and_then(Value::as_array).cloned().unwrap_or_default();
    let word = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let topics: Vec<_> = wanted.iter().map(|one| (word(one, "type"), word(one, "topic"))).collect();
    if topics.is_empty() {
        return Err(Refusal::missing("subscriptions"));
    }
    // With a plus and a slash, to detect a client that does not escape them.
    let ticket = format!("t+{}/{}==", world.fresh(), world.random.u64(..));
    world.tickets.insert(ticket.clone(), Ticket { until: Instant::now() + TICKET, topics });
    let endpoint = format!("{}/connect", world.url.replacen("http", "ws", 1));
    Ok(json!({"endpoint": endpoint, "ticket": ticket}))
}

/// Redeems a ticket, which is valid once.
pub(crate) fn redeem(world: &mut World, ticket: &str) -> Option<Ticket> {
    world.tickets.remove(ticket).filter(|ticket| ticket.until > Instant::now())
}

/// Serves one socket until it ends.
pub(crate) async fn serve(core: Arc<Core>, mut socket: WebSocket, ticket: Ticket) {
    let (out, mut outgoing) = mpsc::channel(WAITING);
    let id = core.act(|world| world.join(out, ticket.topics));
    loop {
        tokio::select! {
            frame = outgoing.recv() => match frame {
                Some(Out::Text(text)) => {
                    if socket.send(Message::Text(text.into())).await.is_err() {
                        break;
                    }
                }
                Some(Out::Freeze) => std::future::pending().await,
                Some(Out::Cut) | None => break,
            },
            frame = socket.recv() => match frame {
                Some(Ok(Message::Text(text))) => core.act(|world| world.acknowledged(&text)),
                // Reading on answers a close frame.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Close(_))) => {}
                _ => break,
            },
        }
    }
    core.act(|world| world.links.retain(|link| link.id != id));
}

/// Sends events to sockets, pings them, and ends them, while it is polled.
pub(crate) async fn courier(core: Arc<Core>) {
    let mut changed = core.watch();
    loop {
        changed.borrow_and_update();
        // Only `lock`, not `act`: sending an event is not a change that others wait for.
        let next = core.lock().turn(Instant::now());
        tokio::select! {
            _ = changed.changed() => {}
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

impl World {
    fn join(&mut self, out: mpsc::Sender<Out>, topics: Vec<(String, String)>) -> u64 {
        let id = self.fresh();
        let next_ping = self.options.ping.map(|every| Instant::now() + every);
        self.links.push(Link { id, out, topics, ends: None, next_ping });
        id
    }

    /// Queues an event.
    pub(crate) fn tell(&mut self, kind: &'static str, topic: &'static str, of: &str, data: Value) {
        let id = format!("{:x}_{}", self.random.u64(..), self.fresh());
        let delivery = Delivery { id, kind, topic, data, due: Instant::now() };
        self.told.insert(of.to_owned(), delivery.clone());
        self.deliveries.push(delivery);
    }

    /// Repeats an event immediately: pending acknowledgements belong to the earlier one.
    pub(crate) fn tell_again(&mut self, of: &str) {
        let Some(again) = self.told.get(of).cloned() else { return };
        self.push(&again);
        self.deliveries.retain(|one| one.id != again.id);
        if let Some(after) = self.options.repeat {
            self.deliveries.push(Delivery { due: Instant::now() + after, ..again });
        }
    }

    /// Performs due work and returns the time of the next one.
    fn turn(&mut self, now: Instant) -> Option<Instant> {
        self.end_links(now);
        self.ping_links(now);
        for mut delivery in std::mem::take(&mut self.deliveries) {
            if delivery.due <= now {
                self.push(&delivery);
                // Without repetition an event is sent once, even if no socket is open.
                let Some(after) = self.options.repeat else { continue };
                delivery.due = now + after;
            }
            self.deliveries.push(delivery);
        }
        let due = self.deliveries.iter().map(|one| one.due);
        let links = self.links.iter().flat_map(|link| [link.ends, link.next_ping]).flatten();
        due.chain(links).min()
    }

    /// Sends an event to one random socket, if there is any.
    fn push(&mut self, delivery: &Delivery) {
        let open: Vec<&Link> =
            self.links.iter().filter(|link| link.takes(delivery.kind, delivery.topic)).collect();
        let Some(link) = self.random.choice(open) else { return };
        let frame = json!({
            "specVersion": "1.0",
            "type": delivery.kind,
            "headers": {
                "appId": "5a0e1b7c-sim", "connectionId": format!("c{}", link.id), "contentType": "application/json",
                "messageId": delivery.id, "time": unix_ms().to_string(), "topic": delivery.topic,
            },
            "data": delivery.data.to_string(),
        });
        link.out.try_send(Out::Text(frame.to_string())).ok();
    }

    fn ping_links(&mut self, now: Instant) {
        let Some(every) = self.options.ping else { return };
        for link in &mut self.links {
            if link.ends.is_none() && link.next_ping.is_some_and(|next| next <= now) {
                link.next_ping = Some(now + every);
                let id = format!("ping-{}", link.id);
                link.out.try_send(Out::Text(system("ping", Some(&id), &json!({"opaque": id})))).ok();
            }
        }
    }

    fn end_links(&mut self, now: Instant) {
        let over = |link: &Link| link.ends.is_some_and(|ends| ends <= now);
        for link in self.links.iter().filter(|link| over(link)) {
            link.out.try_send(Out::Cut).ok();
        }
        self.links.retain(|link| !over(link));
    }

    /// Pings every socket.
    pub(crate) fn ping_now(&mut self) {
        let now = Instant::now();
        self.links.iter_mut().for_each(|link| link.next_ping = Some(now));
    }

    /// Announces the end of every socket: nothing more is delivered on it.
    pub(crate) fn disconnect(&mut self) {
        let ends = Instant::now() + self.options.silence;
        for link in self.links.iter_mut().filter(|link| link.ends.is_none()) {
            link.ends = Some(ends);
            link.next_ping = None;
            let text = system("disconnect", None, &json!({"reason": "persistent connection is timeout"}));
            link.out.try_send(Out::Text(text)).ok();
        }
    }

    /// Returns the number of open sockets without an announced end.
    pub(crate) fn lasting_links(&self) -> usize {
        self.links.iter().filter(|link| link.ends.is_none()).count()
    }

    /// Breaks every socket.
    pub(crate) fn cut_links(&mut self) {
        self.links.drain(..).for_each(|link| drop(link.out.try_send(Out::Cut)));
    }

    /// Stops all traffic on open sockets.
    pub(crate) fn freeze_links(&mut self) {
        self.links.drain(..).for_each(|link| drop(link.out.try_send(Out::Freeze)));
    }

    fn acknowledged(&mut self, text: &str) {
        let frame: Value = serde_json::from_str(text).unwrap_or_default();
        let id = frame["headers"]["messageId"].as_str().unwrap_or_default();
        // Only a success counts; after an error the event is repeated, like without an answer.
        if frame["code"].as_i64() == Some(200) {
            self.deliveries.retain(|one| one.id != id);
        }
        let params = frame.as_object().cloned().unwrap_or_default();
        let call = self.books.calls.start("ack", params, Instant::now());
        self.books.calls.end(call.n, crate::Outcome::Answered(Value::Null));
    }
}

/// Returns a system frame. As documented, it may lack fields of other frames.
fn system(topic: &str, id: Option<&str>, data: &Value) -> String {
    let mut headers =
        json!({"topic": topic, "contentType": "application/json", "time": unix_ms().to_string()});
    if let Some(id) = id {
        headers["messageId"] = id.into();
    }
    json!({"specVersion": "1.0", "type": "SYSTEM", "headers": headers, "data": data.to_string()}).to_string()
}

#[cfg(test)]
mod tests;
