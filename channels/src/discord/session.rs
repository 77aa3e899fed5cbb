//! The gateway session as it is stored, so that it can be resumed after a restart: Discord keeps events for some
//! minutes, and sends them only to a client that presents the session and its last event.

use super::{account_state::DiscordIdentity, unplaced::UnplacedMessage};
use crate::Address;
use crate::{
    AcceptError, Accepted, BoxFuture, EventSink, FormAccess, Inbound, KnownMessage, ReplyStoreError,
    StreamPosition,
};
use serde::{Deserialize, Serialize};

/// A gateway session, up to the last stored event. Stored: later versions must still read this format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GatewaySession {
    pub(super) id: String,
    /// Sequence number of the last stored event.
    pub(super) seq: u64,
    /// URL for resuming the session; `None` if there is no valid one.
    pub(super) url: Option<String>,
    /// Identity of the bot. Discord sends it only in a new session.
    pub(super) me: DiscordIdentity,
    /// Whether messages missed before this session still have to be fetched.
    #[serde(default, rename = "behind")]
    pub(super) needs_catchup: bool,
    /// Time up to which all messages were received, in milliseconds since 1970.
    #[serde(default, rename = "heard")]
    pub(super) received_until: i64,
    /// Messages received but not stored, because their channels could not be looked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unplaced: Vec<UnplacedMessage>,
}

impl GatewaySession {
    /// Serializes the session.
    pub(super) fn position(&self) -> Option<StreamPosition> {
        serde_json::to_string(self).map(StreamPosition).ok()
    }

    /// Reads a stored session; `None` if this version cannot read it.
    pub(super) fn read(position: &StreamPosition) -> Option<Self> {
        serde_json::from_str(&position.0)
            .inspect_err(|error| tracing::warn!(%error, "dropped stored session: decode error"))
            .ok()
    }
}

/// An event sink that stores the session's position together with each event.
pub(super) struct PositionedSink<'a> {
    pub(super) sink: &'a dyn EventSink,
    /// The session, at the sequence number of this event.
    pub(super) session: GatewaySession,
}

impl EventSink for PositionedSink<'_> {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        match self.session.position() {
            Some(position) => self.sink.accept_at(inbound, position),
            None => self.sink.accept(inbound),
        }
    }

    fn known_messages<'a>(
        &'a self,
        account: &'a str,
        since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        self.sink.known_messages(account, since)
    }

    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
        self.sink.is_in_conversation(address, message)
    }

    fn form<'a>(&'a self, inbound: &'a Inbound) -> BoxFuture<'a, Result<FormAccess, ReplyStoreError>> {
        self.sink.form(inbound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_sessions_is_stable() {
        let me = DiscordIdentity { user: "7".into(), application: "8".into(), name: "pudu".into() };
        let session = GatewaySession {
            id: "a".into(),
            seq: 5,
            url: Some("wss://x".into()),
            me,
            needs_catchup: true,
            received_until: 3,
            unplaced: vec![UnplacedMessage { id: "4".into(), channel: "6".into(), guild: Some("9".into()) }],
        };
        let stored = r#"{"id":"a","seq":5,"url":"wss://x","me":{"user":"7","application":"8","name":"pudu"},"behind":true,"heard":3,"unplaced":[{"id":"4","channel":"6","guild":"9"}]}"#;
        assert_eq!(session.position(), Some(StreamPosition(stored.into())));
        assert_eq!(GatewaySession::read(&StreamPosition(stored.into())), Some(session));
        assert_eq!(GatewaySession::read(&StreamPosition("of another version".into())), None);
    }
}
