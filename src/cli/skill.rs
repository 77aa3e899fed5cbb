//! `pudu skill`: which skills there are, switching, installing and removing them.
//!
//! It works on the disk and needs no daemon; one that runs sees the change with its next run.

use super::{chat, run, say};
use crate::{config::Start, extensions, skills};
use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use pudu_client::skills::{BrokenSkill, CatalogEntry, Hidden, ScanVerdict, Skills};
use serde_json::{Value, json};
use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

#[derive(Debug, Subcommand)]
pub(super) enum SkillCommand {
    /// List the skills, those that are off, and those that are broken.
    List {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Show a skill and its SKILL.md.
    Show {
        /// Its name.
        name: String,
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Install a skill from a .skill archive.
    Install {
        /// The archive.
        file: PathBuf,
        /// Put it in the place of an installed one of its name, or of one that ships.
        #[arg(long)]
        replace: bool,
    },
    /// Switch a skill on.
    Enable {
        /// Its name.
        name: String,
    },
    /// Switch a skill off.
    Disable {
        /// Its name.
        name: String,
    },
    /// Remove a skill that was installed.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Does what is asked for and says it.
pub(super) fn skill(start: &Start, verb: &SkillCommand) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    let file = loaded.report.file.as_deref();
    if matches!(verb, SkillCommand::Enable { .. } | SkillCommand::Disable { .. }) {
        let place = extensions::place(start, file);
        if let Err(report) = extensions::may_be_changed(&place, start) {
            return run::fail(&anyhow!("{report}"));
        }
    }
    let opened = skills::open(start, &loaded.config.fixed, file);
    match opened.and_then(|skills| act(&skills, verb)) {
        Ok(words) => say(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

fn act(skills: &Skills, verb: &SkillCommand) -> Result<String> {
    Ok(match verb {
        SkillCommand::List { json: true } => format!("{:#}\n", as_json(skills)),
        SkillCommand::List { json: false } => chat::fitted(&list(skills)),
        SkillCommand::Show { name, json } => {
            let catalog = skills.read();
            let entry = catalog.get(name).with_context(|| format!("there is no skill `{name}`"))?;
            match json {
                true => format!("{:#}\n", facts(entry, true)),
                false => show(entry),
            }
        }
        SkillCommand::Install { file, replace } => install(skills, file, *replace)?,
        SkillCommand::Enable { name } => switched(&skills.set_enabled(name, true)?),
        SkillCommand::Disable { name } => switched(&skills.set_enabled(name, false)?),
        SkillCommand::Remove { name } => {
            skills.remove(name)?;
            format!("{name} is removed\n")
        }
    })
}

fn as_json(skills: &Skills) -> Value {
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
        "enabled": entry.enabled,
        "license": entry.license,
        "allowed_tools": entry.tools,
        "folder": entry.folder,
        "text": whole.then_some(&entry.text),
    })
}

fn list(skills: &Skills) -> String {
    let catalog = skills.read();
    let mut out = String::new();
    let width = catalog.entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for CatalogEntry { name, about, category, enabled, .. } in &catalog.entries {
        let state = if *enabled { "on " } else { "off" };
        let about = crate::dispatch::commands::brief(about);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{state}  {:6}  {name:width$}  {about}", category.name());
    }
    if catalog.entries.is_empty() {
        out.push_str("no skills\n");
    }
    for Hidden { name, by, .. } in &catalog.hidden {
        let _ =
            writeln!(out, "hidden       {name:width$}  it ships, and {} is used in its place", by.display());
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
    line("licence", entry.license.as_deref().unwrap_or("not said"));
    line("tools", &entry.tools.as_ref().map_or("all".to_owned(), |tools| tools.join(", ")));
    line("folder", &entry.folder.display().to_string());
    line("agent", &entry.path);
    out + "\n" + &entry.text
}

fn install(skills: &Skills, file: &std::path::Path, replace: bool) -> Result<String> {
    let installed = skills.install(file, replace)?;
    let mut out =
        format!("{} is installed: {} file(s), {} bytes\n", installed.name, installed.files, installed.bytes);
    match installed.report.verdict() {
        ScanVerdict::Allow => out.push_str("the scan found nothing\n"),
        ScanVerdict::Warn | ScanVerdict::Block => {
            let _ = writeln!(out, "the scan found what a person should look at:\n{}", installed.report);
        }
    }
    if let Some(row) = crate::dispatch::commands::TABLE.iter().find(|row| row.name == installed.name) {
        let _ = writeln!(
            out,
            "/{} stays the command of that name: the agent uses the skill by itself only",
            row.name
        );
    }
    Ok(out)
}

fn switched(entry: &CatalogEntry) -> String {
    format!("{} is {}\n", entry.name, if entry.enabled { "on" } else { "off" })
}
