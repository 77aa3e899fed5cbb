//! Incoming events and outgoing replies, stored until they are done.
//!
//! Deliberately absent: access control and the content of answers, which belong to the dispatcher.

mod concealed;
mod delivery;
mod held;
mod inbox;
mod lane;
mod outbox;
mod patience;

pub use concealed::conceal;
pub use delivery::OutboxItem;
pub use inbox::{Inbox, InboxItem};
pub use outbox::Outbox;
pub use patience::{STORE_TIMEOUT, retry_until_stored};
