//! Users, login accounts, platform identities, and the export and deletion of user data.

pub mod accounts;
pub mod names;
pub mod passwords;
pub mod person;
pub mod rights;
mod users;

pub use users::Users;
