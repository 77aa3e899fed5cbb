//! Queued writes.

use crate::{Result, StoreError, crash, engines::Tx};
use tokio::sync::oneshot;

/// A queued write, independent of its types.
pub(crate) trait WriteJob: Send {
    fn name(&self) -> &'static crash::Write;

    /// Runs the work and stores its result.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()>;

    /// Sends the result or the failure to the caller.
    fn answer(self: Box<Self>, failure: Option<StoreError>);
}

/// A write, with a channel to its caller if one waits. The work runs inside a transaction, again if that is rolled
/// back, and must have no effects outside it.
pub(crate) struct WriteCall<F, T> {
    pub(crate) name: &'static crash::Write,
    pub(crate) work: F,
    pub(crate) value: Option<T>,
    pub(crate) reply: Option<oneshot::Sender<Result<T>>>,
}

impl<F: Fn(&mut Tx<'_>) -> Result<T> + Send, T: Send> WriteJob for WriteCall<F, T> {
    fn name(&self) -> &'static crash::Write {
        self.name
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        self.value = None;
        self.value = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<StoreError>) {
        let answer = match failure {
            None => self.value.ok_or(StoreError::Closed),
            Some(error) => Err(error),
        };
        match (self.reply, answer) {
            // The caller may be gone. The write is committed regardless.
            (Some(reply), answer) => drop(reply.send(answer)),
            (None, Err(error)) => tracing::error!(write = self.name.before, %error, "failed to store"),
            (None, Ok(_)) => {}
        }
    }
}
