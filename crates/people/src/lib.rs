//! People: users, sign-in accounts, the people of platforms, and what each may have exported and forgotten.

pub mod accounts;
pub mod names;
pub mod passwords;
pub mod rights;
mod users;

pub use users::Users;
