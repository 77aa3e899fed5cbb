//! Imports login accounts, platform identities and feedback.

use super::{
    Import,
    places::SourcePlaces,
    rows::{UNREADABLE, outcome},
    user_of,
};
use crate::{
    error::ImportError,
    report::{ItemKind, ItemOutcome},
};
use pudu_base::UserId;
use pudu_store::{Feedback, Identity, ImportRecord, MovedAccount, UserAccount};

impl Import<'_> {
    pub(super) async fn accounts(&mut self) -> Result<(), ImportError> {
        let sql = "SELECT CAST(id AS TEXT) AS id, CAST(email AS TEXT) AS email, CAST(password_hash AS TEXT) AS password_hash,
            CAST(system_role AS TEXT) AS system_role, CASE WHEN needs_setup THEN 1 ELSE 0 END AS needs_setup,
            CAST(token_version AS BIGINT) AS token_version, CAST(oauth_provider AS TEXT) AS oauth_provider,
            CAST(oauth_id AS TEXT) AS oauth_id, CAST(created_at AS TEXT) AS created_at FROM users ORDER BY id";
        let rows = self.rows("users", sql).await?;
        for row in &rows {
            let (id, email) = (row.text("id"), row.text("email"));
            let (Some(id), Some(email)) = (id, email) else {
                self.report.left(ItemKind::Account, "a row of users", UNREADABLE);
                continue;
            };
            if self.is_forgotten(&user_of(Some(&id))) {
                continue;
            }
            let role = row.text("system_role").unwrap_or_else(|| "user".to_owned());
            if !matches!(role.as_str(), "admin" | "user") {
                self.report.left(ItemKind::Account, email, format!("pudu has no role `{role}`"));
                continue;
            }
            let name = email.clone();
            let account = UserAccount {
                user: user_of(Some(&id)),
                email,
                password_hash: row.text("password_hash"),
                role,
                needs_setup: row.number("needs_setup")? != 0,
                token_version: row.number("token_version")?,
                oauth_provider: row.text("oauth_provider"),
                oauth_id: row.text("oauth_id"),
                created: self.time(row, "created_at"),
            };
            let moved = self.target.db.import_account(account, self.now).await?;
            let (outcome, why) = account_outcome(moved);
            self.report.add(ItemKind::Account, outcome, name, Some(&id), why.map(str::to_owned));
        }
        Ok(())
    }

    /// Links platform identities to the users of their DeerFlow folders.
    pub(super) async fn identities(&mut self, places: &SourcePlaces) -> Result<(), ImportError> {
        let mut identities = self.connections().await?;
        for place in &places.0 {
            // A user without a DeerFlow account has a folder named after their ID on the platform.
            if let Some(person) = place.person.clone().filter(|person| person != "default")
                && let Ok(user) = UserId::from_raw(&person)
                && !identities.iter().any(|known| known.account == place.account && known.person == person)
            {
                let (account, name, at) = (place.account.clone(), person.clone(), place.updated);
                identities.push(Identity { account, person, user, name, at });
            }
        }
        identities.retain(|identity| !self.is_forgotten(&identity.user));
        let known = self.target.db.identities().await?;
        let records = identities.iter().cloned().map(ImportRecord::Identity).collect();
        let new = self.target.db.import_records(records).await?;
        for (identity, new) in identities.iter().zip(new) {
            let Identity { account, person, user, .. } = identity;
            let item = format!("{account}:{person}");
            let other = |other: &&Identity| {
                other.account == *account && other.person == *person && other.user != *user
            };
            match known.iter().find(other) {
                Some(other) => {
                    self.report.left(
                        ItemKind::Identity,
                        item,
                        format!("already linked to the user {}", other.user),
                    );
                }
                None => self.report.add(ItemKind::Identity, outcome(new), item, Some(user.as_str()), None),
            }
        }
        Ok(())
    }

    async fn connections(&mut self) -> Result<Vec<Identity>, ImportError> {
        let sql = "SELECT CAST(owner_user_id AS TEXT) AS owner_user_id, CAST(provider AS TEXT) AS provider,
            CAST(external_account_id AS TEXT) AS person, CAST(external_account_name AS TEXT) AS name,
            CAST(updated_at AS TEXT) AS updated_at FROM channel_connections
            WHERE status <> 'revoked' AND external_account_id <> '' ORDER BY updated_at DESC";
        let rows = self.rows("channel_connections", sql).await?;
        let mut identities: Vec<Identity> = Vec::new();
        for row in &rows {
            let parts = (row.text("provider"), row.text("person"), row.text("owner_user_id"));
            let (Some(account), Some(person), Some(owner)) = parts else {
                self.report.left(ItemKind::Identity, "a row of channel_connections", UNREADABLE);
                continue;
            };
            // The rows are ordered, so the newest connection comes first.
            if identities.iter().any(|known| known.account == account && known.person == person) {
                continue;
            }
            let name = row.text("name").unwrap_or_else(|| person.clone());
            let at = self.time(row, "updated_at");
            identities.push(Identity { account, person, user: user_of(Some(&owner)), name, at });
        }
        Ok(identities)
    }

    pub(super) async fn feedback(&mut self) -> Result<(), ImportError> {
        let sql = "SELECT CAST(feedback_id AS TEXT) AS id, CAST(run_id AS TEXT) AS run_id, CAST(thread_id AS TEXT) AS thread_id,
            CAST(user_id AS TEXT) AS user_id, CAST(message_id AS TEXT) AS message_id, CAST(rating AS BIGINT) AS rating,
            CAST(comment AS TEXT) AS comment, CAST(created_at AS TEXT) AS created_at FROM feedback ORDER BY feedback_id";
        let rows = self.rows("feedback", sql).await?;
        let mut records = Vec::new();
        for row in &rows {
            let parts = (row.text("id"), row.text("run_id"), row.text("thread_id"));
            let (Some(id), Some(run), Some(thread)) = parts else {
                self.report.left(ItemKind::Feedback, "a row of feedback", UNREADABLE);
                continue;
            };
            let rating = row.number("rating")?;
            if !matches!(rating, 1 | -1) {
                self.report.left(ItemKind::Feedback, id, format!("unsupported rating {rating}"));
                continue;
            }
            let (user, message) = (user_of(row.text("user_id").as_deref()), row.text("message_id"));
            if self.is_forgotten(&user) {
                continue;
            }
            let (comment, created) = (row.text("comment"), self.time(row, "created_at"));
            records.push(Feedback { id, run, thread, user, message, rating, comment, created });
        }
        let new = self
            .target
            .db
            .import_records(records.iter().cloned().map(ImportRecord::Feedback).collect())
            .await?;
        for (feedback, new) in records.iter().zip(new) {
            self.report.add(
                ItemKind::Feedback,
                outcome(new),
                &feedback.id,
                Some(feedback.user.as_str()),
                None,
            );
        }
        Ok(())
    }
}

/// Returns the outcome of a login account, with a reason or a note.
fn account_outcome(moved: MovedAccount) -> (ItemOutcome, Option<&'static str>) {
    match moved {
        MovedAccount::New => (ItemOutcome::Taken, None),
        MovedAccount::Same => (ItemOutcome::Unchanged, None),
        MovedAccount::Renewed => (ItemOutcome::Taken, Some("role or password updated")),
        MovedAccount::Changed => (
            ItemOutcome::Left,
            Some(
                "the account exists with another e-mail address, role or password, \
                                      which is kept",
            ),
        ),
        MovedAccount::Taken => {
            (ItemOutcome::Left, Some("another account has this e-mail address or sign-in"))
        }
    }
}
