//! Delivers events to the bot: over one random connection, whole or in fragments; or to its webhook.

use super::{Core, events::Event, frame::Frame, socket::Out, webhook, world::World};
use prost::Message;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

/// How events are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Maximum size of a fragment, in bytes.
    pub size: usize,
    /// The order of the fragments.
    pub order: Order,
    /// Number of further events whose last fragment is lost.
    pub lose: usize,
    /// Whether fragments of concurrent events are mixed.
    pub mixed: bool,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { size: 64 * 1024, order: Order::Straight, lose: 0, mixed: false }
    }
}

/// Order of an event's fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By number.
    Straight,
    /// Last one first.
    Reversed,
    /// Random.
    Shuffled,
}

/// Delivers until it is stopped.
pub(crate) async fn run(core: Arc<Core>) {
    let mut changed = core.watch();
    let posts = TaskTracker::new();
    loop {
        changed.borrow_and_update();
        // `lock`, not `act`: reading is no change, and a change would wake this loop again.
        let (posted, next) = {
            let mut world = core.lock();
            (step(&mut world, Instant::now()), world.events.next())
        };
        for (url, event) in posted {
            posts.spawn(webhook::post(Arc::clone(&core), url, event));
        }
        tokio::select! {
            _ = changed.changed() => {}
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

/// Sends due events; returns those to post.
fn step(world: &mut World, now: Instant) -> Vec<(String, Event)> {
    let pauses = world.options.redelivery.clone();
    let due = world.events.due(now, world.options.ack, &pauses);
    if let Some(url) = &world.webhook {
        return due.into_iter().map(|event| (url.clone(), event)).collect();
    }
    let mut frames: Vec<(u64, Vec<Frame>)> = Vec::new();
    for event in due {
        let open: Vec<u64> = world.connections.keys().copied().filter(|_| !world.deaf).collect();
        if open.is_empty() {
            if let Some(event) = world.events.get_mut(&event.id) {
                event.fail(now, &pauses);
            }
            continue;
        }
        let connection = open.get(world.random.usize(0..open.len())).copied().unwrap_or_default();
        frames.push((connection, cut(world, connection, &event)));
    }
    if world.chunks.mixed {
        frames = mix(&frames);
    }
    for (connection, frames) in frames {
        send(world, connection, &frames);
    }
    Vec::new()
}

fn cut(world: &mut World, connection: u64, event: &Event) -> Vec<Frame> {
    let service = world.connections.get(&connection).map_or(0, |connection| connection.service);
    let body = event.body.to_string().into_bytes();
    let parts: Vec<&[u8]> = body.chunks(world.chunks.size.max(1)).collect();
    let cut = |(seq, part): (usize, &&[u8])| {
        Frame::event(&event.id, event.number, service, (parts.len(), seq), part)
    };
    let mut frames: Vec<Frame> = parts.iter().enumerate().map(cut).collect();
    if frames.len() > 1 && world.chunks.lose > 0 {
        world.chunks.lose -= 1;
        frames.pop();
    }
    match world.chunks.order {
        Order::Straight => {}
        Order::Reversed => frames.reverse(),
        Order::Shuffled => world.random.shuffle(&mut frames),
    }
    frames
}

/// Takes one fragment of each in turn.
fn mix(rows: &[(u64, Vec<Frame>)]) -> Vec<(u64, Vec<Frame>)> {
    let longest = rows.iter().map(|(_, frames)| frames.len()).max().unwrap_or(0);
    let turn = |at: usize| {
        let rows = rows.iter();
        rows.filter_map(move |(to, frames)| Some((*to, vec![frames.get(at)?.clone()]))).collect::<Vec<_>>()
    };
    (0..longest).flat_map(turn).collect()
}

fn send(world: &mut World, connection: u64, frames: &[Frame]) {
    let Some(connection) = world.connections.get(&connection) else { return };
    for frame in frames {
        // A connection that does not accept it counts as closed: the event is repeated.
        connection.out.try_send(Out::Frame(frame.encode_to_vec().into())).ok();
    }
}
