//! People: sign-in accounts and their tokens, platform identities and their users, and all rows of one person.

pub(crate) mod accounts;
pub(crate) mod api_tokens;
pub(crate) mod identities;
pub(crate) mod pairing;
pub(crate) mod person;
pub(crate) mod provider_accounts;
