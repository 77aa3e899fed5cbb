//! `pudu agent`: which custom agents there are, making and removing them.
//!
//! It works on the disk and needs no daemon; one that runs sees the change with its next run.

use super::{chat, run};
use crate::config::Start;
use anyhow::{Context, Result};
use clap::Subcommand;
use pudu_client::agents::{Agents, Broken, LONGEST_SOUL, Persona, Profile};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// List the agents, and those that cannot be used.
    List,
    /// Show an agent: what it may use, and its SOUL.md.
    Show {
        /// Its name.
        name: String,
    },
    /// Make an agent.
    New {
        /// Its name: letters, digits and hyphens.
        name: String,
        /// What it is for, in one line.
        #[arg(long, default_value = "")]
        description: String,
        /// A file with its SOUL.md, or - for standard input.
        #[arg(long, value_name = "FILE")]
        soul: PathBuf,
        /// The model that it wants.
        #[arg(long)]
        model: Option<String>,
        /// The groups of tools that it has, with commas between; an empty text for none. All if not said.
        #[arg(long, value_name = "NAMES")]
        tool_groups: Option<String>,
        /// The skills that it has, likewise.
        #[arg(long, value_name = "NAMES")]
        skills: Option<String>,
    },
    /// Remove an agent, with all that is in its folder.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Does what is asked for and says it.
pub(super) fn agent(start: &Start, verb: &Verb) -> ExitCode {
    let home = match run::load(start) {
        Ok(loaded) => loaded.config.fixed.home,
        Err(code) => return code,
    };
    match act(&Agents::new(home), verb) {
        Ok(words) => {
            io::stdout().write_all(words.as_bytes()).ok();
            ExitCode::SUCCESS
        }
        Err(error) => run::fail(&error),
    }
}

fn act(agents: &Agents, verb: &Verb) -> Result<String> {
    Ok(match verb {
        Verb::List => chat::fitted(&list(agents)),
        Verb::Show { name } => show(&agents.find(name)?),
        Verb::New { name, description, soul, model, tool_groups, skills } => {
            let profile = Profile {
                about: description.clone(),
                model: model.clone(),
                tool_groups: tool_groups.as_deref().map(names),
                skills: skills.as_deref().map(names),
                soul: read(soul)?,
            };
            let made = agents.create(name, &profile)?;
            format!("{0} is made; /agent {0} in a chat switches to it\n", made.name)
        }
        Verb::Remove { name } => {
            agents.remove(name)?;
            format!("{name} is removed\n")
        }
    })
}

fn list(agents: &Agents) -> String {
    let roster = agents.list();
    let mut out = String::new();
    let width = roster.agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    for Persona { name, profile, legacy, odd } in &roster.agents {
        let about = crate::dispatch::command::brief(&profile.about);
        let legacy = if *legacy { " (in the older folder)" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name:width$}  {about}{legacy}");
        for note in odd {
            let _ = writeln!(out, "        {note}");
        }
    }
    if roster.agents.is_empty() {
        out.push_str("no agents\n");
    }
    for Broken { name, why } in &roster.broken {
        let _ = writeln!(out, "BROKEN  {name}\n        {why}");
    }
    if roster.more > 0 {
        let _ = writeln!(out, "and {} more", roster.more);
    }
    out
}

fn show(persona: &Persona) -> String {
    let profile = &persona.profile;
    let mut out = format!("{}\n  {}\n", persona.name, profile.about);
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:11} {value}");
    };
    let some = |names: &Option<Vec<String>>| match names.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(names) => names.join(", "),
    };
    line("model", profile.model.as_deref().unwrap_or("the default"));
    line("tool groups", &some(&profile.tool_groups));
    line("skills", &some(&profile.skills));
    persona.odd.iter().for_each(|note| line("note", note));
    format!("{out}\n{}\n", profile.soul.trim_end())
}

fn names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn read(path: &Path) -> Result<String> {
    let most = LONGEST_SOUL as u64 + 1;
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => io::stdin().take(most).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(most).read_to_string(&mut text)),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}
