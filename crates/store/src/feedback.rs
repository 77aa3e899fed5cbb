//! Judgements of people on answers: one a person and run.

use crate::{
    Db, Feedback, StoreError, crash,
    statement::{Tx, query},
};
use pudu_base::{RunId, ThreadId, UserId};

type FeedbackColumns = (String, String, String, String, Option<String>, i64, Option<String>, i64);

impl Db {
    /// Keeps a judgement in place of an earlier one of the same person on the same run.
    pub async fn put_feedback(&self, feedback: Feedback) -> Result<(), StoreError> {
        self.write(&crash::PUT_FEEDBACK, feedback, |feedback, tx| Box::pin(put(tx, feedback))).await
    }

    /// Returns the judgements of a person on the runs of a thread, oldest first.
    pub async fn feedback(&self, thread: &ThreadId, user: &UserId) -> Result<Vec<Feedback>, StoreError> {
        self.read_much((thread, user), |(thread, user), tx| Box::pin(of_thread(tx, thread, user))).await
    }

    /// Deletes the feedback of a person on a run; only the one with `id` if it is given. Returns whether there was one.
    pub async fn delete_feedback(
        &self,
        run: &RunId,
        user: &UserId,
        id: Option<&str>,
    ) -> Result<bool, StoreError> {
        let data = (run.clone(), user.clone(), id.map(str::to_owned));
        self.write(&crash::DELETE_FEEDBACK, data, |(run, user, id), tx| {
            Box::pin(delete(tx, run, user, id.as_deref()))
        })
        .await
    }
}

async fn put(tx: &mut Tx<'_>, feedback: &Feedback) -> Result<(), StoreError> {
    let sql = "INSERT INTO feedback (id, run, thread, user_id, message, rating, comment, created)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (thread, run, user_id) DO UPDATE SET message = excluded.message, rating = excluded.rating,
            comment = excluded.comment";
    let Feedback { id, run, thread, user, message, rating, comment, created } = feedback;
    let insert = query(sql).bind(id.as_str()).bind(run.as_str()).bind(thread.as_str()).bind(user.as_str());
    let insert = insert.bind(message.as_deref()).bind(*rating).bind(comment.as_deref());
    insert.bind(*created).execute(tx).await.map(drop)
}

async fn of_thread(tx: &mut Tx<'_>, thread: &ThreadId, user: &UserId) -> Result<Vec<Feedback>, StoreError> {
    let sql = "SELECT id, run, thread, user_id, message, rating, comment, created FROM feedback
        WHERE thread = $1 AND user_id = $2 ORDER BY created, id";
    let rows: Vec<FeedbackColumns> =
        query(sql).bind(thread.as_str()).bind(user.as_str()).fetch_all(tx).await?;
    let read = |(id, run, thread, user, message, rating, comment, created): FeedbackColumns| Feedback {
        id,
        run,
        thread,
        user: UserId::from_raw(&user).unwrap_or_default(),
        message,
        rating,
        comment,
        created,
    };
    Ok(rows.into_iter().map(read).collect())
}

async fn delete(tx: &mut Tx<'_>, run: &RunId, user: &UserId, id: Option<&str>) -> Result<bool, StoreError> {
    let sql = "DELETE FROM feedback WHERE run = $1 AND user_id = $2 AND id = COALESCE($3, id)";
    Ok(query(sql).bind(run.as_str()).bind(user.as_str()).bind(id).execute(tx).await? > 0)
}
