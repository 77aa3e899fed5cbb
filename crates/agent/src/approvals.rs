//! Approval of an agent's calls by people. A question is stored before it is shown, so that it is asked again after a
//! restart, and a decision made in the meantime counts.
//!
//! Deliberately absent: the rights to decide, and the display of questions. The dispatcher and the gateway handle both.

use crate::audit;
use base::{ApprovalRequest, Approver, BoxFuture, Decision, RunEvent, Tell};
use pudu_base as base;
use pudu_kit::clock::millis;
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::{Approval, ApprovalDecision, Db, StoreError, now};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::Notify;

/// Tool result if the run's client does not show approvals.
const NO_CLIENT_ASKS: &str = "Error: this call needs approval, but the client of this run does not show approval requests. Describe what you would have done, and say that a run with `\"approvals\": \"ask\"` in its `context` can ask for approval. Do not try another way.";
/// Tool result in a chat without an approver.
const NO_APPROVER_SEES: &str = "Error: this call needs approval, but no approver can read this chat. Describe what you would have done, and say that it can be approved in a group with an approver. Do not try another way.";

/// Approval requests without a decision.
pub struct PendingApprovals {
    db: Db,
    /// Timeout of a question.
    patience: RwLock<Duration>,
    /// The waiting calls, by question id.
    waiting: Mutex<HashMap<String, Arc<Notify>>>,
}

impl PendingApprovals {
    pub(crate) fn new(db: Db, patience: Duration) -> Self {
        Self { db, patience: RwLock::new(patience), waiting: Mutex::default() }
    }

    pub(crate) fn set_patience(&self, patience: Duration) {
        *self.patience.write().unwrap_or_else(PoisonError::into_inner) = patience;
    }

    /// Returns a question.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn get(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.db.approval(id).await
    }

    /// Records a decision by `by`, and returns the question with its decision. The first decision counts.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn decide(&self, id: &str, approved: bool, by: &str) -> Result<Option<Approval>, StoreError> {
        let ruling = ApprovalDecision { approved, by: Some(by.to_owned()), at: now() };
        let decided = self.db.decide(id, ruling).await?;
        if let Some(bell) = self.lock().get(id) {
            bell.notify_waiters();
        }
        Ok(decided)
    }

    /// Stores a question, and waits for its decision.
    async fn ask(
        &self,
        asked: Approval,
        announce: impl FnOnce(&Approval),
    ) -> Result<ApprovalDecision, StoreError> {
        let arguments = asked.arguments.clone();
        let found = self.db.ask(&asked).await?;
        if found.arguments != arguments {
            // The same call with other arguments, which the approvers have not seen.
            return Ok(ApprovalDecision { approved: false, by: None, at: found.asked });
        }
        if let Some(ruling) = found.decision {
            return Ok(ruling);
        }
        let _waits = Waits::new(self, &found.id);
        announce(&found);
        loop {
            let bell = self.lock().get(&found.id).cloned().unwrap_or_default();
            let rings = bell.notified();
            if let Some(ruling) = self.db.approval(&found.id).await?.and_then(|asked| asked.decision) {
                return Ok(ruling);
            }
            let left = u64::try_from(found.deadline - now()).unwrap_or(0);
            if tokio::time::timeout(Duration::from_millis(left), rings).await.is_err() {
                break;
            }
        }
        let late = ApprovalDecision { approved: false, by: None, at: now() };
        let decided = self.db.decide(&found.id, late.clone()).await?;
        // A decision may have arrived at the last moment.
        Ok(decided.and_then(|asked| asked.decision).unwrap_or(late))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers a wait for a question until dropped.
struct Waits<'a> {
    approvals: &'a PendingApprovals,
    id: String,
}

impl<'a> Waits<'a> {
    fn new(approvals: &'a PendingApprovals, id: &str) -> Self {
        approvals.lock().insert(id.to_owned(), Arc::default());
        Self { approvals, id: id.to_owned() }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.approvals.lock().remove(&self.id);
    }
}

/// Asks the requester of a run.
pub(crate) struct StoredApprovals {
    pub(crate) approvals: Arc<PendingApprovals>,
    pub(crate) audit_log: audit::AuditLog,
}

impl Approver for StoredApprovals {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            if self.audit_log.asker.cannot_approve {
                self.audit_log
                    .note("ask", &request.line, "denied: no approver can see the question".to_owned())
                    .await;
                return Decision {
                    request: request.line.clone(),
                    approved: false,
                    by: None,
                    not_asked: true,
                };
            }
            let asked = self.approvals.ask(self.question(request), |found| {
                let (call, key) = (request.call.clone(), found.id.clone());
                tell(RunEvent::ApprovalRequested {
                    call,
                    key,
                    request: request.line.clone(),
                    whole: request.whole.clone(),
                    deadline: found.deadline,
                });
            });
            let ruling = asked.await.unwrap_or_else(|error| {
                tracing::error!(%error, "failed to ask for approval");
                ApprovalDecision { approved: false, by: None, at: now() }
            });
            let verdict = match (ruling.approved, &ruling.by) {
                (true, by) => format!("approved by {}", by.as_deref().unwrap_or("nobody")),
                (false, Some(by)) => format!("denied by {by}"),
                (false, None) => "denied: no decision in time".to_owned(),
            };
            self.audit_log.note("ask", &request.line, verdict).await;
            Decision {
                request: request.line.clone(),
                approved: ruling.approved,
                by: ruling.by,
                not_asked: false,
            }
        })
    }

    fn not_asked(&self) -> &'static str {
        match self.audit_log.asker.account.as_str() {
            API_ACCOUNT => NO_CLIENT_ASKS,
            _ => NO_APPROVER_SEES,
        }
    }

    fn refused<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(self.audit_log.note("ask", &request.line, "blocked".to_owned()))
    }
}

impl StoredApprovals {
    fn question(&self, request: &ApprovalRequest) -> Approval {
        let patience = *self.approvals.patience.read().unwrap_or_else(PoisonError::into_inner);
        let asked = now();
        Approval {
            id: fresh(),
            run: request.run.clone(),
            call: request.call.clone(),
            thread: request.thread.clone(),
            tool: request.tool.clone(),
            arguments: digest(request),
            request: request.line.clone(),
            account: self.audit_log.asker.account.clone(),
            person: self.audit_log.asker.person.clone(),
            name: self.audit_log.asker.name.clone(),
            asked,
            deadline: asked.saturating_add(millis(patience)),
            decision: None,
        }
    }
}

/// Returns the SHA-256 of the tool's name and its arguments, with sorted keys.
fn digest(request: &ApprovalRequest) -> String {
    pudu_base::digest(format!("{}\n{}", request.tool, request.args))
}

/// Returns a fresh question id with 74 random bits.
fn fresh() -> String {
    base::MessageId::fresh().as_str().replace('-', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Asker;
    use pudu_store::DbLocation;
    use serde_json::{Value, json};
    use tokio::sync::mpsc;

    /// Returns an approver over the store in a folder.
    async fn desk(home: &std::path::Path) -> StoredApprovals {
        let db = Db::open(&DbLocation::Sqlite(home.join("pudu.db"))).await.unwrap();
        let asker =
            Asker { account: "a".into(), person: "5".into(), name: "Ada".into(), cannot_approve: false };
        let audit_log =
            audit::AuditLog { db: db.clone(), thread: "t".into(), run: "r".into(), asker, is_guarded: false };
        StoredApprovals {
            approvals: Arc::new(PendingApprovals::new(db, Duration::from_secs(600))),
            audit_log,
        }
    }

    /// Requests approval of a call with arguments, and approves every question. Returns whether the call was approved,
    /// and whether a question was asked.
    async fn approved(desk: &StoredApprovals, args: Value) -> (bool, bool) {
        let request = ApprovalRequest {
            thread: "t".into(),
            run: "r".into(),
            call: "c".into(),
            tool: "write_file".into(),
            args,
            line: "`write_file`".into(),
            whole: None,
        };
        let (bell, mut rings) = mpsc::channel(1);
        let tell: Tell = Arc::new(move |event| {
            if let RunEvent::ApprovalRequested { key, .. } = event {
                bell.try_send(key).unwrap();
            }
        });
        let decided = desk.decide(&request, &tell);
        let mut asked = false;
        tokio::pin!(decided);
        let decision = loop {
            tokio::select! {
                biased;
                decision = &mut decided => break decision,
                Some(key) = rings.recv() => {
                    asked = true;
                    desk.approvals.decide(&key, true, "Ada").await.unwrap();
                }
            }
        };
        (decision.approved, asked)
    }

    #[tokio::test]
    async fn an_approval_applies_only_to_the_shown_arguments_even_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let shown = || json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"});
        assert_eq!(approved(&desk(home.path()).await, shown()).await, (true, true));
        let again = desk(home.path()).await;
        let other = json!({"path": "/mnt/user-data/outputs/a.txt", "content": "something else"});
        assert_eq!(approved(&again, other).await, (false, false), "other arguments are not approved");
        assert_eq!(approved(&again, shown()).await, (true, false), "the approval is still valid");
    }
}
