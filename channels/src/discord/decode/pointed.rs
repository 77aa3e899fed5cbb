//! Content that a message refers to: the message it replies to, forwarded messages, previews, and links to messages.
//! Content missing from the event is fetched from Discord, but only if the sender may read it.

use super::{
    super::{
        DiscordChannel,
        account_state::{ApiRoute, DiscordAccountState},
        facts::DiscordError,
        permissions::may_read,
        text::{name, parse_text},
        wire::{DiscordMessage, DiscordPoll, DiscordUser, Embed, Passed, Sticker, id_time},
    },
    DiscordDecoder, answered, file,
};
use crate::{
    Inbound, PointedAt, PointedKind, RecentMessages, SendError, pointed::lines, transport::CallError,
};
use pudu_net::reqwest::Method;
use serde_json::Value;
use url::Url;

/// Maximum number of links of one message that are followed.
const MAX_LINKS: usize = 5;
/// Maximum number of components of one message that are read.
const MAX_COMPONENTS: usize = 200;
/// Hosts in links to messages.
const HOSTS: [&str; 6] = [
    "discord.com",
    "www.discord.com",
    "ptb.discord.com",
    "canary.discord.com",
    "discordapp.com",
    "ptb.discordapp.com",
];
/// Problem text for a message that the sender may not read.
const FOREIGN_CHANNEL: &str = "not read: the sender has no access to that channel";

/// Location of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::discord) struct DiscordMessageLink {
    /// The server; `None` for the server of the referring message.
    guild: Option<String>,
    channel: String,
    message: String,
}

impl DiscordDecoder<'_> {
    /// Returns the content that a message refers to. `parent` is the channel of the message's thread.
    pub(in crate::discord) fn pointed(
        &self,
        message: &DiscordMessage,
        parent: Option<&str>,
    ) -> Vec<PointedAt> {
        let opening = parent.map(|parent| DiscordMessageLink::here(parent, &message.channel_id));
        let opening = opening.map(|link| PointedAt::unread(PointedKind::Opening, link.reference()));
        let answered = answered(message).map(|id| match &message.referenced_message {
            Some(answered) => self.piece(PointedKind::Reply, answered),
            None => {
                let reference = message.message_reference.as_ref();
                let channel = reference.and_then(|reference| reference.channel_id.as_deref());
                let link = DiscordMessageLink::here(channel.unwrap_or(&message.channel_id), &id);
                PointedAt::unread(PointedKind::Reply, link.reference())
            }
        });
        let forwards = message.message_snapshots.iter().map(|passed| self.forward(message, &passed.message));
        let embeds = message.embeds.iter().map(|embed| self.embed(embed, &message.mentions));
        let links = links(&message.content).into_iter().take(MAX_LINKS);
        let links = links.map(|link| PointedAt::unread(PointedKind::Link, link.reference()));
        let found = opening.into_iter().chain(answered).chain(forwards).chain(embeds).chain(links);
        found.filter(|piece| !piece.is_empty()).collect()
    }

    /// Returns a message of any author as one piece, with its files and the text of its cards.
    pub(in crate::discord) fn piece(&self, kind: PointedKind, message: &DiscordMessage) -> PointedAt {
        let embeds = message.embeds.iter().map(|embed| self.words_of(embed, &message.mentions));
        let passed = message.message_snapshots.iter().map(|passed| self.passed(&passed.message));
        let poll = message.poll.as_ref().map(poll);
        let own = [self.read(&message.content, &message.mentions), stickers(&message.sticker_items)];
        let more = [poll.unwrap_or_default(), components(&message.components)];
        let text = lines(own.into_iter().chain(more).chain(passed).chain(embeds));
        let passed_files = message.message_snapshots.iter().flat_map(|passed| &passed.message.attachments);
        let files = message.attachments.iter().chain(passed_files);
        let author = message.author.as_ref();
        let nick = message.member.as_ref().and_then(|member| member.nick.as_deref());
        PointedAt {
            own: author.is_some_and(|author| author.id == self.me.user),
            at: id_time(&message.id),
            ..PointedAt::of_text(kind, &text)
                .by(nick.or(author.map(name)))
                .with_files(files.map(|one| file(message, one)))
        }
    }

    /// Returns a forwarded message. Forwards do not contain the author.
    fn forward(&self, message: &DiscordMessage, passed: &Passed) -> PointedAt {
        let forward = PointedAt::of_text(PointedKind::Forward, &self.passed(passed));
        let forward = forward.with_files(passed.attachments.iter().map(|one| file(message, one)));
        let problem = forward.is_empty().then(|| "Discord does not show its content to bots".to_owned());
        PointedAt { problem, ..forward }
    }

    fn passed(&self, passed: &Passed) -> String {
        let embeds = passed.embeds.iter().map(|embed| self.words_of(embed, &passed.mentions));
        let own = [self.read(&passed.content, &passed.mentions), stickers(&passed.sticker_items)];
        lines(own.into_iter().chain([components(&passed.components)]).chain(embeds))
    }

    fn embed(&self, embed: &Embed, people: &[DiscordUser]) -> PointedAt {
        let piece = PointedAt::of_text(PointedKind::Embed, &self.words_of(embed, people));
        piece.by(Some(&embed.author.name)).from(Some(&embed.provider.name))
    }

    fn words_of(&self, embed: &Embed, people: &[DiscordUser]) -> String {
        let title = match (embed.title.trim(), embed.url.trim()) {
            ("", url) => url.to_owned(),
            (title, "") => title.to_owned(),
            (title, url) => format!("{title} ({url})"),
        };
        let fields = embed.fields.iter().map(|field| format!("{}: {}", field.name, field.value));
        let image = Some(embed.image.url.trim()).filter(|url| !url.is_empty());
        let image = image.map(|url| format!("[image: {url}]"));
        let parts = [title, embed.description.clone()].into_iter().chain(fields).chain(image);
        self.read(&lines(parts.chain([embed.footer.text.clone()])), people)
    }

    /// Parses a text that is not meant for the bot. Mentions of the bot remain in it.
    fn read(&self, text: &str, people: &[DiscordUser]) -> String {
        parse_text(text, "", people, self.places).text
    }
}

/// Returns the text of a poll, with its votes if there are any.
pub(in crate::discord) fn poll(poll: &DiscordPoll) -> String {
    let votes =
        |id: u64| poll.results.answer_counts.iter().find(|count| count.id == id).map(|count| count.count);
    let answers = poll.answers.iter().map(|answer| match votes(answer.answer_id) {
        Some(votes) if votes > 0 => format!("{}: {votes}", answer.poll_media.text),
        _ => answer.poll_media.text.clone(),
    });
    format!("[Poll: {} ({})]", poll.question.text, answers.collect::<Vec<_>>().join(" / "))
}

/// Returns the names of stickers.
pub(in crate::discord) fn stickers(stickers: &[Sticker]) -> String {
    lines(stickers.iter().map(|sticker| format!("[sticker: {}]", sticker.name)))
}

/// Returns the text of components in containers and sections.
fn components(components: &[Value]) -> String {
    let (mut found, mut left) = (Vec::new(), components.iter().rev().collect::<Vec<_>>());
    for _ in 0..MAX_COMPONENTS {
        let Some(component) = left.pop() else { break };
        found.extend(component["content"].as_str());
        left.extend(component["components"].as_array().into_iter().flatten().rev());
    }
    lines(found)
}

impl DiscordMessageLink {
    fn here(channel: &str, message: &str) -> Self {
        Self { guild: None, channel: channel.to_owned(), message: message.to_owned() }
    }

    /// Parses the URL of a message, `https://discord.com/channels/1/2/3`.
    fn from_url(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| url.scheme() == "https")?;
        let mut path = url.path_segments().filter(|_| HOSTS.contains(&url.host_str().unwrap_or_default()))?;
        let (first, guild, channel, message) = (path.next()?, path.next()?, path.next()?, path.next()?);
        let id = |id: &str| (1..=20).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
        let fits = first == "channels" && (guild == "@me" || id(guild)) && id(channel) && id(message);
        fits.then(|| Self { guild: Some(guild.to_owned()), ..Self::here(channel, message) })
    }

    fn reference(&self) -> String {
        format!("{}/{}/{}", self.guild.as_deref().unwrap_or_default(), self.channel, self.message)
    }

    fn from_reference(reference: &str) -> Option<Self> {
        let mut parts = reference.split('/');
        let guild = Some(parts.next()?).filter(|guild| !guild.is_empty()).map(str::to_owned);
        Some(Self { guild, ..Self::here(parts.next()?, parts.next()?) })
    }
}

/// Returns the messages that a text links to, each once.
fn links(text: &str) -> Vec<DiscordMessageLink> {
    let mut found: Vec<DiscordMessageLink> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '(' | ')' | '|' | '"')) {
        let link = DiscordMessageLink::from_url(word).filter(|link| !found.contains(link));
        found.extend(link);
    }
    found
}

impl DiscordChannel {
    /// Fetches content that an event does not contain.
    pub(in crate::discord) async fn read_pointed(
        &self,
        inbound: &Inbound,
        piece: &PointedAt,
    ) -> Result<Vec<PointedAt>, SendError> {
        let state = &self.handler.state;
        let link = piece.reference.as_deref().and_then(DiscordMessageLink::from_reference);
        let Some(link) = link else { return Ok(Vec::new()) };
        let here = [Some(&inbound.address.chat), inbound.address.topic.as_ref()];
        let here = here.into_iter().flatten().any(|channel| *channel == link.channel);
        if !here && !self.listens(&link, inbound, state).await? {
            return Ok(vec![PointedAt::unreadable(piece.kind, FOREIGN_CHANNEL)]);
        }
        let message = match (message(state, &link.channel, &link.message).await, piece.kind) {
            // A forum post is in its own thread; a thread created without a message has no opening message.
            (Err(CallError::Gone(_) | CallError::Refused(_)), PointedKind::Opening) => {
                match message(state, &link.message, &link.message).await {
                    Err(CallError::Gone(_) | CallError::Refused(_)) => return Ok(Vec::new()),
                    message => message?,
                }
            }
            (message, _) => message?,
        };
        let me = state.me().await?;
        let read = self.handler.decoder(me).piece(piece.kind, &message);
        let name = state.guilds.name(&link.channel).map(|name| format!("#{name}"));
        Ok(vec![read.from(name.as_deref().filter(|_| !here))])
    }

    /// Reads recent messages of a thread, or of a channel outside its threads.
    pub(in crate::discord) async fn read_recent(
        &self,
        inbound: &Inbound,
        wanted: RecentMessages<'_>,
    ) -> Result<Vec<PointedAt>, SendError> {
        let state = &self.handler.state;
        // The question that begins a thread is in the channel.
        let thread = inbound.address.topic.as_ref().filter(|topic| **topic != inbound.message);
        let channel = thread.unwrap_or(&inbound.address.chat);
        let found = state.history_before(channel, &inbound.message).await?;
        let fits = |message: &&DiscordMessage| {
            let at = id_time(&message.id).unwrap_or_default();
            at >= wanted.since && !wanted.except.contains(&message.id) && Some(&message.id) != thread
        };
        let found: Vec<&DiscordMessage> = found.iter().filter(fits).collect();
        let me = state.me().await?;
        let decoder = self.handler.decoder(me);
        let pieces = found.iter().skip(found.len().saturating_sub(wanted.max));
        let person = |message: &DiscordMessage| {
            let author = message.author.as_ref().filter(|author| !author.bot && message.webhook_id.is_none());
            author.map(|author| author.id.clone())
        };
        let pieces = pieces.map(|message| PointedAt {
            author_id: person(message),
            ..decoder.piece(PointedKind::Recent, message)
        });
        Ok(pieces.filter(|piece| !piece.is_empty()).collect())
    }

    /// Returns whether the bot listens on a server and the sender may read the channel there.
    async fn listens(
        &self,
        link: &DiscordMessageLink,
        inbound: &Inbound,
        state: &DiscordAccountState,
    ) -> Result<bool, DiscordError> {
        let listed =
            |guild: &String| self.config.rules.guilds.as_ref().is_none_or(|guilds| guilds.contains(guild));
        if link.guild.as_deref() == Some("@me") || link.guild.as_ref().is_some_and(|guild| !listed(guild)) {
            return Ok(false);
        }
        match may_read(state, &link.channel, &inbound.sender.id).await {
            Ok(may) => Ok(may.is_some_and(|guild| listed(&guild))),
            // The bot cannot see the channel or the user.
            Err(CallError::Gone(_) | CallError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

async fn message(
    state: &DiscordAccountState,
    channel: &str,
    message: &str,
) -> Result<DiscordMessage, DiscordError> {
    let path = ["channels", channel, "messages", message];
    state.call(ApiRoute::Read, Method::GET, &path, &Value::Null).await
}

#[cfg(test)]
mod tests;
