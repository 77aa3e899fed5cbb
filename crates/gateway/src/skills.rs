//! Skills: which there are, switching them, and installing one from a thread's files. Shapes are DeerFlow's.
//!
//! Every client with access to the API sees them. Changes ask for the operator's token: a skill instructs the agent for
//! all users.

use super::{GatewayState, JsonReply, caller::Caller, thread};
use crate::{
    json::{BodyRejection, Json},
    query::Query,
};
use axum::{
    extract::{Path, State},
    http::StatusCode,
};
use pudu_client::{
    base::{SandboxError, UserId},
    skills::{ChangeAuthor, SkillChange, SkillError, SkillVersion},
    wire::skill::{ListedFinding, ListedSkill, SkillList},
};
use pudu_dispatch::sent;
use pudu_kit::clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Lists the skills, by name.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Json<SkillList> {
    Json(gateway.0.shared.client.list_skills().await)
}

/// Shows one skill.
pub(super) async fn show(State(gateway): State<GatewayState>, Path(name): Path<String>) -> JsonReply {
    told(gateway.0.shared.client.get_skill(&name).await)
}

/// New state of a skill's switch.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SkillToggle {
    enabled: bool,
}

/// Switches a skill on or off, from the next run on: one of the caller's own, or, for an administrator, a shared one.
pub(super) async fn switch(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Json(SkillToggle { enabled }): Json<SkillToggle>,
) -> JsonReply {
    let own = gateway.0.shared.client.catalog_of(&caller.user).await;
    let is_own = caller.user != UserId::local() && own.get(&name).is_some_and(|entry| entry.own);
    if !is_own && let Some(refusal) = not_admin(&caller) {
        return refusal;
    }
    let whose = if is_own { caller.user } else { UserId::local() };
    let switched = gateway.0.shared.client.update_skill(&whose, &name, enabled).await;
    told(switched.inspect(|skill| tracing::info!(skill = skill.name, enabled, "switched skill")))
}

fn not_admin(caller: &Caller) -> Option<JsonReply> {
    let detail = "Admin privileges required to change skills.";
    (!caller.is_admin()).then(|| (StatusCode::FORBIDDEN, Json(json!({ "detail": detail }))))
}

/// Reads all skills again. A run that finds a file changed reads them again first, so no cache has to be cleared.
pub(super) async fn reload(State(gateway): State<GatewayState>, caller: Caller) -> JsonReply {
    if let Some(refusal) = not_admin(&caller) {
        return refusal;
    }
    let count = gateway.0.shared.client.catalog().await.entries.len();
    let message = format!("{count} skills; changed files are read anew before each run");
    (StatusCode::OK, Json(json!({ "success": true, "scope": "process", "message": message })))
}

/// New text of a skill's `SKILL.md`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SkillText {
    content: String,
}

/// Overwrites a skill's `SKILL.md`. It is scanned, and has an entry in its history.
pub(super) async fn write_custom(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
    posted: Result<Json<SkillText>, BodyRejection>,
) -> JsonReply {
    if let Some(refusal) = not_admin(&caller) {
        return refusal;
    }
    let content = match posted {
        Ok(Json(SkillText { content })) => content,
        Err(error) => return (error.status(), Json(json!({ "detail": error.body_text() }))),
    };
    let user = owner.id();
    match operated(&gateway, &name, &user, SkillChange::Edit(content)).await {
        Ok(_) => with_text(&gateway, &name, &user).await,
        Err(error) => refused(&error),
    }
}

/// Takes a skill away. Its history stays, and brings it back.
pub(super) async fn remove_custom(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> JsonReply {
    if let Some(refusal) = not_admin(&caller) {
        return refusal;
    }
    match operated(&gateway, &name, &owner.id(), SkillChange::Delete).await {
        Ok(_) => (StatusCode::OK, Json(json!({ "success": true }))),
        Err(error) => refused(&error),
    }
}

/// Changes a skill as an operator, with a record in the audit.
async fn operated(
    gateway: &GatewayState,
    name: &str,
    user: &UserId,
    change: SkillChange,
) -> Result<SkillVersion, SkillError> {
    let detail = format!("{} {name} of {}", change.action(), user.as_str());
    let (wanted, user) = (name.to_owned(), user.clone());
    let changed = gateway.0.shared.client.with_skills(move |skills| {
        let own = skills.for_user(&user);
        if !own.read().get(&wanted).is_some_and(|entry| entry.editable) {
            return Err(SkillError::Unknown(wanted));
        }
        let author = ChangeAuthor { by: "operator".to_owned(), at: clock::now(), ..ChangeAuthor::default() };
        own.change(&wanted, &change, author)
    });
    match gateway.0.shared.client.operate_skill(&detail, changed).await {
        Ok(changed) => changed,
        Err(error) => Err(SkillError::Io { path: "audit".into(), why: std::io::Error::other(error) }),
    }
}

/// Location of the archive.
#[derive(Deserialize, JsonSchema)]
pub(super) struct InstallRequest {
    thread_id: String,
    path: String,
}

/// Installs a skill from an archive among a thread's files.
pub(super) async fn install(
    State(gateway): State<GatewayState>,
    Json(InstallRequest { thread_id, path }): Json<InstallRequest>,
) -> JsonReply {
    let no = |status, why: &str| (status, Json(json!({ "detail": why })));
    let Some(thread) = thread::read(&thread_id) else {
        return no(StatusCode::UNPROCESSABLE_ENTITY, thread::WRONG);
    };
    if !path.ends_with(".skill") {
        return no(StatusCode::BAD_REQUEST, "the file's name has to end in .skill");
    }
    // DeerFlow's clients leave the slash at the beginning out.
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    // The scanned file is the one that is installed, even if a command changes the original meanwhile.
    let shared = &gateway.0.shared;
    let kept = match shared.client.files(&thread).await {
        Ok(files) => sent::keep(&shared.home, &files, &path).await,
        Err(error) => Err(error),
    };
    let file = match kept {
        Ok(file) => file,
        Err(error @ SandboxError::Missing { .. }) => return no(StatusCode::NOT_FOUND, &error.to_string()),
        Err(error) => return no(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let installed = shared.client.install_skill(&file).await;
    told(installed.inspect(|skill| {
        tracing::info!(skill = skill.skill_name, findings = skill.findings.len(), "installed skill");
    }))
}

/// The user whose own skills are meant.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SkillOwner {
    #[serde(default)]
    user: Option<String>,
}

impl SkillOwner {
    fn id(self) -> UserId {
        self.user.and_then(|user| UserId::from_raw(&user).ok()).unwrap_or_default()
    }
}

/// Lists the skills that a user can change: the shared ones if no user is named.
pub(super) async fn custom(
    State(gateway): State<GatewayState>,
    Query(owner): Query<SkillOwner>,
) -> Json<SkillList> {
    let catalog = gateway.0.shared.client.catalog_of(&owner.id()).await;
    let own = catalog.entries.iter().filter(|entry| entry.editable);
    Json(SkillList { skills: own.map(ListedSkill::from).collect() })
}

/// Shows a skill that can be changed, with its text.
pub(super) async fn show_custom(
    State(gateway): State<GatewayState>,
    caller: Caller,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> JsonReply {
    if let Some(refusal) = not_admin(&caller) {
        return refusal;
    }
    with_text(&gateway, &name, &owner.id()).await
}

async fn with_text(gateway: &GatewayState, name: &str, user: &UserId) -> JsonReply {
    let catalog = gateway.0.shared.client.catalog_of(user).await;
    match catalog.get(name).filter(|entry| entry.editable) {
        Some(entry) => {
            let mut skill = json!(ListedSkill::from(entry));
            skill["content"] = json!(entry.text);
            (StatusCode::OK, Json(skill))
        }
        None => refused(&SkillError::Unknown(name.to_owned())),
    }
}

/// Lists the changes of a skill, oldest first, each with its text before and after.
pub(super) async fn history(
    State(gateway): State<GatewayState>,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> JsonReply {
    let user = owner.id();
    let told = gateway.0.shared.client.with_skills(move |skills| {
        let own = skills.for_user(&user);
        let versions = own.history(&name)?;
        let now = own.read().get(&name).filter(|entry| entry.editable).map(|entry| entry.text.to_string());
        let before: Vec<Option<String>> =
            versions.iter().map(|version| own.former_text(&name, version.number)).collect();
        let after = before.iter().skip(1).chain([&now]);
        Ok(versions
            .iter()
            .zip(&before)
            .zip(after)
            .map(|((version, before), after)| changed(version, before, after))
            .collect::<Vec<_>>())
    });
    match told.await {
        Ok(history) => (StatusCode::OK, Json(json!({ "history": history }))),
        Err(error) => refused(&error),
    }
}

fn changed(version: &SkillVersion, before: &Option<String>, after: &Option<String>) -> Value {
    let decision = if version.findings.is_empty() { "allow" } else { "warn" };
    json!({
        "version": version.number,
        "ts": clock::text(version.at),
        "action": version.action,
        "author": version.by,
        "reason": version.why,
        "thread_id": version.thread,
        "file_path": version.file,
        "prev_content": before,
        "new_content": after,
        "scanner": { "decision": decision, "findings": version.findings },
    })
}

/// The change before which a skill was as it is to be again: its version, or an index of the history, from its end if
/// negative.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
pub(super) struct RollbackRequest {
    #[serde(default = "newest")]
    history_index: i64,
    #[serde(default)]
    version: Option<u64>,
}

impl RollbackRequest {
    /// Returns the number of the change, if the index is one of the history.
    fn number(self, versions: &[SkillVersion]) -> Option<u64> {
        let index = match usize::try_from(self.history_index) {
            Ok(index) => Some(index),
            Err(_) => usize::try_from(self.history_index.unsigned_abs())
                .ok()
                .and_then(|back| versions.len().checked_sub(back)),
        };
        self.version.or(index.and_then(|index| versions.get(index)).map(|version| version.number))
    }
}

fn newest() -> i64 {
    -1
}

/// Brings a skill back as it was before a change.
pub(super) async fn rollback(
    State(gateway): State<GatewayState>,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
    Json(request): Json<RollbackRequest>,
) -> JsonReply {
    let (user, wanted) = (owner.id(), name.clone());
    let rolled = gateway.0.shared.client.with_skills({
        let user = user.clone();
        move |skills| {
            let own = skills.for_user(&user);
            let versions = own.history(&wanted)?;
            let number = request.number(&versions).ok_or_else(|| {
                SkillError::Wrong(format!("the history of `{wanted}` has {} changes", versions.len()))
            })?;
            let author =
                ChangeAuthor { by: "operator".to_owned(), at: clock::now(), ..ChangeAuthor::default() };
            own.change(&wanted, &SkillChange::Restore(number), author)
        }
    });
    let to = match request {
        RollbackRequest { version: Some(number), .. } => format!("before change {number}"),
        RollbackRequest { history_index, .. } => format!("history index {history_index}"),
    };
    let detail = format!("rollback {name} of {} to {to}", user.as_str());
    match gateway.0.shared.client.operate_skill(&detail, rolled).await {
        Ok(Ok(version)) => {
            tracing::info!(skill = name, version = version.number, "rolled back skill");
            with_text(&gateway, &name, &user).await
        }
        Ok(Err(error)) => refused(&error),
        Err(error) => refused(&SkillError::Io { path: "audit".into(), why: std::io::Error::other(error) }),
    }
}

/// Answers how work on a skill went.
fn told(done: Result<impl Serialize, SkillError>) -> JsonReply {
    match done {
        Ok(done) => (StatusCode::OK, Json(json!(done))),
        Err(error) => refused(&error),
    }
}

fn refused(error: &SkillError) -> JsonReply {
    let (status, detail) = match error {
        SkillError::Unknown(_) => (StatusCode::NOT_FOUND, json!(error.to_string())),
        SkillError::Exists { .. } => (StatusCode::CONFLICT, json!(error.to_string())),
        SkillError::Fixed { .. } => (StatusCode::FORBIDDEN, json!(error.to_string())),
        SkillError::Wrong(_) => (StatusCode::BAD_REQUEST, json!(error.to_string())),
        SkillError::Refused(_) | SkillError::Folder { .. } | SkillError::NoArchive { .. } => {
            (StatusCode::BAD_REQUEST, json!(error.to_string()))
        }
        SkillError::Blocked { name, report } => {
            let message = format!("the scan of `{name}` blocks it");
            let findings: Vec<Value> =
                report.findings.iter().map(|finding| json!(ListedFinding::from(finding))).collect();
            (StatusCode::BAD_REQUEST, json!({ "message": message, "skill_name": name, "findings": findings }))
        }
        SkillError::State { .. } | SkillError::Io { .. } => {
            tracing::error!(%error, "failed to change skill");
            let why = "that could not be kept; whoever runs this finds the reason in the log";
            (StatusCode::INTERNAL_SERVER_ERROR, json!(why))
        }
    };
    (status, Json(json!({ "detail": detail })))
}
