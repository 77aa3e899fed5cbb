//! Skills: list, enable, disable, and install from a thread's files. Requests and responses have DeerFlow's shapes.
//!
//! Every client with access to the API sees them. Changes require an administrator, because a skill instructs the agent
//! for all users; but a user can enable and disable their own skills.

use crate::{ApiError, Caller, Confirmation, GatewayState, Json, Query, openapi::Described, threads::thread};
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use pudu_base::{SandboxError, UserId};
use pudu_dispatch::sent;
use pudu_kit::clock;
use pudu_langgraph::skill::{InstalledSkill, ListedFinding, ListedSkill, SkillList};
use pudu_skills::{ChangeAuthor, SkillChange, SkillError, SkillVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the skills, by name.
pub(crate) async fn list(gateway: GatewayState) -> Json<SkillList> {
    Json(gateway.client().list_skills().await)
}

/// Shows one skill.
pub(crate) async fn show(
    gateway: GatewayState,
    Path(name): Path<String>,
) -> Result<Json<ListedSkill>, ApiError> {
    Ok(Json(gateway.client().get_skill(&name).await?))
}

/// New state of a skill.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SkillToggle {
    enabled: bool,
}

/// Enables or disables one of the caller's own skills or, for an administrator, a shared one, from the next run on.
pub(crate) async fn switch(
    gateway: GatewayState,
    caller: Caller,
    Path(name): Path<String>,
    Json(SkillToggle { enabled }): Json<SkillToggle>,
) -> Result<Json<ListedSkill>, ApiError> {
    let own = gateway.agent().catalog_of(&caller.user).await;
    let is_own = caller.user != UserId::local() && own.get(&name).is_some_and(|entry| entry.own);
    if !is_own {
        SkillAdmin::check(&caller)?;
    }
    let skill_owner = if is_own { caller.user } else { UserId::local() };
    let skill = gateway.client().update_skill(&skill_owner, &name, enabled).await?;
    tracing::info!(skill = skill.name, enabled, "switched skill");
    Ok(Json(skill))
}

/// Extractor that admits only administrators. Other users may not change skills, except to enable and disable their
/// own.
pub(crate) struct SkillAdmin;

impl Described for SkillAdmin {}

impl FromRequestParts<GatewayState> for SkillAdmin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, ApiError> {
        Self::check(&Caller::from_request_parts(parts, gateway).await?)
    }
}

impl SkillAdmin {
    fn check(caller: &Caller) -> Result<Self, ApiError> {
        match caller.is_admin() {
            true => Ok(Self),
            false => Err(ApiError::forbidden("Admin privileges required to change skills.")),
        }
    }
}

/// Confirmation that the skills were reloaded.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillReload {
    success: bool,
    scope: &'static str,
    message: String,
}

/// Reloads all skills. A run that finds a changed file reloads them first anyway, so no cache has to be cleared.
pub(crate) async fn reload(gateway: GatewayState, _: SkillAdmin) -> Result<Json<SkillReload>, ApiError> {
    let count = gateway.agent().catalog().await.entries.len();
    let message = format!("{count} skills; changed files are reloaded before each run");
    Ok(Json(SkillReload { success: true, scope: "process", message }))
}

/// New text of a skill's `SKILL.md`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SkillText {
    content: String,
}

/// A skill with its text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillWithText {
    #[serde(flatten)]
    skill: ListedSkill,
    content: String,
}

/// Overwrites a skill's `SKILL.md`. The new text is scanned, and the change is recorded in the skill's history.
pub(crate) async fn write_custom(
    gateway: GatewayState,
    _: SkillAdmin,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
    Json(SkillText { content }): Json<SkillText>,
) -> Result<Json<SkillWithText>, ApiError> {
    let user = owner.id();
    operated(&gateway, &name, &user, SkillChange::Edit(content)).await?;
    with_text(&gateway, &name, &user).await
}

/// Deletes a skill. Its history is kept, and can restore it.
pub(crate) async fn remove_custom(
    gateway: GatewayState,
    _: SkillAdmin,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> Result<Json<Confirmation>, ApiError> {
    operated(&gateway, &name, &owner.id(), SkillChange::Delete).await?;
    Ok(Json(Confirmation::silent()))
}

/// Changes a skill on behalf of an administrator, with an audit entry.
async fn operated(
    gateway: &GatewayState,
    name: &str,
    user: &UserId,
    change: SkillChange,
) -> Result<SkillVersion, SkillError> {
    let detail = format!("{} {name} of {}", change.action(), user.as_str());
    let (skill, user) = (name.to_owned(), user.clone());
    let changed = gateway.client().with_skills(move |skills| {
        let own = skills.for_user(&user);
        if !own.read().get(&skill).is_some_and(|entry| entry.editable) {
            return Err(SkillError::Unknown(skill));
        }
        let author = ChangeAuthor { by: "operator".to_owned(), at: clock::now(), ..ChangeAuthor::default() };
        own.change(&skill, &change, author)
    });
    gateway.agent().operate_skill(&detail, changed).await.unwrap_or_else(|error| Err(unaudited(error)))
}

/// Returns the error about a change that could not be recorded in the audit log.
fn unaudited(error: impl std::error::Error + Send + Sync + 'static) -> SkillError {
    SkillError::Io { path: "audit".into(), why: std::io::Error::other(error) }
}

/// Location of the archive.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InstallRequest {
    thread_id: String,
    path: String,
}

/// Installs a skill from an archive among a thread's files.
pub(crate) async fn install(
    gateway: GatewayState,
    Json(InstallRequest { thread_id, path }): Json<InstallRequest>,
) -> Result<Json<InstalledSkill>, ApiError> {
    let thread = thread::id(&thread_id)?;
    if !path.ends_with(".skill") {
        return Err(ApiError::bad_request("the file name must end in .skill"));
    }
    // DeerFlow's clients omit the leading slash.
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    // Installs the copy that was scanned, even if a command has changed the original since.
    let shared = &gateway.0.shared;
    let copy = match shared.agent.files(&thread).await {
        Ok(files) => sent::keep(&shared.home, &files, &path).await,
        Err(error) => Err(error),
    };
    let file = copy.map_err(|error| match error {
        SandboxError::Missing { .. } => ApiError::not_found(error.to_string()),
        _ => ApiError::bad_request(error.to_string()),
    })?;
    let skill = gateway.client().install_skill(&file).await?;
    tracing::info!(skill = skill.skill_name, findings = skill.findings.len(), "installed skill");
    Ok(Json(skill))
}

/// The user whose skills are listed.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SkillOwner {
    #[serde(default)]
    user: Option<String>,
}

impl SkillOwner {
    fn id(self) -> UserId {
        self.user.and_then(|user| UserId::from_raw(&user).ok()).unwrap_or_default()
    }
}

/// Lists the skills that a user can change: the shared ones if no user is named.
pub(crate) async fn custom(gateway: GatewayState, Query(owner): Query<SkillOwner>) -> Json<SkillList> {
    let catalog = gateway.agent().catalog_of(&owner.id()).await;
    let own = catalog.entries.iter().filter(|entry| entry.editable);
    Json(SkillList { skills: own.map(ListedSkill::from).collect() })
}

/// Shows a skill that can be changed, with its text.
pub(crate) async fn show_custom(
    gateway: GatewayState,
    _: SkillAdmin,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> Result<Json<SkillWithText>, ApiError> {
    with_text(&gateway, &name, &owner.id()).await
}

async fn with_text(
    gateway: &GatewayState,
    name: &str,
    user: &UserId,
) -> Result<Json<SkillWithText>, ApiError> {
    let catalog = gateway.agent().catalog_of(user).await;
    let entry = catalog.get(name).filter(|entry| entry.editable);
    let entry = entry.ok_or_else(|| SkillError::Unknown(name.to_owned()))?;
    Ok(Json(SkillWithText { skill: ListedSkill::from(entry), content: entry.text.to_string() }))
}

/// The changes of a skill.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SkillHistory {
    history: Vec<ShownSkillChange>,
}

/// A change of a skill.
#[derive(Serialize, JsonSchema)]
struct ShownSkillChange {
    version: u64,
    ts: String,
    action: String,
    author: String,
    reason: Option<String>,
    thread_id: Option<String>,
    file_path: Option<String>,
    prev_content: Option<String>,
    new_content: Option<String>,
    scanner: ScanResult,
}

/// Result of the scan of a change.
#[derive(Serialize, JsonSchema)]
struct ScanResult {
    /// `allow` or `warn`.
    decision: &'static str,
    findings: Vec<String>,
}

/// Lists the changes of a skill, oldest first, each with its text before and after.
pub(crate) async fn history(
    gateway: GatewayState,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
) -> Result<Json<SkillHistory>, ApiError> {
    let user = owner.id();
    let history = gateway.client().with_skills(move |skills| {
        let own = skills.for_user(&user);
        let versions = own.history(&name)?;
        let now = own.read().get(&name).filter(|entry| entry.editable).map(|entry| entry.text.to_string());
        let before: Vec<Option<String>> =
            versions.iter().map(|version| own.former_text(&name, version.number)).collect();
        let after = before.iter().skip(1).chain([&now]).cloned().collect::<Vec<_>>();
        let each = versions.iter().zip(before).zip(after);
        Ok(each.map(|((version, before), after)| changed(version, before, after)).collect())
    });
    Ok(Json(SkillHistory { history: history.await? }))
}

fn changed(version: &SkillVersion, before: Option<String>, after: Option<String>) -> ShownSkillChange {
    let decision = if version.findings.is_empty() { "allow" } else { "warn" };
    ShownSkillChange {
        version: version.number,
        ts: clock::text(version.at),
        action: version.action.clone(),
        author: version.by.clone(),
        reason: version.why.clone(),
        thread_id: version.thread.clone(),
        file_path: version.file.clone(),
        prev_content: before,
        new_content: after,
        scanner: ScanResult { decision, findings: version.findings.clone() },
    }
}

/// The change to undo, along with all later ones: its version, or its index in the history, counted from the end if
/// negative.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
pub(crate) struct RollbackRequest {
    #[serde(default = "newest")]
    history_index: i64,
    #[serde(default)]
    version: Option<u64>,
}

impl RollbackRequest {
    /// Returns the number of the change, if the index is within the history.
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

/// Restores a skill to its state before a change.
pub(crate) async fn rollback(
    gateway: GatewayState,
    Path(name): Path<String>,
    Query(owner): Query<SkillOwner>,
    Json(request): Json<RollbackRequest>,
) -> Result<Json<SkillWithText>, ApiError> {
    let (user, wanted) = (owner.id(), name.clone());
    let rolled = gateway.client().with_skills({
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
    let rolled = gateway.agent().operate_skill(&detail, rolled).await;
    let version = rolled.unwrap_or_else(|error| Err(unaudited(error)))?;
    tracing::info!(skill = name, version = version.number, "rolled back skill");
    with_text(&gateway, &name, &user).await
}

impl From<SkillError> for ApiError {
    fn from(error: SkillError) -> Self {
        match &error {
            SkillError::Unknown(_) => Self::not_found(error.to_string()),
            SkillError::Exists { .. } => Self::conflict(error.to_string()),
            SkillError::Fixed { .. } => Self::forbidden(error.to_string()),
            SkillError::Wrong(_)
            | SkillError::Refused(_)
            | SkillError::Folder { .. }
            | SkillError::NoArchive { .. } => Self::bad_request(error.to_string()),
            SkillError::Blocked { name, report } => {
                let message = format!("the security scan refused `{name}`");
                let findings: Vec<_> = report.findings.iter().map(ListedFinding::from).collect();
                Self::bad_request(json!({ "message": message, "skill_name": name, "findings": findings }))
            }
            SkillError::State { .. } | SkillError::Io { .. } => {
                tracing::error!(%error, "failed to change skill");
                Self::internal("the change could not be stored; see the log for the reason")
            }
        }
    }
}
