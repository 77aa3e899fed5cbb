//! Decodes events into [`Inbound`]s: pure, no IO, no clock.
//!
//! A message in a channel that mentions the bot arrives as two events, and again by a redelivery or the history. All
//! have the same key, made of channel and timestamp. Deliberately absent: access decisions.

pub(super) mod pointed;

use super::{
    blocks,
    text::{named, parse_text},
    wire::{Actions, SlackFile, SlackIdentity, SlackMessage, Slash},
};
use crate::{Address, Attachment, ChatCommand, EventKey, Inbound, InboundKind, PointedKind, Sender};
use pointed::{PieceContext, pointed};
use serde_json::{Value, json};
use std::{borrow::Cow, collections::HashMap};

/// Prefix of the action ids of pudu's own buttons.
pub(super) const ACTION: &str = "pudu";
/// Prefix of a handle that contains a file's id instead of its URL: Slack describes such a file only on request.
pub(super) const BY_ID: &str = "id:";

/// Key in a slash command's hint for its response URL.
pub(super) const RESPOND: &str = "respond";
/// Maximum length of a stored URL, in bytes.
const MAX_URL_BYTES: usize = 1024;

/// Event decoder of one bot.
#[derive(Debug)]
pub(super) struct SlackDecoder<'a> {
    pub(super) account: &'a str,
    pub(super) me: &'a SlackIdentity,
    /// Whether a message in a channel has to address the bot.
    pub(super) require_mention: bool,
    pub(super) commands: &'a [ChatCommand],
}

/// A message, an edit or a deletion, before the names of users are looked up.
#[derive(Clone, Debug)]
pub(super) struct SlackEvent {
    key: EventKey,
    pub(super) channel: String,
    private: bool,
    what: What,
    /// The current or last state of the message.
    pub(super) message: SlackMessage,
    /// Timestamp of the event, in Slack's form.
    at: String,
    /// Timestamp of the message.
    ts: String,
    team: Option<String>,
    /// Whether the message mentions the bot, or did before an edit.
    named: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Message,
    Edit,
    Recall,
}

/// Data besides the event that decoding needs.
#[derive(Debug, Default)]
pub(super) struct DecodeContext {
    /// Names of users, by id.
    pub(super) names: HashMap<String, String>,
    /// Whether the bot has spoken in the thread.
    pub(super) ours: bool,
}

impl SlackEvent {
    /// Returns the ids of the users whose names are needed.
    pub(super) fn people(&self, me: &SlackIdentity) -> Vec<String> {
        let sender = self.message.user.as_deref();
        let all = sender.into_iter().chain(named(&self.message.text, &me.user));
        let mut all: Vec<String> = all.map(str::to_owned).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns the message's thread if decoding depends on whether the bot has spoken there.
    pub(super) fn thread(&self, me: &SlackIdentity) -> Option<(&str, &str)> {
        let thread = self.message.thread_ts.as_deref().filter(|thread| *thread != self.ts)?;
        let plain = !self.private && !self.named;
        (plain && self.message.parent_user_id.as_deref() != Some(&me.user)).then_some((&self.channel, thread))
    }
}

impl SlackMessage {
    /// Returns the author's text. Some clients send it only in blocks.
    fn own_text(&self) -> Cow<'_, str> {
        match self.text.trim() {
            "" => blocks::text(&self.blocks).into(),
            _ => self.text.as_str().into(),
        }
    }
}

fn mentions(message: &SlackMessage, me: &SlackIdentity) -> bool {
    let text = message.own_text();
    let mentions_bot = |end| text.contains(&format!("<@{}{end}", me.user));
    message.kind == "app_mention" || mentions_bot('>') || mentions_bot('|')
}

impl SlackDecoder<'_> {
    /// Reads an event; `None` for one that does not concern the bot.
    pub(super) fn read_event(&self, event: &SlackMessage, team: Option<&str>) -> Option<SlackEvent> {
        let channel = event.channel.clone()?;
        // Only ids of direct messages begin with D; not every event contains the type.
        let private = event.channel_type.as_deref().map_or(channel.starts_with('D'), |kind| kind == "im");
        let (what, message) = match (event.kind.as_str(), event.subtype.as_deref()) {
            ("app_mention", _)
            | ("message", None | Some("file_share" | "thread_broadcast" | "me_message")) => {
                (What::Message, event.clone())
            }
            ("message", Some("message_changed")) => changed(event)?,
            ("message", Some("message_deleted")) => {
                (What::Recall, event.previous_message.as_deref()?.clone())
            }
            _ => return None,
        };
        let own = message.bot_id.is_some() || message.user.as_deref().is_none_or(|user| user == self.me.user);
        if own {
            return None;
        }
        let ts = event.deleted_ts.clone().or_else(|| message.ts.clone())?;
        let happened = || event.event_ts.clone().or_else(|| event.ts.clone());
        let (at, key) = match what {
            What::Message => (ts.clone(), format!("m{channel}:{ts}")),
            What::Edit => {
                let at = message.edited.as_ref().and_then(|edited| edited.ts.clone()).or_else(happened)?;
                let key = format!("e{channel}:{ts}:{at}");
                (at, key)
            }
            What::Recall => (happened().unwrap_or_else(|| ts.clone()), format!("d{channel}:{ts}")),
        };
        let teams = [&message.user_team, &message.team, &event.user_team, &event.team];
        let team = teams.into_iter().flatten().next().cloned().or_else(|| team.map(str::to_owned));
        let before = event.previous_message.as_deref();
        let named = [Some(&message), before].into_iter().flatten().any(|message| mentions(message, self.me));
        Some(SlackEvent { key: EventKey(key), channel, private, what, message, at, ts, team, named })
    }

    /// Converts an event to an [`Inbound`]; `None` for one without content.
    pub(super) fn decode(&self, heard: &SlackEvent, context: &DecodeContext) -> Option<Inbound> {
        let SlackEvent { message, channel, private, .. } = heard;
        let read = parse_text(&message.own_text(), &self.me.user, &context.names);
        let thread = message.thread_ts.as_deref().filter(|thread| *thread != heard.ts);
        let pieces = PieceContext { me: self.me, names: &context.names };
        let pointed = match heard.what {
            What::Message => pointed(message, channel, thread, pieces),
            What::Edit | What::Recall => Vec::new(),
        };
        let kind = match heard.what {
            What::Message => {
                let attachments: Vec<Attachment> = message.files.iter().filter_map(attachment).collect();
                let only = pointed.iter().all(|piece| piece.kind == PointedKind::Opening);
                if read.text.is_empty() && attachments.is_empty() && only && !read.mentioned {
                    return None;
                }
                InboundKind::Message { text: read.text, attachments, album: None }
            }
            What::Edit => InboundKind::Edit { text: read.text },
            What::Recall => InboundKind::Recall,
        };
        let sender = message.user.clone()?;
        let name = context.names.get(&sender).cloned().unwrap_or_else(|| sender.clone());
        let ours = context.ours || message.parent_user_id.as_deref() == Some(&self.me.user);
        let spoken_to = heard.named || (ours && thread.is_some());
        Some(Inbound {
            key: heard.key.clone(),
            address: self.address(channel, *private, thread, &heard.ts),
            private: *private,
            message: heard.ts.clone(),
            reply_to: thread.map(str::to_owned),
            sender: Sender { id: sender, name, language: None },
            addressed: *private || !self.require_mention || spoken_to,
            at: millis(&heard.at),
            pointed,
            hint: Some(self.hint(heard.team.as_deref())),
            kind,
        })
    }

    /// Returns the address. A thread is a topic, and each message in a channel begins one. Direct messages are one
    /// conversation, except in threads that a user begins.
    fn address(&self, channel: &str, private: bool, thread: Option<&str>, ts: &str) -> Address {
        self.place(channel, thread.or_else(|| (!private).then_some(ts)))
    }

    pub(super) fn place(&self, channel: &str, topic: Option<&str>) -> Address {
        Address {
            account: self.account.to_owned(),
            chat: channel.to_owned(),
            topic: topic.map(str::to_owned),
        }
    }

    pub(super) fn hint(&self, team: Option<&str>) -> Value {
        json!({"team": team.unwrap_or(&self.me.team)})
    }

    /// Decodes a pressed button. `now` is in milliseconds since 1970.
    pub(super) fn press(&self, pressed: &Actions, now: i64) -> Option<Inbound> {
        let action = pressed.actions.iter().find(|action| action.action_id.starts_with(ACTION))?;
        let container = pressed.container.as_ref().filter(|_| pressed.kind == "block_actions")?;
        let (channel, ts) = (container.channel_id.as_deref()?, container.message_ts.as_deref()?);
        let user = Some(&pressed.user.id).filter(|id| !id.is_empty())?;
        let thread = container.thread_ts.as_deref();
        let thread =
            thread.or_else(|| pressed.message.as_ref()?.thread_ts.as_deref()).filter(|thread| *thread != ts);
        let private = channel.starts_with('D');
        let team = pressed.user.team_id.as_deref().or_else(|| Some(pressed.team.as_ref()?.id.as_str()));
        let at = action.action_ts.as_deref().unwrap_or_default();
        Some(Inbound {
            key: EventKey(format!("p{channel}:{ts}:{at}:{user}")),
            // A message of the bot outside threads answers a slash command. It begins no topic, and the message
            // identifies the conversation.
            address: self.place(channel, thread),
            private,
            message: ts.to_owned(),
            reply_to: thread.map(str::to_owned),
            sender: Sender {
                id: user.clone(),
                name: pressed.user.name.clone().unwrap_or_else(|| user.clone()),
                language: None,
            },
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: Some(self.hint(team)),
            kind: InboundKind::Press { action: action.value.clone()? },
        })
    }

    /// Decodes a slash command. `now` is in milliseconds since 1970.
    pub(super) fn slash(&self, slash: &Slash, now: i64) -> Option<Inbound> {
        let (channel, user) = (slash.channel_id.as_deref()?, slash.user_id.clone()?);
        let trigger = slash.trigger_id.as_deref()?;
        let private = channel.starts_with('D');
        let text = typed(&slash.command, slash.text.trim(), self.commands);
        let text = parse_text(&text, &self.me.user, &HashMap::new()).text;
        let mut hint = self.hint(slash.team_id.as_deref());
        if let Some(url) = slash.response_url.as_deref().filter(|url| url.len() <= MAX_URL_BYTES) {
            hint[RESPOND] = url.into();
        }
        Some(Inbound {
            key: EventKey(format!("c{trigger}")),
            // Without a message there is no thread, so the answer is sent to the channel.
            address: self.place(channel, None),
            private,
            message: format!("c{trigger}"),
            reply_to: None,
            sender: Sender {
                id: user.clone(),
                name: slash.user_name.clone().unwrap_or(user),
                language: None,
            },
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: Some(hint),
            kind: InboundKind::Message { text, attachments: Vec::new(), album: None },
        })
    }
}

fn changed(event: &SlackMessage) -> Option<(What, SlackMessage)> {
    let now = event.message.as_deref()?.clone();
    let before = event.previous_message.as_deref();
    // A deleted message with a thread becomes a tombstone.
    if now.subtype.as_deref() == Some("tombstone") {
        return Some((What::Recall, SlackMessage { ts: now.ts, ..before?.clone() }));
    }
    // An added preview is also reported as an edit, but the text stays the same.
    let same = before.is_some_and(|before| before.text == now.text);
    (!same).then_some((What::Edit, now))
}

/// Returns a slash command as typed text. `/status` and `/pudu status` are equivalent.
fn typed(command: &str, words: &str, commands: &[ChatCommand]) -> String {
    let own = command.trim_start_matches('/');
    if commands.iter().any(|known| known.name == own) {
        return format!("/{own} {words}").trim_end().to_owned();
    }
    if words.is_empty() {
        return "/help".to_owned();
    }
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let name = first.trim_start_matches('/');
    let means =
        |known: &ChatCommand| known.name == name && (!known.argument.is_empty() || rest.trim().is_empty());
    if commands.iter().any(means) {
        format!("/{name} {rest}").trim_end().to_owned()
    } else {
        words.to_owned()
    }
}

/// Returns a file, unless Slack has deleted it.
pub(super) fn attachment(file: &SlackFile) -> Option<Attachment> {
    if matches!(file.mode.as_deref(), Some("tombstone" | "hidden_by_limit")) {
        return None;
    }
    let needs_lookup = file.file_access.as_deref() == Some("check_file_info");
    let url = file.url_private_download.as_ref().or(file.url_private.as_ref()).filter(|_| !needs_lookup);
    let handle = url.cloned().or_else(|| (!file.id.is_empty()).then(|| format!("{BY_ID}{}", file.id)))?;
    let name = [&file.name, &file.title].into_iter().flatten().find(|name| !name.is_empty());
    Some(Attachment { handle, name: name.cloned().unwrap_or_else(|| "file".to_owned()), size: file.size })
}

/// Converts a timestamp to milliseconds since 1970.
pub(super) fn millis(ts: &str) -> i64 {
    let (seconds, rest) = ts.split_once('.').unwrap_or((ts, ""));
    let millis = format!("{rest:0<3}").get(..3).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    seconds.parse::<i64>().unwrap_or(0).saturating_mul(1000).saturating_add(millis)
}

#[cfg(test)]
mod tests;
