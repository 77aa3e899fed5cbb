//! Reads the state of a thread from LangGraph's newest checkpoint of the thread's root graph. Older checkpoints are not
//! imported.
//!
//! Three layouts are supported: SQLite, with all channels in the checkpoint; PostgreSQL, with large channels in a
//! separate table by version; and delta channels, which are rebuilt from the newest snapshot and later writes.

use crate::{
    channels::{MessageFold, overwrite},
    database::{CheckpointRow, MAX_THREAD_BYTES, MAX_THREAD_VALUES, SourceReader, StoredValue},
    error::ImportError,
    value,
};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The channel of messages.
const MESSAGES: &str = "messages";
/// Maximum number of checkpoints through which deltas are followed.
const MAX_STEPS: usize = 20_000;

/// Result of a search for a thread's state.
pub(crate) enum FoundState {
    /// There is no state.
    Nothing,
    /// The state cannot be read.
    Broken(String),
    /// Channels, and the checkpoint's timestamp.
    Channels(Map<String, Value>, Option<String>),
}

/// Reason why a state cannot be read: an error in the thread or in the database.
enum Trouble {
    Thread(String),
    Database(ImportError),
}

impl From<ImportError> for Trouble {
    fn from(error: ImportError) -> Self {
        Self::Database(error)
    }
}

/// Reads the newest state of a thread.
pub(crate) async fn read(reader: &mut SourceReader, thread: &str) -> Result<FoundState, ImportError> {
    reader.begin_thread();
    let Some(newest) = reader.newest(thread).await? else { return Ok(FoundState::Nothing) };
    match channels(reader, thread, &newest).await {
        Ok((channels, at)) => Ok(FoundState::Channels(channels, at)),
        Err(Trouble::Thread(why)) => Ok(FoundState::Broken(why)),
        Err(Trouble::Database(error)) => Err(error),
    }
}

async fn channels(
    reader: &mut SourceReader,
    thread: &str,
    newest: &CheckpointRow,
) -> Result<(Map<String, Value>, Option<String>), Trouble> {
    let checkpoint = open(&newest.value)?;
    let (mut channels, versions) =
        (part(&checkpoint, "channel_values"), part(&checkpoint, "channel_versions"));
    for (channel, version) in &versions {
        if channel.starts_with("__") || channel.contains(':') {
            continue;
        }
        // The checkpoint contains only a placeholder for such a value.
        if let Some(value) = reader.blob(thread, channel, &version_text(version)).await? {
            channels.insert(channel.clone(), opened(&value)?);
        }
    }
    if !channels.contains_key(MESSAGES) && versions.contains_key(MESSAGES) {
        let messages = replay(reader, thread, newest).await?;
        channels.insert(MESSAGES.to_owned(), messages.into());
    }
    let at = checkpoint.get("ts").and_then(Value::as_str).map(str::to_owned);
    Ok((channels, at))
}

/// Rebuilds the messages from the newest snapshot before a checkpoint and the writes after it.
async fn replay(
    reader: &mut SourceReader,
    thread: &str,
    newest: &CheckpointRow,
) -> Result<Vec<Value>, Trouble> {
    let (mut chain, mut seen) = (Vec::new(), HashSet::from([newest.id.clone()]));
    let (mut messages, mut next) = (MessageFold::default(), newest.parent.clone());
    while let Some(id) = next.take() {
        if !seen.insert(id.clone()) {
            return Err(Trouble::Thread("its checkpoints form a cycle".to_owned()));
        }
        if chain.len() >= MAX_STEPS {
            return Err(Trouble::Thread(format!("no snapshot within {MAX_STEPS} checkpoints")));
        }
        let Some(row) = reader.older(thread, &id).await? else { break };
        if reader.is_spent() {
            return Err(too_much());
        }
        let checkpoint = open(&row.value)?;
        chain.push(id);
        if let Some(seed) = seed(reader, thread, &checkpoint).await? {
            messages.apply(seed);
            break;
        }
        next = row.parent;
    }
    for id in chain.iter().rev() {
        let writes = reader.writes(thread, id, MESSAGES).await?;
        for write in writes.ok_or_else(too_much)? {
            let write = opened(&write)?;
            match overwrite(&write) {
                Some(whole) => {
                    messages = MessageFold::default();
                    messages.apply(whole);
                }
                None => messages.apply(write),
            }
        }
    }
    Ok(messages.finish())
}

/// Returns the messages if a checkpoint itself stores them.
async fn seed(reader: &mut SourceReader, thread: &str, checkpoint: &Value) -> Result<Option<Value>, Trouble> {
    if let Some(version) = part(checkpoint, "channel_versions").remove(MESSAGES)
        && let Some(value) = reader.blob(thread, MESSAGES, &version_text(&version)).await?
    {
        return Ok(Some(opened(&value)?));
    }
    Ok(part(checkpoint, "channel_values").remove(MESSAGES).filter(Value::is_array))
}

fn too_much() -> Trouble {
    Trouble::Thread(format!(
        "its messages consist of more than {MAX_THREAD_VALUES} values or {} MiB",
        MAX_THREAD_BYTES / (1024 * 1024)
    ))
}

/// Returns a nested object; empty if it is missing.
fn part(of: &Value, key: &str) -> Map<String, Value> {
    of.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn version_text(version: &Value) -> String {
    version.as_str().map_or_else(|| version.to_string(), str::to_owned)
}

/// Reads a checkpoint.
fn open(value: &StoredValue) -> Result<Value, Trouble> {
    match opened(value)? {
        checkpoint @ Value::Object(_) => Ok(checkpoint),
        _ => Err(Trouble::Thread("its checkpoint is not an object".to_owned())),
    }
}

fn opened(value: &StoredValue) -> Result<Value, Trouble> {
    let large = || Trouble::Thread("its state is larger than 32 MiB".to_owned());
    if value.bytes.is_none() && matches!(value.kind.as_str(), "null" | "empty") {
        return Ok(Value::Null);
    }
    let bytes = value.bytes.as_ref().ok_or_else(large)?;
    value::read(&value.kind, bytes)
        .map_err(|error| Trouble::Thread(format!("cannot read its state: {error}")))
}
