//! Members of a room's thread: the people who wrote to the agent in it. They may read it.
//!
//! A row contains the platform identity. The table of identities maps it to a user at the time of a query, so a user
//! loses access when the identity is unlinked.

use crate::{
    Db, Result, TurnId,
    engines::{Tx, query},
};
use pudu_base::{ThreadId, UserId};

/// SQL query for the threads that have a user, `$1`, as a member.
macro_rules! threads_of_member {
    () => {
        "SELECT thread FROM thread_people JOIN identities ON identities.account = thread_people.account
            AND identities.person = thread_people.person WHERE identities.user_id = $1"
    };
}
pub(crate) use threads_of_member;

impl Db {
    /// Returns whether a user is a member of a thread.
    pub async fn is_thread_member(&self, thread: &ThreadId, user: &UserId) -> Result<bool> {
        let sql = concat!(threads_of_member!(), " AND thread = $2");
        self.finds(query(sql).bind(user).bind(thread)).await
    }
}

/// Records people as members of the thread of a turn, if it has one.
pub(crate) fn join(tx: &mut Tx<'_>, turn: &TurnId, people: &[String]) -> Result<()> {
    let sql = "INSERT INTO thread_people (thread, account, person, at)
        SELECT thread, account, $2, created FROM turns WHERE id = $1 AND thread IS NOT NULL ON CONFLICT DO NOTHING";
    for person in people {
        query(sql).bind(&turn.0).bind(person).execute(tx)?;
    }
    Ok(())
}
