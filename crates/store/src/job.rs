//! Writes that wait for the writer.

use crate::{StoreError, crash, statement::Tx};
use pudu_base::BoxFuture;
use tokio::sync::oneshot;

/// Function of a job: works with its data, inside a transaction. It must leave no trace when it fails.
pub(crate) type WriteWork<D, T> = for<'a> fn(&'a D, &'a mut Tx<'_>) -> BoxFuture<'a, Result<T, StoreError>>;

/// A write that waits, whatever its types.
pub(crate) trait WriteJob: Send {
    fn name(&self) -> &'static crash::Write;

    /// Runs the work and keeps its result.
    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Sends the caller the result, or why it does not count.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

/// A write with its data and the way back to its caller.
pub(crate) struct WriteCall<D, T> {
    name: &'static crash::Write,
    data: D,
    work: WriteWork<D, T>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<D, T> WriteCall<D, T> {
    pub(crate) fn new(
        name: &'static crash::Write,
        data: D,
        work: WriteWork<D, T>,
        reply: oneshot::Sender<Result<T, StoreError>>,
    ) -> Self {
        Self { name, data, work, value: None, reply }
    }
}

/// A write without a waiting caller.
pub(crate) struct SoonCall<D> {
    pub(crate) name: &'static crash::Write,
    pub(crate) data: D,
    pub(crate) work: WriteWork<D, ()>,
}

impl<D: Send + Sync> WriteJob for SoonCall<D> {
    fn name(&self) -> &'static crash::Write {
        self.name
    }

    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        (self.work)(&self.data, tx)
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        if let Some(error) = failure {
            tracing::error!(write = self.name.before, %error, "failed to store");
        }
    }
}

impl<D: Send + Sync, T: Send> WriteJob for WriteCall<D, T> {
    fn name(&self) -> &'static crash::Write {
        self.name
    }

    fn run<'a>(&'a mut self, tx: &'a mut Tx<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.value = None;
            self.value = Some((self.work)(&self.data, tx).await?);
            Ok(())
        })
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match (failure, self.value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have gone; the write is committed in any case.
        drop(self.reply.send(answer));
    }
}
