//! Imports custom agents, the default agent's `SOUL.md`, and skills.

use super::Import;
use crate::{
    error::ImportError,
    files::{self, CopiedFiles, Copier, Selection},
    report::{ItemKind, ItemOutcome},
};
use pudu_base::UserId;
use pudu_skills::{ScanVerdict, scan};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

impl Import<'_> {
    pub(super) fn agents(&mut self) -> Result<(), ImportError> {
        let (from, to) = (self.source.folder.clone(), self.target.home.clone());
        if from.join("SOUL.md").is_file() {
            let copied = self.copier.copy_one(&from, &to, "SOUL.md");
            let copied = copied.map_err(|why| ImportError::io(from.join("SOUL.md"), why))?;
            self.files(ItemKind::Agent, "SOUL.md of the default agent".to_owned(), None, &copied);
        }
        let mut roots: Vec<(Option<String>, PathBuf)> = vec![(None, PathBuf::from("agents"))];
        for user in self.users()? {
            roots.push((Some(user.clone()), Path::new("users").join(user).join("agents")));
        }
        for (user, root) in roots {
            for name in self.folders(&from.join(&root))? {
                let folder = root.join(&name);
                if !["config.yaml", "SOUL.md"].iter().any(|file| from.join(&folder).join(file).is_file()) {
                    continue;
                }
                let take: fn(&Path) -> bool = |path| matches!(path.to_str(), Some("config.yaml" | "SOUL.md"));
                let own = Selection { enter: |_| false, take };
                let copied = self.copier.copy(&from.join(&folder), &to.join(&folder), own);
                let copied = copied.map_err(|why| ImportError::io(from.join(&folder), why))?;
                self.files(ItemKind::Agent, name, user.as_deref(), &copied);
            }
        }
        Ok(())
    }

    pub(super) fn skills(&mut self) -> Result<(), ImportError> {
        let home = self.target.home.clone();
        let shared = self.source.skills.clone().map(|skills| skills.join("custom"));
        let mut roots: Vec<(Option<String>, PathBuf, PathBuf)> = Vec::new();
        roots.extend(shared.map(|from| (None, from, home.join("skills").join("custom"))));
        for user in self.users()? {
            let folder = Path::new("users").join(&user).join("skills").join("custom");
            roots.push((Some(user), self.source.folder.join(&folder), home.join(folder)));
        }
        for (user, from, to) in roots {
            for name in self.folders(&from)? {
                let skill = from.join(&name);
                if skill.join("SKILL.md").is_file() {
                    self.skill(&name, user.as_deref(), &skill, &to.join(&name))?;
                }
            }
        }
        Ok(())
    }

    /// Copies a skill to a temporary folder, checks it, and moves it into place.
    fn skill(&mut self, name: &str, user: Option<&str>, from: &Path, to: &Path) -> Result<(), ImportError> {
        let io = |why: io::Error| ImportError::io(from, why);
        if to.exists() {
            let same = files::digest(from, Selection::ALL).map_err(io)?
                == files::digest(to, Selection::ALL).map_err(io)?;
            match same {
                true => self.report.add(ItemKind::Skill, ItemOutcome::Unchanged, name, user, None),
                false => {
                    let why = Some("a different skill with this name already exists".to_owned());
                    self.report.add(ItemKind::Skill, ItemOutcome::Left, name, user, why);
                }
            }
            return Ok(());
        }
        let aside = tempfile::TempDir::new().map_err(io)?;
        let staged = aside.path().join("skill");
        let copier = Copier::new(aside.path().to_owned(), false);
        let copied = copier.copy(from, &staged, Selection::ALL).map_err(io)?;
        let found = scan(&staged).map_err(io)?;
        let first = found.findings.first().map(|finding| format!("{}: {}", finding.file, finding.what));
        match found.verdict() {
            ScanVerdict::Block => {
                let why = format!("blocked by the scan: {}", first.unwrap_or_default());
                self.report.add(ItemKind::Skill, ItemOutcome::Left, name, user, Some(why));
                return Ok(());
            }
            ScanVerdict::Warn | ScanVerdict::Allow => {}
        }
        if !self.target.dry_run {
            // The skill gets its final name only when it is complete, so an interrupted copy is repeated.
            let parent = to.parent().unwrap_or(to);
            let part = parent.join(format!(".staging-import-{name}"));
            fs::remove_dir_all(&part).or_else(absent).map_err(io)?;
            copier.copy(&staged, &part, Selection::ALL).map_err(io)?;
            fs::rename(&part, to).map_err(io)?;
        }
        let warned = first.map(|first| format!("warning of the scan: {first}"));
        let note = warned.or_else(|| copied.note());
        self.report.add(ItemKind::Skill, ItemOutcome::Taken, name, user, note);
        Ok(())
    }

    /// Reports the outcome of an item's files.
    pub(super) fn files(&mut self, kind: ItemKind, item: String, user: Option<&str>, copied: &CopiedFiles) {
        let outcome = match (copied.new, copied.same) {
            (1.., _) => ItemOutcome::Taken,
            (0, 1..) => ItemOutcome::Unchanged,
            (0, 0) if copied.left.is_empty() => ItemOutcome::Unchanged,
            (0, 0) => ItemOutcome::Left,
        };
        self.report.add(kind, outcome, item, user, copied.note());
    }

    pub(super) fn folders(&self, root: &Path) -> Result<Vec<String>, ImportError> {
        files::folders(root).map_err(|why| ImportError::io(root, why))
    }

    /// Lists the users with a folder in the source.
    pub(super) fn users(&mut self) -> Result<Vec<String>, ImportError> {
        let mut users = self.folders(&self.source.folder.join("users"))?;
        let mut is_known = |user: &UserId, name: &str| user.as_str() == name && !self.is_forgotten(user);
        users.retain(|name| UserId::from_raw(name).is_ok_and(|user| is_known(&user, name)));
        Ok(users)
    }
}

fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
