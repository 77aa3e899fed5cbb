//! Threads and their goals, as the gateway shows them.

use crate::{
    Client, SubmitError,
    base::{LogError, ThreadId, Update, UserId},
    store::{ClientThread, StoreError, ThreadQuery, now},
    wire::{checkpoint::ValuesWriter, goal, thread::ListedThread},
};
use serde_json::{Value, json, value::RawValue};

/// Reason why a goal was not set.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// It cannot be one.
    #[error("{0}")]
    Wrong(&'static str),
    /// The thread cannot be changed now.
    #[error(transparent)]
    Thread(#[from] SubmitError),
    /// The store failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Client {
    /// Lists threads, those first that were used last, `limit` at most. Of their values they have only the title.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_threads(&self, limit: u32) -> Result<Vec<ListedThread>, StoreError> {
        let filter = ThreadQuery { limit: limit as usize, ..ThreadQuery::default() };
        let found = self.0.db.find_threads(&UserId::local(), &filter).await?;
        Ok(found.threads.iter().map(|thread| self.listed(thread)).collect())
    }

    /// Returns a thread with its values; `None` if there is none with this id.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get_thread(&self, thread: &ThreadId) -> Result<Option<ListedThread>, StoreError> {
        match self.0.db.client_thread(thread).await? {
            None => Ok(None),
            Some(thread) => {
                let shown = self.with_values(&thread).await;
                shown.map(Some).map_err(|error| StoreError::Unavailable(error.to_string()))
            }
        }
    }

    /// Returns the threads on which runs work or wait to.
    #[must_use]
    pub fn busy_threads(&self) -> Vec<ThreadId> {
        self.0.runs.threads()
    }

    /// Writes a thread as lists show it.
    #[must_use]
    pub fn listed(&self, thread: &ClientThread) -> ListedThread {
        ListedThread::from_thread(thread, !self.live_runs(&thread.id).is_empty())
    }

    /// Writes a thread with its values.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn with_values(&self, thread: &ClientThread) -> Result<ListedThread, LogError> {
        let values = json!(self.values(thread).await?);
        Ok(ListedThread { values, ..self.listed(thread) })
    }

    /// Writes the values of a thread as it is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn values(&self, thread: &ClientThread) -> Result<Box<RawValue>, LogError> {
        let state = self.state(&thread.id).await?;
        Ok(ValuesWriter::default().write(&state, Some(&thread.title)))
    }

    /// Returns the goal of a thread, or that it has none. [`Client::clear_goal`] removes it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get_goal(&self, thread: &ThreadId) -> Result<Value, LogError> {
        Ok(goal::answer(self.state(thread).await?.goal.as_ref()))
    }

    /// Sets the goal of a thread, with the maximum number of automatic continuations of its runs, and returns it.
    ///
    /// # Errors
    /// When it cannot be one, a run works on the thread, or the store fails.
    pub async fn set_goal(
        &self,
        thread: &ThreadId,
        objective: &str,
        max_continuations: Option<u32>,
    ) -> Result<Value, GoalError> {
        let goal = goal::read(objective, max_continuations, now()).map_err(GoalError::Wrong)?;
        self.change_thread(thread, |run| run.apply(Update::Goal(Some(goal)))).await?;
        Ok(self.get_goal(thread).await?)
    }
}
