//! People: users, sign-in accounts, the people of platforms, and the export and erasure of their data.

pub mod accounts;
pub mod names;
pub mod passwords;
pub mod rights;
mod users;

pub use users::Users;
