//! `skill_manage`: the tool that lets an agent create and change the skills of its user or group chat.
//!
//! Each change is first tried on a copy and reviewed. Then a person approves it, unless configured otherwise
//! (`approvals.skill_changes`). Then it is reviewed again and applied atomically, with the previous version kept in the
//! history.

use crate::{
    audit::AuditLog,
    moderation::{ModerationVerdict, Moderator},
};
use pudu_base::{ToolCx, ToolError, ToolOutput, TypedTool};
use pudu_harness::SKILL_MANAGE;
use pudu_skills::{
    ChangeAuthor, ChangePreview, OwnSkills, SkillChange, SkillError, SkillVersion, WrittenFile,
};
use pudu_store::now;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Mutex, PoisonError};

/// Maximum number of listed versions, newest first.
const MAX_NAMED_VERSIONS: usize = 10;
/// Maximum number of files that a model reviews for one change.
const MAX_MODERATED_FILES: usize = 32;
/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

pub(crate) struct SkillManage {
    pub(crate) own: OwnSkills,
    pub(crate) audit_log: AuditLog,
    /// Whether the skills belong to a group chat.
    pub(crate) room: bool,
    /// The model that reviews changes, if any.
    pub(crate) moderator: Option<Moderator>,
    /// Digests of the files that the model accepted in this run.
    pub(crate) moderated: Mutex<Vec<String>>,
}

#[derive(Clone, Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The action.
    action: Action,
    /// The skill's name: lower-case letters, digits and single hyphens.
    name: String,
    /// For create and edit the whole SKILL.md, for write_file the whole file. A SKILL.md begins with a line `---`, then
    /// `name:` and `description:` (its effect, and when to use it), then a line `---`, then the instructions.
    #[serde(default)]
    content: Option<String>,
    /// For patch, write_file and remove_file: the file's path in the skill's folder. Patch changes SKILL.md without it.
    #[serde(default)]
    path: Option<String>,
    /// For patch: the exact text to replace; it must occur exactly once.
    #[serde(default, alias = "find")]
    old: Option<String>,
    /// For patch: the text that replaces it.
    #[serde(default, alias = "replace")]
    new: Option<String>,
    /// For rollback: the number of a change; the skill is restored to its state before this change.
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
    const DESCRIPTION: &'static str = "Creates, changes and deletes skills of the person or the room that you work for, and restores \
         earlier versions. Only that person or room gets them; shared skills cannot be changed. A person has to approve each \
         call. Changes take effect with the next message. Use it only when people want to keep something for later.";

    fn note(&self, _: &Args) -> Option<String> {
        let owner = match (self.own.is_everybodys(), self.room) {
            (true, _) => "a shared skill",
            (false, true) => "a skill of this room",
            (false, false) => return None,
        };
        Some(owner.to_owned())
    }

    async fn examine(&self, args: Args) -> Result<Option<String>, ToolError> {
        let change = change(&args)?;
        let preview = self.preview(&args.name, &change).await?;
        let mut notes: Vec<String> = preview.restored.into_iter().collect();
        let mut found: Vec<String> = preview
            .report
            .findings
            .iter()
            .map(|found| format!("{}:{}  {}: {}", found.file, found.line, found.rule, found.what))
            .collect();
        found.extend(self.moderate(&args.name, &change, &preview.written).await?);
        if !found.is_empty() {
            notes.push(format!("The scan found problems that a person should review:\n{}", found.join("\n")));
        }
        Ok((!notes.is_empty()).then(|| notes.join("\n\n")))
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
    /// Tries a change on a copy.
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

    /// Lists the newest versions of a skill, for a model that asked for a version that does not exist.
    async fn versions(&self, name: &str) -> String {
        let (own, name) = (self.own.clone(), name.to_owned());
        let Ok(versions) = blocking(move || own.history(&name)).await else { return String::new() };
        let line = |version: &SkillVersion| {
            let why = version.why.as_deref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("\n- before change {}: {} by {}{why}", version.number, version.action, version.by)
        };
        versions.iter().rev().filter(|version| version.files > 0).take(MAX_NAMED_VERSIONS).map(line).collect()
    }

    /// Lets the model review each file that a change writes, as a whole and once, including the files of a restored
    /// version, which may not have been reviewed. Returns the concerns for people.
    async fn moderate(
        &self,
        name: &str,
        change: &SkillChange,
        written: &[WrittenFile],
    ) -> Result<Vec<String>, ToolError> {
        let Some(moderator) = &self.moderator else { return Ok(Vec::new()) };
        if written.len() > MAX_MODERATED_FILES {
            return Err(ToolError(format!(
                "{} files change, and a model reviews at most {MAX_MODERATED_FILES}: an operator can make this change",
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
                    return Err(ToolError(format!("the review of {path} blocks it: {why}")));
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
        // Without a number, the result lists the existing versions.
        Action::Rollback => SkillChange::Restore(version.unwrap_or(0)),
    })
}

/// Describes a change for the audit log.
fn detail(name: &str, change: &SkillChange, why: Option<&str>) -> String {
    let file = change.file().map(|file| format!(" {file}")).unwrap_or_default();
    let version = match change {
        SkillChange::Restore(number) => format!(" to before change {number}"),
        _ => String::new(),
    };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("{} {name}{file}{version}{why}", change.action())
}

/// Describes a completed change for the model.
fn describe_change(name: &str, change: &SkillChange, version: &SkillVersion) -> String {
    let done = match change {
        SkillChange::Create(_) => format!("The skill {name} is created. A person starts it with /{name}."),
        SkillChange::Delete => format!("The skill {name} is deleted."),
        SkillChange::Restore(number) => {
            format!("The skill {name} is restored to its state before change {number}.")
        }
        _ => format!("The skill {name} is changed."),
    };
    let back = match version.files {
        0 => String::new(),
        _ => format!(" To undo this change, use rollback with version {}.", version.number),
    };
    format!("{done} The change takes effect with the next message.{back}")
}

/// Runs blocking file I/O. The error is for the model.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SkillError> + Send + 'static,
) -> Result<T, ToolError> {
    match pudu_kit::blocking::run(work).await {
        Ok(Err(error @ (SkillError::Io { .. } | SkillError::State { .. }))) => {
            tracing::error!(%error, "failed to read or write skill");
            Err(ToolError(
                "the skill's files could not be read or written; the reason is in the operator's log"
                    .to_owned(),
            ))
        }
        Ok(done) => done.map_err(|error| ToolError(error.to_string())),
        Err(_) => Err(ToolError(
            "an internal error occurred while the skill's files were read or written".to_owned(),
        )),
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
    fn each_action_requires_its_arguments() {
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
    fn the_audit_log_records_the_action_without_the_text() {
        let said = |change: SkillChange| detail("offers", &change, Some("as asked"));
        assert_eq!(said(SkillChange::Edit("secret".into())), "edit offers SKILL.md: as asked");
        assert_eq!(said(SkillChange::Restore(3)), "rollback offers to before change 3: as asked");
        assert_eq!(said(SkillChange::Delete), "delete offers: as asked");
    }
}
