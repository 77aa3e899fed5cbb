//! Approvals in runs of clients: the calls that wait, and the decisions on them.
//!
//! Deliberately absent: approvals in turns of chats. The rules of their account name the approvers
//! (`dispatch/approval.rs`).

use crate::{
    ApiError, Caller, GatewayState, Json, Scrubbed,
    auth::CallerProof,
    threads::{owned::ThreadPath, thread},
};
use axum::{Extension, extract::Path};
use pudu_client::{
    base::{RunId, ThreadId},
    harness::subagent::told_call,
    store::{Approval, ApprovalDecision},
    wire::{clock::iso, thread::API_ACCOUNT},
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use pudu_people::names::UserNames;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision on a call that waits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    approved: bool,
}

/// A call that waits for an approval, or waited for one.
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
        return Err(thread::missing());
    }
    let (names, mut open) = (UserNames::read(&gateway.db()).await?, Vec::new());
    for live in gateway.client().live_runs(&thread) {
        for pending in live.replay.progress().asked {
            if let Some(asked) = find(&gateway, &thread, &pending.key).await? {
                open.push(ListedApproval::new(&asked, pending.whole.as_deref(), &names));
            }
        }
    }
    Ok(Scrubbed(open))
}

/// Approves or denies a call. Done again it changes nothing.
pub(crate) async fn decide(
    gateway: GatewayState,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    ThreadPath(thread): ThreadPath,
    Path((_, id)): Path<(String, String)>,
    Json(DecisionBody { approved }): Json<DecisionBody>,
) -> Result<Scrubbed<ListedApproval>, ApiError> {
    let asked = find(&gateway, &thread, &id).await?.ok_or_else(unknown)?;
    if asked.decision.is_none() {
        check_waits(&gateway, &asked).await?;
    }
    let (approvals, by) = (gateway.client().approvals(), proof.decider(&caller));
    let deciding = tokio::time::timeout(STORE_TIMEOUT, approvals.decide(&id, approved, &by)).await;
    let asked = deciding.map_err(|late| ApiError::store(&late))??.ok_or_else(unknown)?;
    let names = UserNames::read(&gateway.db()).await?;
    match &asked.decision {
        Some(ApprovalDecision { by: Some(_), approved: first, .. }) if *first == approved => {
            Ok(Scrubbed(ListedApproval::new(&asked, None, &names)))
        }
        Some(ApprovalDecision { by: Some(by), approved: first, .. }) => {
            let word = if *first { "approved" } else { "denied" };
            Err(ApiError::conflict(format!("{} has {word} this call already", names.named(by))))
        }
        _ => Err(late()),
    }
}

/// Finds a question that a client's run asks on a thread.
async fn find(gateway: &GatewayState, thread: &ThreadId, id: &str) -> Result<Option<Approval>, ApiError> {
    let found = gateway.db().approval(id).await?;
    Ok(found.filter(|asked| asked.thread == *thread && asked.account == API_ACCOUNT))
}

/// Refuses a decision for which no run waits any more.
async fn check_waits(gateway: &GatewayState, asked: &Approval) -> Result<(), ApiError> {
    if asked.deadline <= clock::now() {
        return Err(late());
    }
    let (run, _) = told_call(&asked.run, &asked.call);
    match gateway.db().run(&run).await? {
        Some(row) if row.ended.is_none() => Ok(()),
        _ => Err(ApiError::gone("the run that asked is over: nothing waits for a decision")),
    }
}

fn unknown() -> ApiError {
    ApiError::not_found("no run of this thread asks for such an approval")
}

fn late() -> ApiError {
    ApiError::gone("the time to decide is over: nobody approved this call")
}

impl ListedApproval {
    fn new(asked: &Approval, whole: Option<&str>, names: &UserNames) -> Self {
        let (run_id, call) = told_call(&asked.run, &asked.call);
        let decision = asked.decision.as_ref();
        let status = match decision {
            None => "open",
            Some(ApprovalDecision { by: None, .. }) => "expired",
            Some(ApprovalDecision { approved: true, .. }) => "approved",
            Some(_) => "denied",
        };
        Self {
            id: asked.id.clone(),
            run_id,
            call_id: call.to_string(),
            tool: asked.tool.clone(),
            request: asked.request.clone(),
            whole: whole.map(str::to_owned),
            asked_at: iso(asked.asked),
            deadline: iso(asked.deadline),
            status,
            decided_by: decision.and_then(|decision| decision.by.as_deref()).map(|by| names.named(by)),
            decided_at: decision.map(|decision| iso(decision.at)),
        }
    }
}
