//! Users' ratings of answers: one per user and run.

use crate::{
    Db, Feedback, Result, crash,
    engines::{from_row, query},
};
use pudu_base::{RunId, ThreadId, UserId};

from_row!(Feedback { id, run, thread, user: "user_id", message, rating, comment, created });

impl Db {
    /// Stores a rating, replacing the user's earlier rating of the same run.
    pub async fn put_feedback(&self, feedback: Feedback) -> Result<()> {
        let sql = "INSERT INTO feedback (id, run, thread, user_id, message, rating, comment, created)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (thread, run, user_id) DO UPDATE SET message = excluded.message, rating = excluded.rating,
                comment = excluded.comment";
        let Feedback { id, run, thread, user, message, rating, comment, created } = &feedback;
        let insert =
            query(sql).bind(id.as_str()).bind(run.as_str()).bind(thread.as_str()).bind(user.as_str());
        let insert = insert.bind(message.as_deref()).bind(*rating).bind(comment.as_deref());
        self.execute(&crash::PUT_FEEDBACK, insert.bind(*created)).await.map(drop)
    }

    /// Returns a user's ratings of the runs of a thread, oldest first.
    pub async fn feedback(&self, thread: &ThreadId, user: &UserId) -> Result<Vec<Feedback>> {
        let sql = "SELECT id, run, thread, user_id, message, rating, comment, created FROM feedback
            WHERE thread = $1 AND user_id = $2 ORDER BY created, id";
        self.all(query(sql).bind(thread).bind(user)).await
    }

    /// Deletes a user's rating of a run, only the one with `id` if given. Returns whether there was one.
    pub async fn delete_feedback(&self, run: &RunId, user: &UserId, id: Option<&str>) -> Result<bool> {
        let sql = "DELETE FROM feedback WHERE run = $1 AND user_id = $2 AND id = COALESCE($3, id)";
        Ok(self
            .execute(&crash::DELETE_FEEDBACK, query(sql).bind(run.as_str()).bind(user.as_str()).bind(id))
            .await?
            > 0)
    }
}
