//! Threads and their goals, as in the gateway.

use crate::Client;
use pudu_base::{BoxFuture, LogError, ThreadId, Update, UserId};
use pudu_langgraph::{checkpoint::ValuesWriter, goal, thread::ListedThread};
use pudu_runs::SubmitError;
use pudu_store::{ClientThread, StoreError, ThreadQuery, now};
use serde_json::{Value, json, value::RawValue};

/// Why a goal was not set.
#[derive(Debug, thiserror::Error)]
pub enum GoalError {
    /// The text is not a valid goal.
    #[error("{0}")]
    Wrong(&'static str),
    /// The thread cannot be changed at the moment.
    #[error(transparent)]
    Thread(#[from] SubmitError),
    /// The store failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Client {
    /// Lists at most `limit` threads, most recently used first. Their values include only the title.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list_threads(&self, limit: u32) -> Result<Vec<ListedThread>, StoreError> {
        let filter = ThreadQuery { limit: limit as usize, ..ThreadQuery::default() };
        let found = self.agent().db().find_threads(&UserId::local(), &filter).await?;
        Ok(found.threads.iter().map(|thread| self.listed(thread)).collect())
    }

    /// Returns the thread with this id and its values, if it exists.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn get_thread(&self, thread: &ThreadId) -> Result<Option<ListedThread>, StoreError> {
        match self.agent().db().client_thread(thread).await? {
            None => Ok(None),
            Some(thread) => {
                let shown = self.with_values(&thread).await;
                shown.map(Some).map_err(|error| StoreError::Unavailable(error.to_string()))
            }
        }
    }

    /// Converts a thread to its form in lists.
    #[must_use]
    pub fn listed(&self, thread: &ClientThread) -> ListedThread {
        ListedThread::from_thread(thread, !self.runs().live_runs(&thread.id).is_empty())
    }

    /// Converts a thread to its form with values.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn with_values(&self, thread: &ClientThread) -> Result<ListedThread, LogError> {
        let values = json!(self.values(thread).await?);
        Ok(ListedThread { values, ..self.listed(thread) })
    }

    /// Returns the current values of a thread.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn values(&self, thread: &ClientThread) -> Result<Box<RawValue>, LogError> {
        let state = self.agent().state(&thread.id).await?;
        Ok(ValuesWriter::default().write(&state, Some(&thread.title)))
    }

    /// Returns the goal of a thread; a null `goal` if it has none. [`Client::clear_goal`] removes it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn get_goal(&self, thread: &ThreadId) -> Result<Value, LogError> {
        Ok(goal::answer(self.agent().state(thread).await?.goal.as_ref()))
    }

    /// Sets the goal of a thread and the maximum number of automatic continuations of its runs, and returns the goal.
    ///
    /// # Errors
    /// If the text is not a valid goal, the thread has an active run, or the store fails.
    pub async fn set_goal(
        &self,
        thread: &ThreadId,
        objective: &str,
        max_continuations: Option<u32>,
    ) -> Result<Value, GoalError> {
        let goal = goal::read(objective, max_continuations, now()).map_err(GoalError::Wrong)?;
        self.runs().change_thread(thread, |run| run.apply(Update::Goal(Some(goal)))).await?;
        Ok(self.get_goal(thread).await?)
    }

    /// Clears the goal of a thread before any later run, even if the future is not awaited.
    ///
    /// # Errors
    /// If the store fails.
    pub fn clear_goal(&self, thread: &ThreadId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.runs().clear_goal(thread)
    }
}
