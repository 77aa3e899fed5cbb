//! `pudu skill`: lists, switches, installs, removes and rolls back skills.
//!
//! It works on files and needs no daemon; in a running daemon, the change takes effect with the next run. A rollback is
//! audited, like every edit of a skill: a running daemon performs it, otherwise this process records it in the store.

use super::{
    chat,
    person::{self, Belonging},
    print_output,
    remote::{self, ApiRequest},
    run,
};
use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use pudu_base::UserId;
use pudu_config::{Fixed, Start, extensions};
use pudu_daemon::{skills, store};
use pudu_kit::{clock, home};
use pudu_net::reqwest::Method;
use pudu_people::rights;
use pudu_skills::{
    BrokenSkill, CatalogEntry, ChangeAuthor, Hidden, OwnSkills, ScanVerdict, SkillChange, SkillVersion,
    Skills,
};
use serde_json::{Value, json};
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

#[derive(Debug, Subcommand)]
pub(super) enum SkillCommand {
    /// List the skills, including disabled and broken ones.
    List {
        /// User whose own skills are also listed, as for `pudu export`.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a skill and its SKILL.md.
    Show {
        /// Name of the skill.
        name: String,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Install a skill from a .skill archive.
    Install {
        /// Archive to install.
        file: PathBuf,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Replace an installed or built-in skill of the same name.
        #[arg(long)]
        replace: bool,
    },
    /// Enable a skill.
    Enable {
        /// Name of the skill.
        name: String,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
    },
    /// Disable a skill.
    Disable {
        /// Name of the skill.
        name: String,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
    },
    /// List the changes of a skill, each with the number of the version before it.
    History {
        /// Name of the skill.
        name: String,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Restore the version of a skill before a change.
    Rollback {
        /// Name of the skill.
        name: String,
        /// Number of the change, from `pudu skill history`.
        version: u64,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
    },
    /// Remove an installed skill.
    Remove {
        /// Name of the skill.
        name: String,
        /// User who owns the skill, as for `pudu export` (default: a shared skill).
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
    },
}

/// Runs `pudu skill`.
pub(super) fn skill(start: &Start, verb: &SkillCommand) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let file = loaded.report.file.as_deref();
    if matches!(verb, SkillCommand::Enable { .. } | SkillCommand::Disable { .. }) {
        let path = extensions::place(start, file);
        if let Err(report) = extensions::may_be_changed(&path, start) {
            return run::fail(&anyhow!("{report}"));
        }
    }
    let opened = skills::open(start, &loaded.config.fixed, file);
    let home = SkillHome { start, fixed: &loaded.config.fixed };
    let user = match verb.user() {
        Some(user) => remote::wait(person::named(start, &loaded, user, Belonging::Common)),
        None => Ok(UserId::local()),
    };
    match opened.and_then(|skills| execute(&home, &skills, &user?, verb)) {
        Ok(words) => print_output(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

/// The home folder and its configuration.
struct SkillHome<'a> {
    start: &'a Start,
    fixed: &'a Fixed,
}

fn execute(home: &SkillHome<'_>, skills: &Skills, user: &UserId, verb: &SkillCommand) -> Result<String> {
    let own = &skills.for_user(user);
    Ok(match verb {
        SkillCommand::List { json: true, .. } => format!("{:#}\n", as_json(own)),
        SkillCommand::List { json: false, .. } => chat::fitted(&list(own)),
        SkillCommand::Show { name, json, .. } => {
            let catalog = own.read();
            let entry = catalog.get(name).with_context(|| format!("there is no skill `{name}`"))?;
            match json {
                true => format!("{:#}\n", facts(entry, true)),
                false => show(entry),
            }
        }
        SkillCommand::Install { file, replace, .. } => install(own, file, *replace)?,
        SkillCommand::Enable { name, .. } => switched(&own.set_enabled(name, true)?),
        SkillCommand::Disable { name, .. } => switched(&own.set_enabled(name, false)?),
        SkillCommand::History { name, json, .. } => {
            let versions = own.history(name)?;
            match json {
                true => format!("{:#}\n", json!({ "history": versions })),
                false => chat::fitted(&history(&versions)),
            }
        }
        SkillCommand::Rollback { name, version, .. } => {
            remote::wait(home.rollback(own, user, name, *version))?;
            let done = own.history(name)?.last().map_or(0, |done| done.number);
            format!("Rolled {name} back to before change {version}; `rollback {name} {done}` undoes this.\n")
        }
        SkillCommand::Remove { name, .. } => {
            own.remove(name)?;
            format!("Removed {name}.\n")
        }
    })
}

impl SkillCommand {
    /// Returns the user given by `--user`.
    fn user(&self) -> Option<&str> {
        match self {
            Self::List { user, .. }
            | Self::Show { user, .. }
            | Self::Install { user, .. }
            | Self::Enable { user, .. }
            | Self::Disable { user, .. }
            | Self::History { user, .. }
            | Self::Rollback { user, .. }
            | Self::Remove { user, .. } => user.as_deref(),
        }
    }
}

impl SkillHome<'_> {
    /// Restores the version of a skill before a change, with an audit entry.
    async fn rollback(&self, own: &OwnSkills, user: &UserId, name: &str, version: u64) -> Result<()> {
        if home::running_url(&self.fixed.home).is_some() {
            let path = ["skills", "custom", name, "rollback"];
            let body = json!({ "version": version });
            let request = ApiRequest::change(Method::POST, &path).query("user", user).body(body);
            return request.send_to_daemon(self.start).await.map(drop);
        }
        let author = ChangeAuthor { by: "operator".to_owned(), at: clock::now(), ..ChangeAuthor::default() };
        let db = store::open(&self.fixed.database).await?;
        let detail = format!("rollback {name} of {user} to before change {version}");
        let entry = db.begin_audit_entry(rights::audit_entry("skill", detail)).await?;
        let done = own.change(name, &SkillChange::Restore(version), author);
        db.end_audit_entry(entry, Some(i64::from(done.is_err())), clock::now()).await?;
        db.close().await;
        Ok(done.map(drop)?)
    }
}

fn history(versions: &[SkillVersion]) -> String {
    let mut out = String::new();
    for SkillVersion { number, at, action, by, why, file, files, .. } in versions {
        let file = file.as_deref().map(|file| format!(" {file}")).unwrap_or_default();
        let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        let note = if *files == 0 { " (no earlier state is stored)" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{number:4}  {}  {action}{file} by {by}{why}{note}", clock::text(*at));
    }
    if versions.is_empty() {
        out.push_str("There are no changes.\n");
    }
    out
}

fn as_json(skills: &OwnSkills) -> Value {
    let catalog = skills.read();
    let hidden = |Hidden { name, by, .. }: &Hidden| json!({ "name": name, "hidden_by": by });
    let broken = |BrokenSkill { folder, why }: &BrokenSkill| json!({ "folder": folder, "problem": why });
    json!({
        "skills": catalog.entries.iter().map(|entry| facts(entry, false)).collect::<Vec<_>>(),
        "hidden": catalog.hidden.iter().map(hidden).collect::<Vec<_>>(),
        "broken": catalog.broken.iter().map(broken).collect::<Vec<_>>(),
    })
}

fn facts(entry: &CatalogEntry, whole: bool) -> Value {
    json!({
        "name": entry.name,
        "description": entry.about,
        "category": entry.category.name(),
        "own": entry.own,
        "enabled": entry.enabled,
        "license": entry.license,
        "allowed_tools": entry.tools,
        "argument_hint": entry.argument_hint,
        "started_by_model": entry.invocation.by_model,
        "started_by_people": entry.invocation.by_people,
        "folder": entry.folder,
        "text": whole.then_some(&entry.text),
    })
}

fn list(skills: &OwnSkills) -> String {
    let catalog = skills.read();
    let mut out = String::new();
    let width = catalog.entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for CatalogEntry { name, about, category, enabled, own, .. } in &catalog.entries {
        let state = if *enabled { "on " } else { "off" };
        let about = pudu_dispatch::commands::brief(about);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{state}  {:6}  {name:width$}  {about}",
            if *own { "own" } else { category.name() }
        );
    }
    if catalog.entries.is_empty() {
        out.push_str("There are no skills.\n");
    }
    for Hidden { name, by, .. } in &catalog.hidden {
        let _ = writeln!(out, "hidden       {name:width$}  replaced by {}", by.display());
    }
    for BrokenSkill { folder, why } in &catalog.broken {
        let _ = writeln!(out, "BROKEN  {}\n        {why}", folder.display());
    }
    out
}

fn show(entry: &CatalogEntry) -> String {
    let mut out = format!("{}\n  {}\n", entry.name, entry.about);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:9} {value}");
    };
    line("state", if entry.enabled { "on" } else { "off" });
    line("category", entry.category.name());
    line("licence", entry.license.as_deref().unwrap_or("not set"));
    line("tools", &entry.tools.as_ref().map_or("all".to_owned(), |tools| tools.join(", ")));
    let starters = match (entry.invocation.by_model, entry.invocation.by_people) {
        (true, true) => "the agent, and users by name",
        (true, false) => "the agent only",
        (false, true) => "users by name only",
        (false, false) => "nobody",
    };
    line("starters", starters);
    if let Some(hint) = &entry.argument_hint {
        line("argument", hint);
    }
    line("folder", &entry.folder.display().to_string());
    line("agent", &entry.path);
    out + "\n" + &entry.text
}

fn install(skills: &OwnSkills, file: &std::path::Path, replace: bool) -> Result<String> {
    let installed = skills.install(file, replace)?;
    let mut out =
        format!("Installed {}: {} file(s), {} bytes.\n", installed.name, installed.files, installed.bytes);
    match installed.report.verdict() {
        ScanVerdict::Allow => out.push_str("The scan found nothing.\n"),
        ScanVerdict::Warn | ScanVerdict::Block => {
            let _ = writeln!(out, "The scan found places to review:\n{}", installed.report);
        }
    }
    for note in &installed.notes {
        let _ = writeln!(out, "note: {note}");
    }
    if let Some(row) = pudu_dispatch::commands::TABLE.iter().find(|row| row.name == installed.name) {
        let _ =
            writeln!(out, "/{} stays the command of that name; only the agent can start the skill", row.name);
    }
    Ok(out)
}

fn switched(entry: &CatalogEntry) -> String {
    format!("{} is {}\n", entry.name, if entry.enabled { "on" } else { "off" })
}
