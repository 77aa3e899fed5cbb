//! The user that a message belongs to: the person who speaks, or the room.

use pudu_channels::{Address, Inbound, ReplyTarget};

/// The sender of a message to a bot, and where it was sent.
#[derive(Clone, Copy)]
pub(super) struct SpeakerPlace<'s> {
    pub(super) address: &'s Address,
    pub(super) person: &'s str,
    /// Whether only the person and the bot are in the chat.
    pub(super) private: bool,
}

impl<'s> From<&'s Inbound> for SpeakerPlace<'s> {
    fn from(Inbound { address, sender, private, .. }: &'s Inbound) -> Self {
        Self { address, person: &sender.id, private: *private }
    }
}

impl<'s> From<&'s ReplyTarget> for SpeakerPlace<'s> {
    fn from(ReplyTarget { address, sender, private, .. }: &'s ReplyTarget) -> Self {
        Self { address, person: sender, private: *private }
    }
}
