//! The port by which a channel has events stored.

use crate::{Address, BoxFuture, Inbound, KnownMessage, ReplyStoreError};

/// Receives events.
pub trait EventSink: Send + Sync {
    /// Keeps an event for good. Only after `Ok` may the platform get its acknowledgement.
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>>;

    /// Like [`Self::accept`], and keeps in the same write that the account's stream of events continues at `position`.
    /// An event sink that keeps no positions lets each stream start over.
    fn accept_at<'a>(
        &'a self,
        inbound: Inbound,
        _position: StreamPosition,
    ) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.accept(inbound)
    }

    /// Keeps an account's stream position: all events before it were accepted, or do not concern the bot.
    fn save_position<'a>(
        &'a self,
        _account: &'a str,
        _position: StreamPosition,
    ) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns an account's stream position, as it was kept last.
    fn position<'a>(
        &'a self,
        _account: &'a str,
    ) -> BoxFuture<'a, Result<Option<StreamPosition>, ReplyStoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns the messages of an account that were seen or sent since `since` (milliseconds since 1970), in any chat:
    /// for platforms that do not send missed events again.
    fn known_messages<'a>(
        &'a self,
        account: &'a str,
        since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>>;

    /// Returns whether a message belongs to a conversation. Only account and chat of the address are
    /// compared; the topic is ignored.
    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>>;
}

/// Resume position of an account's event stream, in its channel's own encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPosition(pub String);

/// An event is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is new.
    New,
    /// It had been kept before.
    Duplicate,
    /// It does not address the bot, and is not kept for an answer.
    Unaddressed,
}

/// An event is not kept. The platform must not get its acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// Too much waits to be answered.
    #[error("too many messages wait to be answered")]
    Full,
    /// The store failed.
    #[error("the message could not be stored: {0}")]
    Store(String),
}
