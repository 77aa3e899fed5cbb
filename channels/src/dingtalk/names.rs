//! Names of users. A message contains its sender's name, a press only the sender's id. The names are lost on restart;
//! until a user writes again, their id is shown.

use crate::{Inbound, InboundKind, Sender, transport::Cache};

/// Maximum number of names remembered.
const MAX_CACHED_NAMES: usize = 4096;

/// Known names, by user id.
#[derive(Default)]
pub(super) struct Names(Cache<String, String, MAX_CACHED_NAMES>);

impl Names {
    /// Caches a message's sender name, and fills it in for a press.
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
