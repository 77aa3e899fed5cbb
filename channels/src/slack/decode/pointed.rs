//! Content that a message refers to: shared messages, cards, previews and links, from its event or requested from
//! Slack. A message of another channel is read only for users who are members of that channel.

use super::{
    super::{
        account_state::SlackAccountState,
        blocks,
        facts::SlackError,
        text::parse_text,
        wire::{HistoryPage, MembersPage, SlackAttachment, SlackIdentity, SlackMessage},
    },
    attachment, millis,
};
use crate::{
    Attachment, Inbound, PointedAt, PointedKind, RecentMessages, SendError, pointed::lines,
    transport::CallError,
};
use serde_json::Value;
use std::collections::HashMap;
use url::Url;

/// Maximum number of links of one message that are followed.
const MAX_LINKS: usize = 5;
/// Maximum number of pages of a channel's members to read, and the number of members per page.
const MEMBER_PAGES: usize = 20;
const MEMBERS: &str = "1000";
/// Number of messages per page of a history, and maximum number of pages of a thread.
const RECENT: &str = "200";
const RECENT_PAGES: usize = 5;
/// Subtypes of messages with content.
const SAID: [&str; 4] = ["bot_message", "file_share", "me_message", "thread_broadcast"];
/// Problem text for a message in a channel that the sender has not joined.
const FOREIGN_CHANNEL: &str = "not read: the sender is not a member of that channel";

/// Location of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SlackMessageLink {
    channel: String,
    ts: String,
    thread: Option<String>,
}

/// The bot, and the users whose names replace ids.
#[derive(Clone, Copy, Debug)]
pub(in crate::slack) struct PieceContext<'a> {
    pub(in crate::slack) me: &'a SlackIdentity,
    /// Names of users, by id.
    pub(in crate::slack) names: &'a HashMap<String, String>,
}

/// Returns the content that a message refers to. `thread` is the message's thread.
pub(in crate::slack) fn pointed(
    message: &SlackMessage,
    channel: &str,
    thread: Option<&str>,
    context: PieceContext<'_>,
) -> Vec<PointedAt> {
    let opening = thread.map(|thread| {
        let link = SlackMessageLink { channel: channel.to_owned(), ts: thread.to_owned(), thread: None };
        PointedAt::unread(PointedKind::Opening, link.reference())
    });
    let cards = message.attachments.iter().map(|card| context.card(card));
    let shown = |link: &SlackMessageLink| message.attachments.iter().any(|card| card.shows(link));
    let links = links(&message.text).into_iter().filter(|link| !shown(link)).take(MAX_LINKS);
    let links = links.map(|link| PointedAt::unread(PointedKind::Link, link.reference()));
    opening.into_iter().chain(cards).chain(links).filter(|piece| !piece.is_empty()).collect()
}

impl PieceContext<'_> {
    fn card(&self, card: &SlackAttachment) -> PointedAt {
        let kind = match card {
            SlackAttachment { is_share: true, .. } => PointedKind::Forward,
            SlackAttachment { is_msg_unfurl: true, .. } => PointedKind::Link,
            SlackAttachment { from_url: Some(_), .. } | SlackAttachment { service_name: Some(_), .. } => {
                PointedKind::Embed
            }
            _ => PointedKind::Card,
        };
        let author =
            [&card.author_name, &card.author_subname].into_iter().flatten().find(|name| !name.is_empty());
        let channel = card.channel_name.as_deref().map(|name| format!("#{name}"));
        let origin = channel.as_deref().or(card.service_name.as_deref()).or(card.from_url.as_deref());
        let own = card.author_id.as_ref().is_some_and(|id| *id == self.me.user)
            || card.bot_id.as_ref().is_some_and(|id| !id.is_empty() && *id == self.me.bot);
        PointedAt { own, at: time(&card.ts), ..PointedAt::of_text(kind, &self.words_of(card)) }
            .by(author.map(String::as_str))
            .from(origin)
            .with_files(card.files.iter().filter_map(attachment))
    }

    fn words_of(&self, card: &SlackAttachment) -> String {
        let title = match (card.title.trim(), card.title_link.as_deref()) {
            ("", _) => String::new(),
            (title, Some(link)) if !link.is_empty() => format!("{title} ({link})"),
            (title, _) => title.to_owned(),
        };
        let inner = card.message_blocks.iter().flat_map(|inner| {
            inner.pointer("/message/blocks").and_then(Value::as_array).into_iter().flatten().cloned()
        });
        let inner: Vec<Value> = inner.chain(card.blocks.iter().cloned()).collect();
        let body = if card.text.trim().is_empty() { blocks::text(&inner) } else { card.text.clone() };
        let fields = card.fields.iter().map(|field| match field.title.trim() {
            "" => field.value.clone(),
            title => format!("{title}: {}", field.value),
        });
        let image =
            card.image_url.as_deref().filter(|url| !url.is_empty()).map(|url| format!("[image: {url}]"));
        let parts = [card.pretext.clone(), title, body].into_iter().chain(fields).chain(image);
        let whole = lines(parts.chain([card.footer.clone()]));
        self.read(if whole.is_empty() { &card.fallback } else { &whole })
    }

    /// Returns a text with names instead of ids.
    fn read(&self, text: &str) -> String {
        parse_text(text, "", self.names).text
    }

    /// Returns a message as one piece, with the text and files of its cards.
    fn message(&self, kind: PointedKind, message: &SlackMessage) -> PointedAt {
        let text = match message.text.trim() {
            "" => blocks::text(&message.blocks),
            text => text.to_owned(),
        };
        let cards = message.attachments.iter().map(|card| self.words_of(card));
        let all = lines(std::iter::once(self.read(&text)).chain(cards));
        let files = message.files.iter().chain(message.attachments.iter().flat_map(|card| &card.files));
        let files: Vec<Attachment> = files.filter_map(attachment).collect();
        let app = message.username.as_deref().or(message.bot_profile.name.as_deref());
        let person = message.user.as_deref().map(|id| self.names.get(id).map_or(id, String::as_str));
        let author = if message.bot_id.is_some() { app.or(person) } else { person.or(app) };
        let at = message.ts.as_deref().map(millis).filter(|at| *at > 0);
        PointedAt { own: message.is_by(self.me), at, ..PointedAt::of_text(kind, &all) }
            .by(author)
            .with_files(files)
    }
}

impl SlackAttachment {
    fn shows(&self, link: &SlackMessageLink) -> bool {
        self.channel_id.as_ref() == Some(&link.channel) && self.ts.as_str() == Some(&link.ts)
    }
}

/// Converts a timestamp, sent as text or as a number, to milliseconds since 1970.
fn time(ts: &Value) -> Option<i64> {
    let at = match ts {
        Value::String(text) => millis(text),
        other => other.as_i64()?.saturating_mul(1000),
    };
    (at > 0).then_some(at)
}

impl SlackMessageLink {
    /// Parses the URL of a message, `…/archives/C1/p1750000000000100`.
    fn from_url(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let mut path = url.path_segments()?.skip_while(|part| *part != "archives").skip(1);
        let (channel, digits) = (path.next()?, path.next()?.strip_prefix('p')?);
        let plain = channel.len() > 1 && channel.chars().all(|c| c.is_ascii_alphanumeric());
        let micros = (digits.len() > 6 && digits.len() < 20).then_some(digits)?;
        if !plain || !micros.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (seconds, rest) = micros.split_at(micros.len() - 6);
        let ts = format!("{seconds}.{rest}");
        let thread = url.query_pairs().find(|(name, _)| name == "thread_ts").map(|(_, ts)| ts.into_owned());
        let number = |ts: &String| ts.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        Some(Self {
            channel: channel.to_owned(),
            thread: thread.filter(|thread| *thread != ts).filter(number),
            ts,
        })
    }

    fn reference(&self) -> String {
        format!("{}:{}:{}", self.channel, self.ts, self.thread.as_deref().unwrap_or_default())
    }

    fn from_reference(reference: &str) -> Option<Self> {
        let mut parts = reference.split(':');
        let (channel, ts) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let thread = parts.next().filter(|thread| !thread.is_empty()).map(str::to_owned);
        Some(Self { channel, ts, thread })
    }
}

/// Returns the messages that a text links to, each once.
fn links(text: &str) -> Vec<SlackMessageLink> {
    let mut found: Vec<SlackMessageLink> = Vec::new();
    for part in text.split('<').skip(1) {
        let url = part.split(['>', '|']).next().unwrap_or_default().replace("&amp;", "&");
        let link = SlackMessageLink::from_url(&url).filter(|link| !found.contains(link));
        found.extend(link);
    }
    found
}

/// Fetches content that an event does not contain.
pub(in crate::slack) async fn look_up(
    state: &SlackAccountState,
    inbound: &Inbound,
    piece: &PointedAt,
) -> Result<Vec<PointedAt>, SendError> {
    let link = piece.reference.as_deref().and_then(SlackMessageLink::from_reference);
    let Some(link) = link else { return Ok(Vec::new()) };
    let elsewhere = link.channel != inbound.address.chat;
    if elsewhere && !is_member(state, &link.channel, &inbound.sender.id).await? {
        return Ok(vec![PointedAt::unreadable(piece.kind, FOREIGN_CHANNEL)]);
    }
    let Some(message) = message(state, &link).await? else {
        return Err(SendError::Refused("the message does not exist".to_owned()));
    };
    let me = state.me().await?;
    let people: Vec<String> = message.user.iter().cloned().collect();
    let names = state.people.names(&state.client, &people).await;
    let read = PieceContext { me, names: &names }.message(piece.kind, &message);
    let origin = elsewhere.then(|| format!("channel {}", link.channel));
    Ok(vec![read.from(origin.as_deref())])
}

/// Reads recent messages of a thread, or of a channel outside its threads.
pub(in crate::slack) async fn recent(
    state: &SlackAccountState,
    inbound: &Inbound,
    wanted: RecentMessages<'_>,
) -> Result<Vec<PointedAt>, SendError> {
    let chat = inbound.address.chat.as_str();
    // The first message of a thread is in the channel.
    let thread = inbound.address.topic.as_deref().filter(|topic| *topic != inbound.message);
    let oldest = format!("{}.{:03}000", wanted.since.div_euclid(1000), wanted.since.rem_euclid(1000));
    let window = [("channel", chat), ("oldest", oldest.as_str()), ("limit", RECENT)];
    let (method, rest) = match thread {
        Some(thread) => ("conversations.replies", ("ts", thread)),
        None => ("conversations.history", ("latest", inbound.message.as_str())),
    };
    let params = [window.as_slice(), &[rest]].concat();
    // A channel is returned newest first, a thread oldest first: its newest messages are on its last page.
    let pages = if thread.is_some() { RECENT_PAGES } else { 1 };
    let mut found = state.client.history(method, &params, pages, |_| true).await?;
    let fits = |message: &SlackMessage| {
        let ts = message.ts.as_deref().unwrap_or_default();
        let plain = message.subtype.as_deref().is_none_or(|kind| SAID.contains(&kind));
        let inside = millis(ts) >= wanted.since && Some(ts) != thread && ts < inbound.message.as_str();
        plain && inside && !wanted.except.iter().any(|other| other == ts)
    };
    found.retain(fits);
    found.sort_by(|a, b| a.ts.cmp(&b.ts));
    found.drain(..found.len().saturating_sub(wanted.max));
    let mut people: Vec<String> = found.iter().filter_map(|message| message.user.clone()).collect();
    people.sort();
    people.dedup();
    let me = state.me().await?;
    let names = state.people.names(&state.client, &people).await;
    let context = PieceContext { me, names: &names };
    let piece = |message: &SlackMessage| PointedAt {
        author_id: message.user.clone().filter(|_| message.bot_id.is_none()),
        ..context.message(PointedKind::Recent, message)
    };
    Ok(found.iter().map(piece).collect())
}

/// Returns whether a user is a member of a channel. Works only if the bot is a member, too.
async fn is_member(state: &SlackAccountState, channel: &str, person: &str) -> Result<bool, SlackError> {
    let mut cursor = String::new();
    for _ in 0..MEMBER_PAGES {
        let params = [("channel", channel), ("limit", MEMBERS), ("cursor", cursor.as_str())];
        let page: MembersPage = state.client.read("conversations.members", &params).await?;
        if page.members.iter().any(|member| member == person) {
            return Ok(true);
        }
        cursor = page.response_metadata.next_cursor;
        if cursor.is_empty() {
            return Ok(false);
        }
    }
    Err(CallError::Refused("the channel has too many members to search for the sender".to_owned()))
}

async fn message(
    state: &SlackAccountState,
    link: &SlackMessageLink,
) -> Result<Option<SlackMessage>, SlackError> {
    let SlackMessageLink { channel, ts, thread } = link;
    let window = [("latest", ts.as_str()), ("oldest", ts.as_str()), ("inclusive", "true"), ("limit", "2")];
    let place = [("channel", channel.as_str()), ("ts", thread.as_deref().unwrap_or_default())];
    let (method, params) = match thread {
        Some(_) => ("conversations.replies", [place.as_slice(), &window].concat()),
        None => ("conversations.history", [&place[..1], &window].concat()),
    };
    let page: HistoryPage = state.client.read(method, &params).await?;
    Ok(page.messages.into_iter().find(|message| message.ts.as_ref() == Some(ts)))
}

#[cfg(test)]
mod tests;
