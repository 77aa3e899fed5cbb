//! `chat.startStream`, `chat.appendStream` and `chat.stopStream`: a message that grows.

use super::{
    blocks, chat,
    error::{Answer, Refusal},
    params::Params,
    people,
    world::{Author, Message, World},
};
use serde_json::json;
use tokio::time::Instant;

/// The stream that wrote a message.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) open: bool,
    last: Instant,
}

/// Returns the text that a call adds, in `markdown_text` or in chunks.
fn added(params: &Params) -> Answer<String> {
    let chunks = params.list("chunks")?;
    if params.has("markdown_text") && !chunks.is_empty() {
        return Err(Refusal::argument("invalid_arguments", "markdown_text and chunks exclude each other"));
    }
    let mut text = params.text("markdown_text").unwrap_or_default().to_owned();
    for chunk in &chunks {
        match chunk["type"].as_str() {
            Some("markdown_text") => text.push_str(chunk["text"].as_str().unwrap_or_default()),
            Some("task_update" | "plan_update" | "blocks") => {}
            _ => return Err(Refusal::new("invalid_chunks")),
        }
    }
    if text.chars().count() > chat::MARKDOWN {
        return Err(Refusal::new("msg_too_long"));
    }
    Ok(text)
}

/// `chat.startStream`
pub(crate) fn start(world: &mut World, params: &Params) -> Answer {
    world.need("chat:write")?;
    let channel = params.need("channel")?.to_owned();
    params.need("thread_ts")?;
    let text = added(params)?;
    let ts = world.ts();
    let person = |id: &str| world.people.contains_key(id);
    let recipient = params.text("recipient_user_id").map(person);
    let team = params.text("recipient_team_id").map(|team| team == super::world::TEAM);
    let of = world.open_channel(&channel)?;
    if of.with.is_none() {
        recipient.ok_or_else(|| Refusal::new("missing_recipient_user_id"))?;
        team.ok_or_else(|| Refusal::new("missing_recipient_team_id"))?;
    }
    if recipient == Some(false) || team == Some(false) {
        return Err(Refusal::new("user_not_found"));
    }
    let thread = chat::thread(of, params)?;
    let stream = Some(Stream { open: true, last: Instant::now() });
    let message = Message {
        ts: ts.clone(),
        thread: thread.clone(),
        from: Author::Bot,
        text,
        markdown: true,
        stream,
        ..Message::default()
    };
    people::put(world, &channel, message);
    if let Some(thread) = thread {
        chat::clear_status(world, &channel, &thread);
    }
    Ok(json!({"ok": true, "channel": channel, "ts": ts}))
}

/// `chat.appendStream`
pub(crate) fn append(world: &mut World, params: &Params) -> Answer {
    if !params.has("markdown_text") && !params.has("chunks") {
        return Err(Refusal::argument("invalid_arguments", "missing required field: markdown_text"));
    }
    let text = added(params)?;
    add(world, params, &text, |_, _| Ok(()))
}

/// `chat.stopStream`
pub(crate) fn stop(world: &mut World, params: &Params) -> Answer {
    let text = added(params)?;
    let below = params.list("blocks")?;
    blocks::check(&below)?;
    let metadata = chat::metadata(params)?;
    add(world, params, &text, |message, _| {
        message.blocks = below;
        message.metadata = metadata;
        if let Some(stream) = &mut message.stream {
            stream.open = false;
        }
        Ok(())
    })
}

fn add(
    world: &mut World,
    params: &Params,
    text: &str,
    then: impl FnOnce(&mut Message, &Params) -> Answer<()>,
) -> Answer {
    world.need("chat:write")?;
    let (channel, ts) = (params.need("channel")?.to_owned(), params.need("ts")?.to_owned());
    let idle = world.options.stream_idle;
    let of = world.open_channel(&channel)?;
    let message = of.message_mut(&ts).ok_or_else(|| Refusal::new("message_not_found"))?;
    if message.from != Author::Bot {
        return Err(Refusal::new("message_not_owned_by_app"));
    }
    let now = Instant::now();
    let streaming = message.stream.as_mut().filter(|stream| stream.open);
    let Some(stream) = streaming.filter(|stream| now.duration_since(stream.last) < idle) else {
        if let Some(stream) = &mut message.stream {
            stream.open = false;
        }
        return Err(Refusal::new("message_not_in_streaming_state"));
    };
    stream.last = now;
    message.text.push_str(text);
    then(message, params)?;
    people::shown_anew(world, &channel, &ts);
    let closed =
        world.channel(&channel)?.message(&ts).is_some_and(|m| m.stream.as_ref().is_some_and(|s| !s.open));
    if closed {
        people::changed(world, &channel, &ts);
    }
    Ok(json!({"ok": true, "channel": channel, "ts": ts}))
}

/// Closes every stream, like idle ones on the platform.
pub(crate) fn close_all(world: &mut World) {
    for message in world.channels.values_mut().flat_map(|channel| &mut channel.messages) {
        if let Some(stream) = &mut message.stream {
            stream.open = false;
        }
    }
}

/// Returns whether users see it as growing.
pub(crate) fn growing(world: &World, message: &Message) -> bool {
    let idle = world.options.stream_idle;
    message.stream.as_ref().is_some_and(|stream| stream.open && stream.last.elapsed() < idle)
}
