//! `chat.postMessage`, `chat.update` and `chat.delete`.

use super::{
    blocks,
    error::{Answer, Refusal},
    params::Params,
    people, wire,
    world::{Author, Message, World},
};
use serde_json::{Value, json};

/// Length after which a text is cut with a warning, in characters.
const CUT: usize = 40_000;
/// Maximum length of a replacement text, in characters.
const UPDATE: usize = 4000;
/// Maximum length of `markdown_text`, in characters.
pub(crate) const MARKDOWN: usize = 12_000;

/// Text, blocks and other content of a call.
struct Content {
    text: String,
    markdown: bool,
    blocks: Option<Vec<Value>>,
    cut: bool,
}

fn content(params: &Params) -> Answer<Content> {
    if params.has("markdown_text") {
        if params.has("text") || params.has("blocks") {
            return Err(Refusal::new("markdown_text_conflict"));
        }
        let text = params.text("markdown_text").ok_or_else(|| Refusal::new("no_text"))?;
        if text.chars().count() > MARKDOWN {
            return Err(Refusal::new("msg_too_long"));
        }
        return Ok(Content { text: text.to_owned(), markdown: true, blocks: None, cut: false });
    }
    let blocks = params.has("blocks").then(|| params.list("blocks")).transpose()?;
    blocks.as_deref().map_or(Ok(()), blocks::check)?;
    let text: String = params.text("text").unwrap_or_default().chars().take(CUT).collect();
    let cut = params.text("text").is_some_and(|whole| whole.len() > text.len());
    if text.is_empty() && blocks.as_ref().is_none_or(Vec::is_empty) {
        return Err(Refusal::new("no_text"));
    }
    Ok(Content { text, markdown: false, blocks, cut })
}

pub(crate) fn metadata(params: &Params) -> Answer<Option<Value>> {
    let metadata = params.object("metadata")?;
    let whole = |value: &Value| value["event_type"].is_string() && value["event_payload"].is_object();
    if metadata.as_ref().is_some_and(|value| !whole(value)) {
        return Err(Refusal::new("invalid_metadata_format"));
    }
    Ok(metadata)
}

/// `chat.postMessage`
pub(crate) fn post(world: &mut World, params: &Params) -> Answer {
    world.need("chat:write")?;
    let channel = params.need("channel")?.to_owned();
    let content = content(params)?;
    let metadata = metadata(params)?;
    let ts = world.ts();
    let of = world.open_channel(&channel)?;
    let thread = thread(of, params)?;
    let message = Message {
        ts: ts.clone(),
        thread: thread.clone(),
        from: Author::Bot,
        text: content.text,
        markdown: content.markdown,
        blocks: content.blocks.unwrap_or_default(),
        metadata,
        names_linked: params.flag("link_names").unwrap_or(false),
        unfurled: params.flag("unfurl_links").unwrap_or(true) || params.flag("unfurl_media").unwrap_or(true),
        ..Message::default()
    };
    people::put(world, &channel, message);
    if let Some(thread) = thread {
        clear_status(world, &channel, &thread);
    }
    let mut answer =
        json!({"ok": true, "channel": channel, "ts": ts, "message": shown(world, &channel, &ts)?});
    if content.cut {
        answer["warning"] = "message_truncated".into();
    }
    Ok(answer)
}

/// Returns the thread in a call; a missing one is refused.
pub(crate) fn thread(of: &super::world::Channel, params: &Params) -> Answer<Option<String>> {
    let Some(thread) = params.text("thread_ts") else { return Ok(None) };
    let root = of.root(thread).ok_or_else(|| Refusal::new("thread_not_found"))?;
    Ok(Some(root))
}

/// Clears the bot's status on a new message.
pub(crate) fn clear_status(world: &mut World, channel: &str, thread: &str) {
    for status in &mut world.statuses {
        if status.channel == channel && status.thread == thread {
            status.text.clear();
        }
    }
}

/// `chat.update`
pub(crate) fn update(world: &mut World, params: &Params) -> Answer {
    world.need("chat:write")?;
    let (channel, ts) = (params.need("channel")?.to_owned(), params.need("ts")?.to_owned());
    let content = content(params)?;
    if content.blocks.is_none() && !content.markdown && content.text.chars().count() > UPDATE {
        return Err(Refusal::new("msg_too_long"));
    }
    let metadata = metadata(params)?;
    let of = world.open_channel(&channel)?;
    let message = of.message_mut(&ts).ok_or_else(|| Refusal::new("message_not_found"))?;
    if message.from != Author::Bot {
        return Err(Refusal::new("cant_update_message"));
    }
    if message.stream.as_ref().is_some_and(|stream| stream.open) {
        return Err(Refusal::new("streaming_state_conflict"));
    }
    message.text = content.text;
    message.markdown = content.markdown;
    // Blocks are kept unless replaced, even by an empty list; those of a stream are removed with its text.
    if content.blocks.is_some() || message.stream.is_some() {
        message.blocks = content.blocks.unwrap_or_default();
    }
    message.metadata = metadata.or_else(|| message.metadata.take());
    message.stream = None;
    message.edited = true;
    let text = message.text.clone();
    people::changed(world, &channel, &ts);
    Ok(
        json!({"ok": true, "channel": channel, "ts": ts, "text": text, "message": shown(world, &channel, &ts)?}),
    )
}

/// `chat.delete`
pub(crate) fn delete(world: &mut World, params: &Params) -> Answer {
    world.need("chat:write")?;
    let (channel, ts) = (params.need("channel")?.to_owned(), params.need("ts")?.to_owned());
    let of = world.open_channel(&channel)?;
    let message = of.message_mut(&ts).ok_or_else(|| Refusal::new("message_not_found"))?;
    if message.from != Author::Bot {
        return Err(Refusal::new("cant_delete_message"));
    }
    message.deleted = true;
    people::gone(world, &channel, &ts);
    Ok(json!({"ok": true, "channel": channel, "ts": ts}))
}

fn shown(world: &World, channel: &str, ts: &str) -> Answer {
    let of = world.channel(channel)?;
    let message = of.message(ts).ok_or_else(|| Refusal::new("message_not_found"))?;
    Ok(wire::message(world, of, message, true))
}
