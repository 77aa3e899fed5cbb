//! `skill_manage`: an agent makes and changes the skills of its user or room.
//!
//! Each change is tried on a copy and reviewed before approval; then a person approves it, unless an operator sets
//! otherwise (`approvals.skill_changes`); then it is reviewed once more and put into place in one step, with the
//! previous version in the history.

use crate::{
    audit::AuditLog,
    moderation::{ModerationVerdict, Moderator},
    now,
};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use pudu_harness::SKILL_MANAGE;
use pudu_skills::{
    ChangeAuthor, ChangePreview, OwnSkills, SkillChange, SkillError, SkillVersion, WrittenFile,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};

/// Maximum number of versions listed, newest first.
const MAX_NAMED_VERSIONS: usize = 10;
/// Maximum number of files that a model reviews for one change.
const MAX_MODERATED_FILES: usize = 32;
/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

pub(crate) struct SkillManage {
    pub(crate) own: OwnSkills,
    pub(crate) audit_log: AuditLog,
    /// Whether the skills are a room's.
    pub(crate) room: bool,
    /// The model that reviews changes, if any.
    pub(crate) moderator: Option<Moderator>,
    /// Digests of the files that the model let pass in this run.
    pub(crate) moderated: Mutex<Vec<String>>,
}

#[derive(Clone, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The action.
    action: Action,
    /// The skill's name: small letters, digits and single hyphens.
    name: String,
    /// For create and edit the whole SKILL.md, for write_file the whole file. A SKILL.md begins with a line `---`, then
    /// `name:` and `description:` (its effect, and when to use it), then a line `---`, then the instructions.
    #[serde(default)]
    content: Option<String>,
    /// For patch, write_file and remove_file: the file's path in the skill's folder. Patch changes SKILL.md without it.
    #[serde(default)]
    path: Option<String>,
    /// For patch: the text that is replaced, letter by letter; it has to be there once.
    #[serde(default, alias = "find")]
    old: Option<String>,
    /// For patch: the text that replaces it.
    #[serde(default, alias = "replace")]
    new: Option<String>,
    /// For rollback: the number of the change before which the skill was as it is to be again.
    #[serde(default)]
    version: Option<u64>,
    /// Why, in one sentence for the people who read the history.
    #[serde(default)]
    reason: Option<String>,
}

/// An action on a skill.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    Edit,
    Patch,
    Delete,
    WriteFile,
    RemoveFile,
    Rollback,
}

impl TypedTool for SkillManage {
    type Args = Args;
    const NAME: &'static str = SKILL_MANAGE;
    const DESCRIPTION: &'static str = "Makes, changes and deletes skills of the person, or of the room, that you work for, and brings \
         former versions back. Nobody else gets them, and skills of everybody cannot be changed. A person has to approve each \
         call. It counts from the next message on. Use it only when people want something kept for later.";

    fn note(&self, _: &Args) -> Option<String> {
        let whose = match (self.own.is_everybodys(), self.room) {
            (true, _) => "a skill of everybody",
            (false, true) => "a skill of this room",
            (false, false) => return None,
        };
        Some(whose.to_owned())
    }

    async fn examine(&self, args: Args) -> Result<Option<String>, ToolError> {
        let change = change(&args)?;
        let preview = self.preview(&args.name, &change).await?;
        let mut told: Vec<String> = preview.restored.into_iter().collect();
        let mut found: Vec<String> = preview
            .report
            .findings
            .iter()
            .map(|found| format!("{}:{}  {}: {}", found.file, found.line, found.rule, found.what))
            .collect();
        found.extend(self.moderate(&args.name, &change, &preview.written).await?);
        if !found.is_empty() {
            told.push(format!("The scan found what a person should look at:\n{}", found.join("\n")));
        }
        Ok((!told.is_empty()).then(|| told.join("\n\n")))
    }

    async fn run(&self, args: Args, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let change = change(&args)?;
        let preview = self.preview(&args.name, &change).await?;
        self.moderate(&args.name, &change, &preview.written).await?;
        let why = args.reason.as_deref().map(|why| pudu_base::foreign::line(why, MAX_REASON_CHARS));
        let why = why.filter(|why| !why.is_empty());
        let detail = detail(&args.name, &change, why.as_deref());
        let asker = &self.audit_log.asker;
        let by = if asker.name.is_empty() { asker.person.clone() } else { asker.name.clone() };
        let author = ChangeAuthor { by, why, thread: Some(cx.thread.to_string()), at: now() };
        let (own, name, wanted) = (self.own.clone(), args.name.clone(), change.clone());
        let work = blocking(move || own.change(&name, &wanted, author));
        let version = self.audit_log.noted(Self::NAME, &detail, work).await?;
        tracing::info!(skill = args.name, action = change.action(), "changed skill");
        Ok(describe_change(&args.name, &change, &version).into())
    }
}

impl SkillManage {
    /// Tries a change.
    async fn preview(&self, name: &str, change: &SkillChange) -> Result<ChangePreview, ToolError> {
        let (own, named, wanted) = (self.own.clone(), name.to_owned(), change.clone());
        let tried = blocking(move || own.examine(&named, &wanted)).await;
        match (tried, change) {
            (Err(error), SkillChange::Restore(_)) => {
                Err(ToolError(format!("{error}{}", self.versions(name).await)))
            }
            (tried, _) => tried,
        }
    }

    /// Returns the newest versions of a skill, for a model that named one that is not there.
    async fn versions(&self, name: &str) -> String {
        let (own, name) = (self.own.clone(), name.to_owned());
        let Ok(versions) = blocking(move || own.history(&name)).await else { return String::new() };
        let line = |version: &SkillVersion| {
            let why = version.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("\n- before change {}: {} by {}{why}", version.number, version.action, version.by)
        };
        versions.iter().rev().filter(|version| version.files > 0).take(MAX_NAMED_VERSIONS).map(line).collect()
    }

    /// Has the model review the files that a change writes, each as a whole and once: also those of a restored version,
    /// which may not have been reviewed. Returns the concerns for people.
    async fn moderate(
        &self,
        name: &str,
        change: &SkillChange,
        written: &[WrittenFile],
    ) -> Result<Vec<String>, ToolError> {
        let Some(moderator) = &self.moderator else { return Ok(Vec::new()) };
        if written.len() > MAX_MODERATED_FILES {
            return Err(ToolError(format!(
                "{} files change, and a model looks at {MAX_MODERATED_FILES} at most: an operator can do it",
                written.len()
            )));
        }
        let mut found = Vec::new();
        for WrittenFile { path, text } in written {
            let digest = pudu_base::digest(format!("{name}\n{path}\n{text}"));
            if self.passed().contains(&digest) {
                continue;
            }
            match moderator.review(path, text).await {
                ModerationVerdict::Block(why) => {
                    let detail = detail(name, change, None);
                    self.audit_log.note(SKILL_MANAGE, &detail, "blocked".to_owned()).await;
                    return Err(ToolError(format!("a look at {path} blocks it: {why}")));
                }
                ModerationVerdict::Warn(why) => found.push(format!("{path}: {why}")),
                ModerationVerdict::Allow => {}
            }
            self.passed().push(digest);
        }
        Ok(found)
    }

    fn passed(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.moderated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parses the change that a call requests.
fn change(args: &Args) -> Result<SkillChange, ToolError> {
    let Args { action, content, path, old, new, version, .. } = args.clone();
    let need = |what: &str| ToolError(format!("this action needs {what}"));
    let content = || content.ok_or_else(|| need("`content`"));
    Ok(match action {
        Action::Create => SkillChange::Create(content()?),
        Action::Edit => SkillChange::Edit(content()?),
        Action::Patch => SkillChange::Patch {
            path: path.unwrap_or_else(|| "SKILL.md".to_owned()),
            old: old.ok_or_else(|| need("`old`"))?,
            new: new.ok_or_else(|| need("`new`"))?,
        },
        Action::Delete => SkillChange::Delete,
        Action::WriteFile => {
            SkillChange::WriteFile { path: path.ok_or_else(|| need("`path`"))?, text: content()? }
        }
        Action::RemoveFile => SkillChange::RemoveFile { path: path.ok_or_else(|| need("`path`"))? },
        // Without a number the answer names the existing versions.
        Action::Rollback => SkillChange::Restore(version.unwrap_or(0)),
    })
}

/// Returns the audit's description of a change.
fn detail(name: &str, change: &SkillChange, why: Option<&str>) -> String {
    let file = change.file().map(|file| format!(" {file}")).unwrap_or_default();
    let version = match change {
        SkillChange::Restore(number) => format!(" to before change {number}"),
        _ => String::new(),
    };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {name}{file}{version}{why}", change.action())
}

/// Returns the model's result of a change.
fn describe_change(name: &str, change: &SkillChange, version: &SkillVersion) -> String {
    let done = match change {
        SkillChange::Create(_) => format!("The skill {name} is made. A person asks for it with /{name}."),
        SkillChange::Delete => format!("The skill {name} is deleted."),
        SkillChange::Restore(number) => format!("The skill {name} is as it was before change {number}."),
        _ => format!("The skill {name} is changed."),
    };
    let back = match version.files {
        0 => String::new(),
        _ => format!(" It can be brought back as it was with rollback and version {}.", version.number),
    };
    format!("{done} It counts from the next message on.{back}")
}

/// Runs blocking file work. The error is for the model.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SkillError> + Send + 'static,
) -> Result<T, ToolError> {
    match pudu_kit::blocking::run(work).await {
        Ok(Err(error @ (SkillError::Io { .. } | SkillError::State { .. }))) => {
            tracing::error!(%error, "failed to work on skill");
            Err(ToolError(
                "the skill's files could not be read or written; the operator finds why in the log"
                    .to_owned(),
            ))
        }
        Ok(done) => done.map_err(|error| ToolError(error.to_string())),
        Err(_) => Err(ToolError("something broke while the skill's files were worked on".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(call: Value) -> Result<SkillChange, String> {
        let args: Args = serde_json::from_value(call).map_err(|error| error.to_string())?;
        change(&args).map_err(|ToolError(why)| why)
    }

    #[test]
    fn each_action_needs_what_it_writes() {
        let file = |path: &str, text: &str| SkillChange::WriteFile { path: path.into(), text: text.into() };
        let patch = |path: &str| SkillChange::Patch { path: path.into(), old: "a".into(), new: "b".into() };
        for (call, expect) in [
            (json!({"action": "create", "name": "x", "content": "c"}), SkillChange::Create("c".into())),
            (json!({"action": "edit", "name": "x", "content": "c"}), SkillChange::Edit("c".into())),
            (json!({"action": "patch", "name": "x", "old": "a", "new": "b"}), patch("SKILL.md")),
            (json!({"action": "patch", "name": "x", "path": "y", "find": "a", "replace": "b"}), patch("y")),
            (json!({"action": "delete", "name": "x"}), SkillChange::Delete),
            (json!({"action": "write_file", "name": "x", "path": "y", "content": "c"}), file("y", "c")),
            (
                json!({"action": "remove_file", "name": "x", "path": "y"}),
                SkillChange::RemoveFile { path: "y".into() },
            ),
            (json!({"action": "rollback", "name": "x", "version": 3}), SkillChange::Restore(3)),
            (json!({"action": "rollback", "name": "x"}), SkillChange::Restore(0)),
        ] {
            assert_eq!(read(call.clone()), Ok(expect), "{call}");
        }
        for (call, expect) in [
            (json!({"action": "create", "name": "x"}), "needs `content`"),
            (json!({"action": "patch", "name": "x", "new": "b"}), "needs `old`"),
            (json!({"action": "write_file", "name": "x", "content": "c"}), "needs `path`"),
            (json!({"action": "dance", "name": "x"}), "unknown variant"),
            (json!({"action": "delete"}), "missing field"),
        ] {
            let why = read(call.clone()).unwrap_err();
            assert!(why.contains(expect), "{call}: {why}");
        }
    }

    #[test]
    fn the_audit_says_what_is_done_and_not_the_text() {
        let said = |change: SkillChange| detail("offers", &change, Some("as asked"));
        assert_eq!(said(SkillChange::Edit("secret".into())), "edit offers SKILL.md: as asked");
        assert_eq!(said(SkillChange::Restore(3)), "rollback offers to before change 3: as asked");
        assert_eq!(said(SkillChange::Delete), "delete offers: as asked");
    }
}
