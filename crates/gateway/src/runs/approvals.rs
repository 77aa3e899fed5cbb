//! Approvals in clients' runs: the waiting calls, and the decisions on them.
//!
//! Deliberately absent: approvals in turns of chats. There, the account's rules name the approvers
//! (`dispatch/approval.rs`).

use crate::{
    ApiError, Caller, GatewayState, Json, Scrubbed,
    auth::CallerProof,
    threads::{owned::ThreadPath, thread},
};
use axum::{Extension, extract::Path};
use pudu_base::{RunId, ThreadId};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_harness::subagent::told_call;
use pudu_kit::clock;
use pudu_langgraph::{clock::iso, thread::API_ACCOUNT};
use pudu_people::names::UserNames;
use pudu_store::{Approval, ApprovalDecision};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision on a waiting call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    approved: bool,
}

/// A call that waits, or waited, for an approval.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub(crate) struct ListedApproval {
    id: String,
    run_id: RunId,
    call_id: String,
    tool: String,
    request: String,
    /// The whole request, if `request` is shortened.
    whole: Option<String>,
    asked_at: String,
    deadline: String,
    /// `open`, `expired`, `approved` or `denied`.
    status: &'static str,
    decided_by: Option<String>,
    decided_at: Option<String>,
}

/// Lists the calls in a thread's runs that wait for an approval, oldest first.
pub(crate) async fn list(
    gateway: GatewayState,
    ThreadPath(thread): ThreadPath,
) -> Result<Scrubbed<Vec<ListedApproval>>, ApiError> {
    if gateway.db().client_thread(&thread).await?.is_none() {
        return Err(thread::not_found());
    }
    let (names, mut open) = (UserNames::read(&gateway.db()).await?, Vec::new());
    for live in gateway.runs().live_runs(&thread) {
        for pending in live.replay.progress().asked {
            if let Some(asked) = find(&gateway, &thread, &pending.key).await? {
                open.push(ListedApproval::new(&asked, pending.whole.as_deref(), &names));
            }
        }
    }
    Ok(Scrubbed(open))
}

/// Approves or denies a call. A repeated decision changes nothing.
pub(crate) async fn decide(
    gateway: GatewayState,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    Path((_, id)): Path<(String, String)>,
    Json(DecisionBody { approved }): Json<DecisionBody>,
) -> Result<Scrubbed<ListedApproval>, ApiError> {
    decide_call(&gateway, &proof.decider(&caller), &thread, &id, approved).await.map(Scrubbed)
}

/// Approves or denies a call as `by`.
pub(crate) async fn decide_call(
    gateway: &GatewayState,
    by: &str,
    thread: &ThreadId,
    id: &str,
    approved: bool,
) -> Result<ListedApproval, ApiError> {
    let approval = find(gateway, thread, id).await?.ok_or_else(unknown)?;
    if approval.decision.is_none() {
        check_waits(gateway, &approval).await?;
    }
    let approvals = gateway.agent().approvals();
    let deciding = tokio::time::timeout(STORE_TIMEOUT, approvals.decide(id, approved, by)).await;
    let approval = deciding.map_err(|late| ApiError::store(&late))??.ok_or_else(unknown)?;
    let names = UserNames::read(&gateway.db()).await?;
    match &approval.decision {
        Some(ApprovalDecision { by: Some(_), approved: first, .. }) if *first == approved => {
            Ok(ListedApproval::new(&approval, None, &names))
        }
        Some(ApprovalDecision { by: Some(by), approved: first, .. }) => {
            let word = if *first { "approved" } else { "denied" };
            Err(ApiError::conflict(format!("{} has already {word} this call", names.named(by))))
        }
        _ => Err(late()),
    }
}

/// Finds a question of a client's run on a thread.
async fn find(gateway: &GatewayState, thread: &ThreadId, id: &str) -> Result<Option<Approval>, ApiError> {
    let found = gateway.db().approval(id).await?;
    Ok(found.filter(|asked| asked.thread == *thread && asked.account == API_ACCOUNT))
}

/// Refuses a decision if no run is waiting for it any more.
async fn check_waits(gateway: &GatewayState, approval: &Approval) -> Result<(), ApiError> {
    if approval.deadline <= clock::now() {
        return Err(late());
    }
    let (run, _) = told_call(&approval.run, &approval.call);
    match gateway.db().run(&run).await? {
        Some(row) if row.ended.is_none() => Ok(()),
        _ => Err(ApiError::gone("the run has ended and no longer waits for a decision")),
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("this thread has no approval request with this id")
}

fn late() -> ApiError {
    ApiError::gone("the decision came too late: the call was denied at its deadline")
}

impl ListedApproval {
    fn new(approval: &Approval, whole: Option<&str>, names: &UserNames) -> Self {
        let (run_id, call) = told_call(&approval.run, &approval.call);
        let decision = approval.decision.as_ref();
        let status = match decision {
            None => "open",
            Some(ApprovalDecision { by: None, .. }) => "expired",
            Some(ApprovalDecision { approved: true, .. }) => "approved",
            Some(_) => "denied",
        };
        Self {
            id: approval.id.clone(),
            run_id,
            call_id: call.to_string(),
            tool: approval.tool.clone(),
            request: approval.request.clone(),
            whole: whole.map(str::to_owned),
            asked_at: iso(approval.asked),
            deadline: iso(approval.deadline),
            status,
            decided_by: decision.and_then(|decision| decision.by.as_deref()).map(|by| names.named(by)),
            decided_at: decision.map(|decision| iso(decision.at)),
        }
    }
}
