//! Names of people: a message contains its sender's name, a press only the sender's id. A restart forgets the names;
//! the id replaces a name until the person writes again.

use crate::{Inbound, InboundKind, Sender, transport::Cache};

/// Maximum number of names remembered.
const MAX_CACHED_NAMES: usize = 4096;

/// The names that are known, by people's ids.
pub(super) struct Names(Cache<String, String>);

impl Default for Names {
    fn default() -> Self {
        Self(Cache::new(MAX_CACHED_NAMES))
    }
}

impl Names {
    /// Learns the name of who says something, and gives who presses something theirs.
    pub(super) fn resolve(&self, inbound: Inbound) -> Inbound {
        let Sender { id, name, .. } = &inbound.sender;
        if !matches!(inbound.kind, InboundKind::Press { .. }) {
            self.0.put(id.clone(), name.clone());
            return inbound;
        }
        let name = self.0.get(id).unwrap_or_else(|| name.clone());
        Inbound { sender: Sender { name, ..inbound.sender.clone() }, ..inbound }
    }
}
