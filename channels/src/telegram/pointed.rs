//! Content that a message refers to. Telegram includes it in the message: a bot cannot read other messages.

use super::{
    media::{attachments, described},
    wire::{ExternalReply, MessageOrigin, TelegramIdentity, TelegramMessage, TelegramUser},
};
use crate::{PointedAt, PointedKind, pointed::lines};

/// Returns the content that a message refers to: the message it replies to, the part that the sender quoted, and the
/// whole content of a forward.
pub(super) fn pointed(message: &TelegramMessage, me: &TelegramIdentity) -> Vec<PointedAt> {
    let answered = message.answered().map(|answered| reply(answered, me));
    let external = message.external_reply.as_ref().map(|external| external_reply(external, me));
    let source = answered.as_ref().or(external.as_ref());
    let quote = message.quote.as_ref().map(|quote| {
        let PointedAt { author, own, at, origin, .. } = source.cloned().unwrap_or_default();
        PointedAt { author, own, at, origin, ..PointedAt::of_text(PointedKind::Quote, &quote.text) }
    });
    let forward = message.forward_origin.as_ref().filter(|_| message.is_passed_on()).map(|origin| {
        let forward = origin.piece(PointedKind::Forward, &text(message), me);
        let forward = forward.with_files(attachments(&message.content));
        let problem = forward.is_empty().then(|| "Telegram does not show its content to bots".to_owned());
        PointedAt { problem, ..forward }
    });
    let all = [answered, external, quote, forward];
    all.into_iter().flatten().filter(|piece| !piece.is_empty()).collect()
}

fn reply(answered: &TelegramMessage, me: &TelegramIdentity) -> PointedAt {
    let author = match &answered.sender_chat {
        Some(chat) => chat.title.clone(),
        None => answered.from.as_ref().map(TelegramUser::full_name),
    };
    let origin = answered.forward_origin.as_ref().and_then(MessageOrigin::author);
    PointedAt {
        own: answered.from.as_ref().is_some_and(|from| from.id == me.id),
        at: millis(answered.date),
        ..PointedAt::of_text(PointedKind::Reply, &text(answered))
            .by(author.as_deref())
            .from(origin.map(|origin| format!("forwarded from {origin}")).as_deref())
            .with_files(attachments(&answered.content))
    }
}

fn external_reply(external: &ExternalReply, me: &TelegramIdentity) -> PointedAt {
    let ExternalReply { origin, chat, content } = external;
    let chat = chat.as_ref().and_then(|chat| chat.title.as_deref());
    let piece = origin.piece(PointedKind::Reply, &described(content).unwrap_or_default(), me);
    piece.from(chat).with_files(attachments(content))
}

/// Returns the text of a message that is referred to: its text or caption, and a description of other content.
fn text(message: &TelegramMessage) -> String {
    let words = message.text.as_deref().or(message.caption.as_deref()).unwrap_or_default();
    lines([words, &described(&message.content).unwrap_or_default()])
}

impl MessageOrigin {
    fn piece(&self, kind: PointedKind, text: &str, me: &TelegramIdentity) -> PointedAt {
        PointedAt {
            own: self.sender_user.as_ref().is_some_and(|user| user.id == me.id),
            at: millis(self.date),
            ..PointedAt::of_text(kind, text).by(self.author().as_deref())
        }
    }

    fn author(&self) -> Option<String> {
        let chat = self.sender_chat.as_ref().or(self.chat.as_ref()).and_then(|chat| chat.title.clone());
        let user = self.sender_user.as_ref().map(TelegramUser::full_name);
        let name = user.or_else(|| self.sender_user_name.clone()).or(chat)?;
        let signature = self.author_signature.as_deref().map(|signature| format!("{name} ({signature})"));
        Some(signature.unwrap_or(name))
    }
}

fn millis(seconds: i64) -> Option<i64> {
    (seconds > 0).then(|| seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests;
