//! Approvals in runs of clients: the calls that wait, and the decisions on them.
//!
//! Deliberately absent: approvals in turns of chats. The rules of their account name the approvers
//! (`dispatch/approval.rs`).

use super::{
    GatewayState,
    auth::CallerProof,
    caller::Caller,
    refusal::{ACCOUNT, Refusal, answer, body, missing, refused, scrubbed, unavailable},
    thread,
};
use crate::json::{BodyRejection, Json};
use axum::{
    Extension,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use pudu_client::{
    base::ThreadId,
    harness::subagent::told_call,
    store::{Approval, ApprovalDecision},
    wire::clock::iso,
};
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_kit::clock;
use pudu_people::names::UserNames;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A decision on a call that waits.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionBody {
    approved: bool,
}

/// Lists the calls in a thread's runs that wait for an approval, oldest first.
pub(super) async fn list(State(gateway): State<GatewayState>, Path(id): Path<String>) -> Response {
    let listed = async {
        let (thread, db) = (thread::id(&id)?, gateway.0.shared.db.within(STORE_TIMEOUT));
        if db.client_thread(&thread).await.map_err(|error| unavailable(&error))?.is_none() {
            return missing();
        }
        let (names, mut open) = (names(&gateway).await?, Vec::new());
        for live in gateway.0.shared.client.live_runs(&thread) {
            for pending in live.replay.progress().asked {
                if let Some(asked) = find(&gateway, &thread, &pending.key).await? {
                    open.push(told(&asked, pending.whole.as_deref(), &names));
                }
            }
        }
        Ok(scrubbed(&open))
    };
    answer(listed.await)
}

/// Approves or denies a call. Done again it changes nothing.
pub(super) async fn decide(
    State(gateway): State<GatewayState>,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    Path((thread, id)): Path<(String, String)>,
    posted: Result<Json<DecisionBody>, BodyRejection>,
) -> Response {
    let decided = async {
        let (thread, DecisionBody { approved }) = (thread::id(&thread)?, body(posted)?);
        let Some(asked) = find(&gateway, &thread, &id).await? else { return unknown() };
        if asked.decision.is_none() {
            check_waits(&gateway, &asked).await?;
        }
        let (approvals, by) = (gateway.0.shared.client.approvals(), proof.decider(&caller));
        let deciding = tokio::time::timeout(STORE_TIMEOUT, approvals.decide(&id, approved, &by)).await;
        let decided = deciding.map_err(|late| unavailable(&late))?.map_err(|error| unavailable(&error))?;
        let Some(asked) = decided else { return unknown() };
        let names = names(&gateway).await?;
        match &asked.decision {
            Some(ApprovalDecision { by: Some(_), approved: first, .. }) if *first == approved => {
                Ok(scrubbed(&told(&asked, None, &names)))
            }
            Some(ApprovalDecision { by: Some(by), approved: first, .. }) => {
                let word = if *first { "approved" } else { "denied" };
                let by = names.named(by);
                refused(StatusCode::CONFLICT, &format!("{by} has {word} this call already"))
            }
            _ => late(),
        }
    };
    answer(decided.await)
}

/// Finds a question that a client's run asks on a thread.
async fn find(gateway: &GatewayState, thread: &ThreadId, id: &str) -> Result<Option<Approval>, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    let found = db.approval(id).await.map_err(|error| unavailable(&error))?;
    Ok(found.filter(|asked| asked.thread == *thread && asked.account == ACCOUNT))
}

/// Refuses a decision for which no run waits any more.
async fn check_waits(gateway: &GatewayState, asked: &Approval) -> Result<(), Refusal> {
    if asked.deadline <= clock::now() {
        return late();
    }
    let (run, _) = told_call(&asked.run, &asked.call);
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    match db.run(&run).await.map_err(|error| unavailable(&error))? {
        Some(row) if row.ended.is_none() => Ok(()),
        _ => refused(StatusCode::GONE, "the run that asked is over: nothing waits for a decision"),
    }
}

fn unknown<T>() -> Result<T, Refusal> {
    refused(StatusCode::NOT_FOUND, "no run of this thread asks for such an approval")
}

fn late<T>() -> Result<T, Refusal> {
    refused(StatusCode::GONE, "the time to decide is over: nobody approved this call")
}

async fn names(gateway: &GatewayState) -> Result<UserNames, Refusal> {
    let db = gateway.0.shared.db.within(STORE_TIMEOUT);
    UserNames::read(&db).await.map_err(|error| unavailable(&error))
}

fn told(asked: &Approval, whole: Option<&str>, names: &UserNames) -> Value {
    let (run, call) = told_call(&asked.run, &asked.call);
    let decision = asked.decision.as_ref();
    let status = match decision {
        None => "open",
        Some(ApprovalDecision { by: None, .. }) => "expired",
        Some(ApprovalDecision { approved: true, .. }) => "approved",
        Some(_) => "denied",
    };
    json!({
        "id": asked.id,
        "run_id": run,
        "call_id": call,
        "tool": asked.tool,
        "request": asked.request,
        "whole": whole,
        "asked_at": iso(asked.asked),
        "deadline": iso(asked.deadline),
        "status": status,
        "decided_by": decision.and_then(|decision| decision.by.as_deref()).map(|by| names.named(by)),
        "decided_at": decision.map(|decision| iso(decision.at)),
    })
}
