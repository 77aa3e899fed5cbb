//! Skills: which there are, switching them, and installing one from a thread's files. Shapes are DeerFlow's.
//!
//! Everybody with access to the API sees them. Changes ask for the operator's token: a skill tells the agent
//! what to do, for everybody.

use super::{GatewayState, JsonReply, thread};
use crate::sent;
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use pudu_client::{
    base::SandboxError,
    skills::{CatalogEntry, Finding, FindingSeverity, Installed, SkillError, Skills},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Lists the skills, by name.
pub(super) async fn list(State(gateway): State<GatewayState>) -> Json<Value> {
    let catalog = gateway.0.shared.client.catalog().await;
    Json(json!({ "skills": catalog.entries.iter().map(shown).collect::<Vec<_>>() }))
}

/// Shows one skill.
pub(super) async fn show(State(gateway): State<GatewayState>, Path(name): Path<String>) -> JsonReply {
    match gateway.0.shared.client.catalog().await.get(&name) {
        Some(entry) => (StatusCode::OK, Json(shown(entry))),
        None => refused(&SkillError::Unknown(name)),
    }
}

/// New state of a skill's switch.
#[derive(Deserialize)]
pub(super) struct SkillToggle {
    enabled: bool,
}

/// Switches a skill on or off, from the next run on.
pub(super) async fn switch(
    State(gateway): State<GatewayState>,
    Path(name): Path<String>,
    Json(SkillToggle { enabled }): Json<SkillToggle>,
) -> JsonReply {
    match work(&gateway, move |skills| skills.set_enabled(&name, enabled)).await {
        Ok(entry) => {
            tracing::info!(skill = entry.name, enabled, "switched skill");
            (StatusCode::OK, Json(shown(&entry)))
        }
        Err(error) => refused(&error),
    }
}

/// Location of the archive.
#[derive(Deserialize)]
pub(super) struct InstallRequest {
    thread_id: String,
    path: String,
}

/// Installs a skill from an archive among a thread's files.
pub(super) async fn install(
    State(gateway): State<GatewayState>,
    Json(InstallRequest { thread_id, path }): Json<InstallRequest>,
) -> JsonReply {
    let told = |status, why: &str| (status, Json(json!({ "detail": why })));
    let Some(thread) = thread::read(&thread_id) else {
        return told(StatusCode::UNPROCESSABLE_ENTITY, thread::WRONG);
    };
    if !path.ends_with(".skill") {
        return told(StatusCode::BAD_REQUEST, "the file's name has to end in .skill");
    }
    // DeerFlow's clients leave the slash at the beginning out.
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    // What is looked through is what is installed, whatever a command does to the file meanwhile.
    let shared = &gateway.0.shared;
    let kept = match shared.client.files(&thread).await {
        Ok(files) => sent::keep(&shared.home, &files, &path).await,
        Err(error) => Err(error),
    };
    let file = match kept {
        Ok(file) => file,
        Err(error @ SandboxError::Missing { .. }) => return told(StatusCode::NOT_FOUND, &error.to_string()),
        Err(error) => return told(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    match work(&gateway, move |skills| skills.install(&file, false)).await {
        Ok(Installed { name, report, .. }) => {
            tracing::info!(skill = name, findings = report.findings.len(), "installed skill");
            let message = format!("Skill '{name}' installed successfully");
            let findings: Vec<Value> = report.findings.iter().map(finding).collect();
            let answer =
                json!({ "success": true, "skill_name": name, "message": message, "findings": findings });
            (StatusCode::OK, Json(answer))
        }
        Err(error) => refused(&error),
    }
}

/// Works on skills where it may block.
async fn work<T: Send + 'static>(
    gateway: &GatewayState,
    work: impl FnOnce(Skills) -> Result<T, SkillError> + Send + 'static,
) -> Result<T, SkillError> {
    let skills = gateway.0.shared.client.skills();
    tokio::task::spawn_blocking(move || work(skills)).await.unwrap_or_else(|error| {
        Err(SkillError::Io { path: "skills".into(), why: std::io::Error::other(error) })
    })
}

fn shown(entry: &CatalogEntry) -> Value {
    json!({
        "name": entry.name,
        "description": entry.about,
        "license": entry.license,
        "category": entry.category.name(),
        "enabled": entry.enabled,
        "editable": entry.editable,
    })
}

fn finding(finding: &Finding) -> Value {
    let severity = match finding.severity {
        FindingSeverity::Warn => "warn",
        FindingSeverity::Block => "block",
    };
    json!({ "severity": severity, "file": finding.file, "line": finding.line, "rule": finding.rule, "what": finding.what })
}

fn refused(error: &SkillError) -> JsonReply {
    let (status, detail) = match error {
        SkillError::Unknown(_) => (StatusCode::NOT_FOUND, json!(error.to_string())),
        SkillError::Exists { .. } => (StatusCode::CONFLICT, json!(error.to_string())),
        SkillError::Fixed { .. } => (StatusCode::FORBIDDEN, json!(error.to_string())),
        SkillError::Refused(_) | SkillError::Folder { .. } | SkillError::NoArchive { .. } => {
            (StatusCode::BAD_REQUEST, json!(error.to_string()))
        }
        SkillError::Blocked { name, report } => {
            let message = format!("the scan of `{name}` blocks it");
            let findings: Vec<Value> = report.findings.iter().map(finding).collect();
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
