//! Audit log. Every action in a sandbox or on an agent is recorded before it is executed: the actor, the thread and
//! run, the action, whether it was allowed, and how it ended. An action that cannot be recorded is not executed.

use crate::Asker;
use pudu_base::{
    BoxFuture, DirEntry, Exec, Killed, RunId, Sandbox, SandboxError, ShellCommand, ThreadId, ToolError,
};
use pudu_store::{ABANDONED, AuditEntry, AuditEntryId, Db, STOPPED, StoreError, now};
use std::sync::Arc;

/// Maximum length of a command that is recorded in full, in characters.
const MAX_COMMAND_CHARS: usize = 10_000;
/// Length of the recorded beginning and end of a longer command, in characters.
const ENDS: (usize, usize) = (6_000, 4_000);

/// Records the actions of one run.
#[derive(Clone)]
pub(crate) struct AuditLog {
    pub(crate) db: Db,
    pub(crate) thread: ThreadId,
    pub(crate) run: RunId,
    pub(crate) asker: Asker,
    /// Whether guardrails were evaluated for all actions.
    pub(crate) is_guarded: bool,
}

impl AuditLog {
    /// Records a completed action. A failure is only logged, because the decision is valid anyway.
    pub(crate) async fn note(&self, action: &str, detail: &str, verdict: String) {
        let ended = Some(now());
        let entry = AuditEntry { verdict, ended, ..self.entry(action, detail) };
        if let Err(error) = self.db.begin_audit_entry(entry).await {
            tracing::error!(%error, "failed to record decision");
        }
    }

    /// Records and executes an action outside of the sandbox.
    pub(crate) async fn noted<T>(
        &self,
        action: &str,
        detail: &str,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let entry = self.begin(action, detail).await.map_err(|error| ToolError(error.to_string()))?;
        let done = work.await;
        self.end(entry, Some(i32::from(done.is_err()))).await;
        done
    }

    /// Records and executes an action of an operator.
    pub(crate) async fn operated<T, E>(
        &self,
        action: &str,
        detail: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, E>, StoreError> {
        let entry = self.db.begin_audit_entry(self.entry(action, detail)).await?;
        let done = work.await;
        self.end(entry, Some(i32::from(done.is_err()))).await;
        Ok(done)
    }

    async fn begin(&self, action: &str, detail: &str) -> Result<AuditEntryId, SandboxError> {
        self.db.begin_audit_entry(self.entry(action, detail)).await.map_err(|error: StoreError| {
            tracing::error!(%error, "refused action: failed to record audit entry");
            SandboxError::Refused(
                "this action could not be recorded in the audit log, so it was not executed".to_owned(),
            )
        })
    }

    async fn end(&self, id: AuditEntryId, code: Option<i32>) {
        if let Err(error) = self.db.end_audit_entry(id, code.map(i64::from), now()).await {
            tracing::error!(%error, "failed to record end of action");
        }
    }

    fn entry(&self, action: &str, detail: &str) -> AuditEntry {
        AuditEntry {
            at: now(),
            thread: self.thread.clone(),
            run: self.run.clone(),
            account: self.asker.account.clone(),
            person: self.asker.person.clone(),
            action: action.to_owned(),
            detail: shortened(detail),
            verdict: if self.is_guarded { "allowed, guardrails asked" } else { "allowed" }.to_owned(),
            code: None,
            ended: None,
        }
    }
}

/// Cuts the middle of a long text, and appends its length and SHA-256. The thread has the full text, and the digest
/// proves that it is the same text.
fn shortened(detail: &str) -> String {
    let count = detail.chars().count();
    if count <= MAX_COMMAND_CHARS {
        return detail.to_owned();
    }
    let head: String = detail.chars().take(ENDS.0).collect();
    let tail: String = detail.chars().skip(count - ENDS.1).collect();
    let digest = pudu_base::digest(detail);
    let left = count - ENDS.0 - ENDS.1;
    format!("{head}\n[{left} of {count} characters are left out; SHA-256 of the whole: {digest}]\n{tail}")
}

/// Returns the exit code for the record. A killed command has a negative code.
fn code(exec: &Exec) -> Option<i32> {
    exec.code.or(exec.killed.map(|why| match why {
        Killed::Late => -1,
        Killed::Memory(_) => -2,
        Killed::Disk(_) | Killed::Uncounted => -3,
        Killed::HostDisk => -4,
    }))
}

/// Returns why a command with this recorded code was killed; `None` if it was not killed.
#[must_use]
pub fn killed(code: i64) -> Option<&'static str> {
    match code {
        -1 => Some("out of time"),
        -2 => Some("too much memory"),
        -3 => Some("too much disk"),
        -4 => Some("the machine's disk is almost full"),
        STOPPED => Some("stopped"),
        ABANDONED => Some("the daemon ended"),
        _ => None,
    }
}

/// A sandbox whose commands and writes are recorded in the audit log.
pub(crate) struct Audited {
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) audit_log: AuditLog,
}

impl Sandbox for Audited {
    fn exec<'a>(&'a self, command: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
        Box::pin(async move {
            let names: Vec<&str> = command.variables.iter().map(|variable| variable.name.as_str()).collect();
            let detail = match names.as_slice() {
                [] => command.script.clone(),
                names => format!("{}\n[with secrets: {}]", command.script, names.join(", ")),
            };
            let entry = self.audit_log.begin("exec", &detail).await?;
            let done = self.sandbox.exec(command).await;
            self.audit_log.end(entry, done.as_ref().ok().and_then(code)).await;
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
            let entry = self.audit_log.begin("write", path).await?;
            let done = self.sandbox.write(path, bytes, append).await;
            self.audit_log.end(entry, Some(i32::from(done.is_err()))).await;
            done
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        depth: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
        self.sandbox.list(path, depth, limit)
    }

    fn measure<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<u64, SandboxError>> {
        self.sandbox.measure(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_is_recorded_by_its_ends_and_its_digest() {
        assert_eq!(shortened(&"x".repeat(MAX_COMMAND_CHARS)), "x".repeat(MAX_COMMAND_CHARS));
        let hidden = |secret: &str| format!("# {}\n{secret}", "ü".repeat(10_100));
        let noted = shortened(&hidden("rm -rf /mnt/user-data"));
        assert!(noted.ends_with("\nrm -rf /mnt/user-data") && noted.starts_with("# üü"), "{noted}");
        assert!(noted.contains("[124 of 10124 characters are left out; SHA-256 of the whole: "), "{noted}");
        assert!(noted.chars().count() < MAX_COMMAND_CHARS + 200);
        let middle = |word: &str| shortened(&format!("{}{word}{}", "a".repeat(8_000), "b".repeat(8_000)));
        assert_ne!(middle("one"), middle("two"), "the omitted part affects the digest");
    }

    #[test]
    fn a_killed_command_has_a_reason() {
        let check = |code: Option<i32>, why: Option<Killed>, expect: Option<&str>| {
            let exec = Exec { stdout: String::new(), stderr: String::new(), code, killed: why, cut: false };
            assert_eq!(super::code(&exec).and_then(|code| killed(code.into())), expect, "{why:?}");
        };
        check(Some(3), None, None);
        check(None, None, None);
        check(None, Some(Killed::Late), Some("out of time"));
        check(None, Some(Killed::Memory(1)), Some("too much memory"));
        check(None, Some(Killed::Disk(1)), Some("too much disk"));
        check(None, Some(Killed::Uncounted), Some("too much disk"));
        check(None, Some(Killed::HostDisk), Some("the machine's disk is almost full"));
    }
}
