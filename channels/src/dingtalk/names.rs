//! The names of people: a message tells its sender's, a press only who it was. A restart forgets them; until
//! somebody speaks again the id stands for them.

use crate::{Inbound, InboundKind, Sender};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Maximum number of names remembered.
const MAX_CACHED_NAMES: usize = 4096;

/// The names that are known, by people's ids.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<String, String>>);

impl Names {
    /// Learns the name of who says something, and gives who presses something theirs.
    pub(super) fn resolve(&self, inbound: Inbound) -> Inbound {
        let Sender { id, name } = &inbound.sender;
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(inbound.kind, InboundKind::Press { .. }) {
            if names.len() >= MAX_CACHED_NAMES {
                names.clear();
            }
            names.insert(id.clone(), name.clone());
            return inbound;
        }
        let name = names.get(id).unwrap_or(name).clone();
        Inbound { sender: Sender { id: id.clone(), name }, ..inbound }
    }
}
