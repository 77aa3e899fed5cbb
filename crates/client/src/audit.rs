//! What is done in a sandbox, or to an agent, is noted before it is done: who, where, what, whether it was let through, and how
//! it ended. What cannot be noted is not done.

use crate::{Asker, now};
use pudu_base::{BoxFuture, Command, Entry, Exec, RunId, Sandbox, SandboxError, ThreadId, ToolError};
use pudu_store::{Db, Deed, DeedId, StoreError};
use std::sync::Arc;

/// As much of a command is noted, in characters.
const LONGEST: usize = 10_000;

/// Notes what one run does.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) db: Db,
    pub(crate) thread: ThreadId,
    pub(crate) run: RunId,
    pub(crate) asker: Asker,
}

impl Ledger {
    /// Notes what needs no end. A failure is logged: what was decided counts nevertheless.
    pub(crate) async fn note(&self, action: &str, detail: &str, verdict: String) {
        let ended = Some(now());
        let deed = Deed { verdict, ended, ..self.deed(action, detail) };
        if let Err(error) = self.db.deed_begins(deed).await {
            tracing::error!(%error, "a decision could not be noted");
        }
    }

    /// Does something that is no matter of the sandbox.
    pub(crate) async fn noted<T>(
        &self,
        action: &str,
        detail: &str,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let deed = self.begin(action, detail).await.map_err(|error| ToolError(error.to_string()))?;
        let done = work.await;
        self.end(deed, Some(i32::from(done.is_err()))).await;
        done
    }

    async fn begin(&self, action: &str, detail: &str) -> Result<DeedId, SandboxError> {
        self.db.deed_begins(self.deed(action, detail)).await.map_err(|error: StoreError| {
            tracing::error!(%error, "a deed could not be noted, so it is not done");
            SandboxError::Refused(
                "this could not be written into the audit log, so it is not done".to_owned(),
            )
        })
    }

    async fn end(&self, id: DeedId, code: Option<i32>) {
        if let Err(error) = self.db.deed_ends(id, code.map(i64::from), now()).await {
            tracing::error!(%error, "the end of a deed could not be noted");
        }
    }

    fn deed(&self, action: &str, detail: &str) -> Deed {
        Deed {
            at: now(),
            thread: self.thread.clone(),
            run: self.run.clone(),
            account: self.asker.account.clone(),
            person: self.asker.person.clone(),
            action: action.to_owned(),
            detail: detail.chars().take(LONGEST).collect(),
            verdict: "allowed".to_owned(),
            code: None,
            ended: None,
        }
    }
}

/// A sandbox whose commands and writes are noted.
pub(crate) struct Audited {
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) ledger: Ledger,
}

impl Sandbox for Audited {
    fn exec<'a>(&'a self, command: &'a Command) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move {
            let deed = self.ledger.begin("exec", &command.script).await?;
            let done = self.sandbox.exec(command).await;
            self.ledger.end(deed, done.as_ref().ok().and_then(|exec| exec.code)).await;
            done
        })
    }

    fn read<'a>(&'a self, path: &'a str, limit: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
        self.sandbox.read(path, limit)
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        bytes: &'a [u8],
        append: bool,
    ) -> BoxFuture<'a, Result<(), SandboxError>> {
        Box::pin(async move {
            let deed = self.ledger.begin("write", path).await?;
            let done = self.sandbox.write(path, bytes, append).await;
            self.ledger.end(deed, Some(i32::from(done.is_err()))).await;
            done
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Entry>, SandboxError>> {
        self.sandbox.list(path, depth, limit)
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        self.sandbox.measure(path)
    }
}
