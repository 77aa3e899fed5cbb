//! Decodes events into [`Inbound`]s: pure, no IO, no clock.
//!
//! Deliberately absent: access decisions. They are made by id in one place for all platforms.

pub(super) mod pointed;

use super::{
    account_state::DiscordIdentity,
    deferred::{DiscordHint, interaction_time},
    download::handle,
    guild_cache::{CachedChannel, GuildCache},
    text::{name, parse_text},
    wire::{DiscordAttachment, DiscordMessage, Interaction, id_time},
};
use crate::{
    Address, Attachment, ChatCommand, EventKey, Inbound, InboundKind, PointedKind, Sender,
    name::clean_file_name, pointed::lines,
};
use pointed::{poll, stickers};
use std::collections::BTreeSet;

/// Types of ordinary messages and of replies; all other types are system messages.
const SAID: [u64; 2] = [0, 19];
/// Type of a message reference that forwards the message.
const PASSED_ON: u64 = 1;
/// Id of the modals with forms.
pub(super) const MODAL: &str = "pudu_form";
/// Maximum length of a thread's name, in characters.
const NAME: usize = 80;

/// Which messages a bot listens to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenRules {
    /// Servers that the bot listens to. Without a list, the bot listens to all servers and to private messages.
    pub guilds: Option<BTreeSet<String>>,
    /// Whether a message in a channel has to address the bot.
    pub require_mention: bool,
    /// Channels in which a message need not address the bot.
    pub open_channels: BTreeSet<String>,
    /// Whether each question in a channel begins a thread.
    pub threads: bool,
}

/// Event decoder of one bot.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiscordDecoder<'a> {
    pub(super) account: &'a str,
    pub(super) me: &'a DiscordIdentity,
    pub(super) rules: &'a ListenRules,
    pub(super) places: &'a GuildCache,
    pub(super) commands: &'a [ChatCommand],
}

impl DiscordDecoder<'_> {
    /// Decodes a message; `None` for one that does not concern the bot. `place` is the message's channel.
    pub(super) fn message(&self, message: &DiscordMessage, place: &CachedChannel) -> Option<Inbound> {
        let mut said = self.decode_message(message, place)?;
        let text = self.text(message);
        let attachments: Vec<Attachment> = message.attachments.iter().map(|one| file(message, one)).collect();
        let pointed = self.pointed(message, place.parent.as_deref());
        let only = pointed.iter().all(|piece| piece.kind == PointedKind::Opening);
        if text.is_empty() && attachments.is_empty() && only && !said.addressed {
            return None;
        }
        said.pointed = pointed;
        said.key = EventKey(format!("m{}", message.id));
        said.kind = InboundKind::Message { text, attachments, album: None };
        Some(said)
    }

    /// Decodes an edit of a message. Link previews that are added later cause the same event, but are not edits.
    pub(super) fn edit(&self, message: &DiscordMessage, place: &CachedChannel) -> Option<Inbound> {
        let edited = message.edited_timestamp.as_ref()?;
        let said = self.decode_message(message, place)?;
        let key = EventKey(format!("e{}:{edited}", message.id));
        Some(Inbound { key, kind: InboundKind::Edit { text: self.text(message) }, ..said })
    }

    fn decode_message(&self, message: &DiscordMessage, place: &CachedChannel) -> Option<Inbound> {
        let author = message.author.as_ref().filter(|author| !author.bot && author.id != self.me.user)?;
        if message.webhook_id.is_some()
            || !SAID.contains(&message.kind)
            || !self.listens(message.guild_id.as_deref())
        {
            return None;
        }
        let private = message.guild_id.is_none();
        let addressed = private || self.addressed(message, place);
        let mut address = self.address(&message.channel_id, place);
        let mut hint = None;
        if self.rules.threads && addressed && !private && place.threads && !self.commands(message) {
            // The thread that will begin here has the message's id.
            address.topic = Some(message.id.clone());
            hint = DiscordHint::Thread { name: self.title(message) }.to_json();
        }
        let nick = message.member.as_ref().and_then(|member| member.nick.clone());
        Some(Inbound {
            key: EventKey(String::new()),
            address,
            private,
            message: message.id.clone(),
            reply_to: answered(message),
            sender: Sender {
                id: author.id.clone(),
                name: nick.unwrap_or_else(|| name(author).to_owned()),
                language: None,
            },
            addressed,
            at: id_time(&message.id).unwrap_or_default(),
            pointed: Vec::new(),
            hint,
            kind: InboundKind::Recall,
        })
    }

    fn listens(&self, guild: Option<&str>) -> bool {
        match (&self.rules.guilds, guild) {
            (None, _) => true,
            (Some(guilds), Some(guild)) => guilds.contains(guild),
            (Some(_), None) => false,
        }
    }

    fn addressed(&self, message: &DiscordMessage, place: &CachedChannel) -> bool {
        let me = &self.me.user;
        let open = |channel: &String| self.rules.open_channels.contains(channel);
        let is_mentioned = message.mentions.iter().any(|person| person.id == *me)
            || message.mention_roles.iter().any(|role| self.places.is_own_role(role));
        let answers = message.referenced_message.as_ref().and_then(|answered| answered.author.as_ref());
        !self.rules.require_mention
            || is_mentioned
            || (answered(message).is_some() && answers.is_some_and(|author| author.id == *me))
            || place.owner.as_ref() == Some(me)
            || open(&message.channel_id)
            || place.parent.as_ref().is_some_and(open)
    }

    fn address(&self, channel: &str, place: &CachedChannel) -> Address {
        let account = self.account.to_owned();
        match &place.parent {
            Some(parent) => Address { account, chat: parent.clone(), topic: Some(channel.to_owned()) },
            None => Address { account, chat: channel.to_owned(), topic: None },
        }
    }

    /// Returns the sender's own text: the message's text, its poll, and the names of its stickers.
    fn text(&self, message: &DiscordMessage) -> String {
        let own = parse_text(&message.content, &self.me.user, &message.mentions, self.places).text;
        lines([own, message.poll.as_ref().map(poll).unwrap_or_default(), stickers(&message.sticker_items)])
    }

    /// Returns whether a message is one of the bot's commands, which need no thread.
    fn commands(&self, message: &DiscordMessage) -> bool {
        let text = self.text(message);
        let name = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
        name.is_some_and(|name| self.commands.iter().any(|command| command.name.eq_ignore_ascii_case(name)))
    }

    /// Returns a name for a thread, made of the first words of the question.
    fn title(&self, message: &DiscordMessage) -> String {
        let text = self.text(message);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("pudu").trim();
        if line.chars().count() <= NAME {
            return line.to_owned();
        }
        let cut: String = line.chars().take(NAME).collect();
        let shortened = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(words, _)| words);
        format!("{}…", shortened.trim_end())
    }

    /// Decodes a pressed button, an invoked command or a submitted form, without its answers. `now` is in milliseconds since 1970.
    pub(super) fn interaction(
        &self,
        interaction: &Interaction,
        place: &CachedChannel,
        now: i64,
    ) -> Option<Inbound> {
        let person = interaction
            .member
            .as_ref()
            .and_then(|member| member.user.as_deref())
            .or(interaction.user.as_ref())?;
        if person.bot || !self.listens(interaction.guild_id.as_deref()) {
            return None;
        }
        let (message, kind, hint) = match interaction.kind {
            2 => (
                interaction.id.clone(),
                self.command(interaction)?,
                DiscordHint::answer(&interaction.token, interaction_time(&interaction.id, now)).to_json(),
            ),
            3 => {
                let message = interaction.message.as_ref().filter(|message| self.is_own(message))?;
                let action = interaction.data.custom_id.clone();
                (message.id.clone(), InboundKind::Press { action }, None)
            }
            5 if interaction.data.custom_id == MODAL => {
                let message = interaction.message.as_ref().filter(|message| self.is_own(message))?;
                let nothing = InboundKind::Submit { text: String::new(), attachments: Vec::new() };
                (message.id.clone(), nothing, None)
            }
            _ => return None,
        };
        let nick = interaction.member.as_ref().and_then(|member| member.nick.clone());
        Some(Inbound {
            key: EventKey(format!("i{}", interaction.id)),
            address: self.address(interaction.channel_id.as_deref()?, place),
            private: interaction.guild_id.is_none(),
            message,
            reply_to: None,
            sender: Sender {
                id: person.id.clone(),
                name: nick.unwrap_or_else(|| name(person).to_owned()),
                language: interaction.locale.clone(),
            },
            addressed: true,
            at: id_time(&interaction.id).unwrap_or(now),
            pointed: Vec::new(),
            hint,
            kind,
        })
    }

    fn is_own(&self, message: &DiscordMessage) -> bool {
        let author = message.author.as_ref();
        author.is_some_and(|author| author.id == self.me.user)
            || message.application_id.as_ref() == Some(&self.me.application)
    }

    fn command(&self, interaction: &Interaction) -> Option<InboundKind> {
        if interaction.data.name.is_empty() {
            return None;
        }
        let typed = interaction.data.options.iter().filter_map(|option| option.value.as_str());
        let words: Vec<&str> = std::iter::once(interaction.data.name.as_str()).chain(typed).collect();
        Some(InboundKind::Message {
            text: format!("/{}", words.join(" ")),
            attachments: Vec::new(),
            album: None,
        })
    }
}

/// Returns the message that a message replies to. A forward is not a reply.
pub(super) fn answered(message: &DiscordMessage) -> Option<String> {
    let reference = message.message_reference.as_ref().filter(|reference| reference.kind != PASSED_ON)?;
    reference.message_id.clone()
}

/// Returns a file of a message, its own or a forwarded one.
pub(super) fn file(message: &DiscordMessage, file: &DiscordAttachment) -> Attachment {
    let name = match clean_file_name(&file.filename) {
        name if name.is_empty() => format!("file-{}", clean_file_name(&file.id)),
        name => name,
    };
    Attachment { handle: handle(&message.channel_id, &message.id, file), name, size: file.size }
}

#[cfg(test)]
mod tests;
