//! Approval requests of agents, and the decisions on them.
//!
//! A request is bound to one call of one run and to its exact arguments. The first decision is final. Callers check
//! whether the person may decide.

use crate::{
    Db, Result, crash,
    engines::{FromRow, Row, query},
};
use pudu_base::{CallId, RunId, ThreadId};

/// A call that needs a person's approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Its id, which cannot be guessed.
    pub id: String,
    /// The run that requests the approval.
    pub run: RunId,
    /// The tool call to approve.
    pub call: CallId,
    /// The thread.
    pub thread: ThreadId,
    /// The tool.
    pub tool: String,
    /// A digest of the call's arguments. The approval is for exactly these.
    pub arguments: String,
    /// One-line description of the requested action for people.
    pub request: String,
    /// The bot of the person on whose behalf the run works, or `api` or `local`; empty if none.
    pub account: String,
    /// The platform's id of that person.
    pub person: String,
    /// The name of that person.
    pub name: String,
    /// Time of the request, in milliseconds since 1970.
    pub asked: i64,
    /// Deadline of the decision.
    pub deadline: i64,
    /// The decision.
    pub decision: Option<ApprovalDecision>,
}

/// Decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Whether the action was approved.
    pub approved: bool,
    /// Name of the person who decided; `None` if the deadline passed.
    pub by: Option<String>,
    /// Time of the decision.
    pub at: i64,
}

const BY_ID: &str = "SELECT * FROM approvals WHERE id = $1";
const BY_CALL: &str = "SELECT * FROM approvals WHERE run = $1 AND call = $2";

impl FromRow for Approval {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let text = |at: &str| row.column::<String>(at);
        let decision = match row.column::<Option<i64>>("approved")? {
            Some(approved) => Some(ApprovalDecision {
                approved: approved != 0,
                by: row.column("decided_by")?,
                at: row.column("decided")?,
            }),
            None => None,
        };
        Ok(Self {
            id: text("id")?,
            run: text("run")?.into(),
            call: text("call")?.into(),
            thread: text("thread")?.into(),
            tool: text("tool")?,
            arguments: text("arguments")?,
            request: text("wish")?,
            account: text("account")?,
            person: text("person")?,
            name: text("name")?,
            asked: row.column("asked")?,
            deadline: row.column("deadline")?,
            decision,
        })
    }
}

impl Db {
    /// Stores a request. If one for the same call exists, returns it in its current state instead.
    pub async fn ask(&self, approval: &Approval) -> Result<Approval> {
        let approval = approval.clone();
        self.write(&crash::ASK, move |tx| {
            let sql = "INSERT INTO approvals
                (id, run, call, thread, tool, arguments, wish, account, person, name, asked, deadline)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (run, call) DO NOTHING";
            let Approval {
                id, run, call, thread, tool, arguments, request: wish, account, person, name, ..
            } = &approval;
            let texts = [
                id,
                run.as_str(),
                call.as_str(),
                thread.as_str(),
                tool,
                arguments,
                wish,
                account,
                person,
                name,
            ];
            let insert = query(sql).bind_all(texts);
            insert.bind(approval.asked).bind(approval.deadline).execute(tx)?;
            query(BY_CALL).bind(run.as_str()).bind(call.as_str()).fetch_one(tx)
        })
        .await
    }

    /// Decides a request, unless it is already decided. Returns its current state, or `None` if it is unknown.
    pub async fn decide(&self, id: &str, decision: ApprovalDecision) -> Result<Option<Approval>> {
        let id = id.to_owned();
        self.write(&crash::DECIDE, move |tx| {
            let sql = "UPDATE approvals SET approved = $1, decided_by = $2, decided = $3
                WHERE id = $4 AND approved IS NULL";
            let update =
                query(sql).bind(i64::from(decision.approved)).bind(decision.by.as_deref()).bind(decision.at);
            update.bind(&id).execute(tx)?;
            query(BY_ID).bind(&id).fetch_optional(tx)
        })
        .await
    }

    /// Returns a request.
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>> {
        self.find(query(BY_ID).bind(id)).await
    }
}
