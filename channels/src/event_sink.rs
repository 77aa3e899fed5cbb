//! The trait that channels use to store events.

use crate::{Address, BoxFuture, FormAccess, Inbound, KnownMessage, ReplyStoreError};

/// Receives events.
pub trait EventSink: Send + Sync {
    /// Stores an event durably. The channel may acknowledge it to the platform only after `Ok`.
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>>;

    /// Like [`Self::accept`], and stores the bot's stream position in the same write. An event sink that stores no
    /// positions makes each stream start over.
    fn accept_at<'a>(
        &'a self,
        inbound: Inbound,
        _position: StreamPosition,
    ) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.accept(inbound)
    }

    /// Stores a bot's stream position: all events before it were accepted, or do not concern the bot.
    fn save_position<'a>(
        &'a self,
        _account: &'a str,
        _position: StreamPosition,
    ) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(async { Ok(()) })
    }

    /// Returns a bot's last stored stream position.
    fn position<'a>(
        &'a self,
        _account: &'a str,
    ) -> BoxFuture<'a, Result<Option<StreamPosition>, ReplyStoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns the form below one of the bot's messages, if the sender may answer it and it is open. The event names
    /// the message. An event sink without conversations has no forms.
    fn form<'a>(&'a self, _inbound: &'a Inbound) -> BoxFuture<'a, Result<FormAccess, ReplyStoreError>> {
        Box::pin(async { Ok(FormAccess::Refused(String::new())) })
    }

    /// Returns a bot's messages, seen or sent, since `since` (milliseconds since 1970), in all chats. For platforms
    /// that do not redeliver missed events.
    fn known_messages<'a>(
        &'a self,
        account: &'a str,
        since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>>;

    /// Returns whether a message belongs to a conversation. Compares only bot and chat of the address; the topic is
    /// ignored.
    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>>;
}

/// Resume position of a bot's event stream, in its channel's own encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPosition(pub String);

/// Result of accepting an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The event is new.
    New,
    /// The event was already stored.
    Duplicate,
    /// The event does not address the bot, and is not stored for an answer.
    Unaddressed,
}

/// Why an event was not stored. It must not be acknowledged to the platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcceptError {
    /// Too many messages wait to be answered.
    #[error("too many messages wait to be answered")]
    Full,
    /// The store failed.
    #[error("the message could not be stored: {0}")]
    Store(String),
}

/// Methods of a test event sink without stored messages.
#[cfg(any(test, feature = "fuzzing"))]
macro_rules! knows_no_messages {
    () => {
        fn known_messages<'a>(
            &'a self,
            _: &'a str,
            _: i64,
        ) -> crate::BoxFuture<'a, Result<Vec<crate::KnownMessage>, crate::ReplyStoreError>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }

        fn is_in_conversation<'a>(
            &'a self,
            _: &'a crate::Address,
            _: &'a str,
        ) -> crate::BoxFuture<'a, Result<bool, crate::ReplyStoreError>> {
            Box::pin(std::future::ready(Ok(false)))
        }
    };
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use knows_no_messages;
