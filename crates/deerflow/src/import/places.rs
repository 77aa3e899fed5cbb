//! Imports the thread of each chat and topic, from `channels/store.json` and the table `channel_conversations`.

use super::{
    Import,
    rows::{UNREADABLE, outcome},
    user_of,
};
use crate::{error::ImportError, files, report::ItemKind, time};
use pudu_base::{ThreadFolder, UserId};
use pudu_store::ImportRecord;
use serde_json::{Map, Value};

/// Maximum size of `channels/store.json`, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// A chat, or a topic of a chat.
#[derive(Clone, Debug)]
pub(super) struct SourcePlace {
    pub(super) account: String,
    chat: String,
    topic: Option<String>,
    pub(super) thread: String,
    /// The user's ID on the platform, if DeerFlow names its folders after it.
    pub(super) person: Option<String>,
    /// User that owns the connection.
    owner: Option<UserId>,
    /// Room that owns the thread; `None` if one user owns it.
    room: Option<UserId>,
    pub(super) updated: i64,
}

/// All chats and topics.
pub(super) struct SourcePlaces(pub(super) Vec<SourcePlace>);

impl SourcePlaces {
    /// Returns the room that owns a thread; `None` if one user owns it.
    pub(super) fn room(&self, thread: &str) -> Option<UserId> {
        self.0.iter().find(|place| place.thread == thread)?.room.clone()
    }

    /// Returns the user that owns a thread according to its chat or topic.
    pub(super) fn owner(&self, thread: &str) -> Option<UserId> {
        let place = self.0.iter().find(|place| place.thread == thread)?;
        place.owner.clone().or_else(|| UserId::from_raw(place.person.as_deref()?).ok())
    }

    /// Returns whether only one user writes in a thread, judging by its chat. The writers in a group are unknown.
    pub(super) fn is_private(&self, thread: &str, account: &str) -> bool {
        let place = self.0.iter().find(|place| place.thread == thread);
        place.map_or(account.is_empty(), SourcePlace::is_private)
    }

    /// Returns the account of a thread.
    pub(super) fn account(&self, thread: &str) -> Option<&str> {
        self.0.iter().find(|place| place.thread == thread).map(|place| place.account.as_str())
    }
}

impl SourcePlace {
    fn is_private(&self) -> bool {
        self.topic.is_none() && self.person.as_ref() == Some(&self.chat)
    }
}

impl Import<'_> {
    pub(super) async fn places(&mut self) -> Result<SourcePlaces, ImportError> {
        let mut places = self.stored_places();
        let sql = "SELECT CAST(provider AS TEXT) AS provider, CAST(owner_user_id AS TEXT) AS owner,
            CAST(external_conversation_id AS TEXT) AS chat, CAST(external_topic_id AS TEXT) AS topic,
            CAST(thread_id AS TEXT) AS thread, CAST(updated_at AS TEXT) AS updated_at
            FROM channel_conversations ORDER BY updated_at DESC";
        for row in &self.rows("channel_conversations", sql).await? {
            let parts = (row.text("provider"), row.text("chat"), row.text("thread"));
            let (Some(account), Some(chat), Some(thread)) = parts else {
                self.report.left(ItemKind::Conversation, "a row of channel_conversations", UNREADABLE);
                continue;
            };
            let topic = row.text("topic").filter(|topic| !topic.is_empty());
            let (owner, updated) = (row.text("owner"), self.time(row, "updated_at"));
            let owner = Some(user_of(owner.as_deref()));
            places.push(SourcePlace {
                account,
                chat,
                topic,
                thread,
                person: None,
                owner,
                room: None,
                updated,
            });
        }
        for place in places.iter_mut().filter(|place| !place.is_private()) {
            place.room = (self.target.place)(&place.account, &place.chat, place.topic.as_deref()).room;
        }
        Ok(SourcePlaces(places))
    }

    /// Reads `channels/store.json`. Unreadable entries are reported.
    fn stored_places(&mut self) -> Vec<SourcePlace> {
        let file = self.source.folder.join("channels").join("store.json");
        let read = match files::read_plain(&file, MAX_FILE_BYTES) {
            Ok(None) => return Vec::new(),
            Ok(Some(bytes)) => {
                serde_json::from_slice::<Map<String, Value>>(&bytes).map_err(|_| "not valid JSON")
            }
            Err(why) => Err(why),
        };
        let entries = match read {
            Ok(entries) => entries,
            Err(why) => {
                self.report.left(ItemKind::Conversation, "channels/store.json", why);
                return Vec::new();
            }
        };
        let mut places = Vec::new();
        for (key, entry) in entries {
            match stored(&key, &entry, self.now) {
                Some(place) => places.push(place),
                None => self.report.left(ItemKind::Conversation, key, "chat or thread is missing"),
            }
        }
        places
    }

    pub(super) async fn conversations(&mut self, places: SourcePlaces) -> Result<(), ImportError> {
        let (mut records, mut written) = (Vec::new(), Vec::new());
        for place in &places.0 {
            let name = (self.target.place)(&place.account, &place.chat, place.topic.as_deref());
            let Some(owner) = self.target.db.owner(&place.thread.as_str().into()).await? else {
                self.report.left(
                    ItemKind::Conversation,
                    name.key,
                    format!("its thread {} was not imported", place.thread),
                );
                continue;
            };
            written.push((name.key.clone(), owner.clone()));
            records.push(ImportRecord::Conversation {
                key: name.key,
                account: place.account.clone(),
                chat: place.chat.clone(),
                message: name.message,
                folder: ThreadFolder { owner, thread: place.thread.as_str().into() },
                updated: place.updated,
            });
        }
        let new = self.target.db.import_records(records).await?;
        for ((key, owner), new) in written.iter().zip(new) {
            self.report.add(ItemKind::Conversation, outcome(new), key, Some(owner.as_str()), None);
        }
        Ok(())
    }
}

/// Reads an entry, whose key is `channel:chat[:topic]`.
fn stored(key: &str, entry: &Value, now: i64) -> Option<SourcePlace> {
    let mut parts = key.splitn(3, ':').map(str::to_owned);
    let (account, chat, topic) = (parts.next()?, parts.next()?, parts.next());
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let updated = match entry.get("updated_at") {
        Some(Value::String(at)) => time::millis(at),
        Some(at) => at.as_f64().map(seconds),
        None => None,
    };
    let place = SourcePlace {
        account,
        chat,
        topic: topic.filter(|topic| !topic.is_empty()),
        thread: text("thread_id")?,
        person: text("user_id").filter(|person| !person.is_empty()),
        owner: None,
        room: None,
        updated: updated.unwrap_or(now),
    };
    let is_complete = !place.account.is_empty() && !place.chat.is_empty() && !place.thread.is_empty();
    is_complete.then_some(place)
}

#[expect(clippy::cast_possible_truncation, reason = "saturates for large numbers")]
fn seconds(at: f64) -> i64 {
    (at * 1000.0) as i64
}
