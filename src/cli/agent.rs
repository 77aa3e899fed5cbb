//! `pudu agent`: lists, creates and removes custom agents.
//!
//! It works on files and needs no daemon; in a running daemon, the change takes effect with the next run.

use super::{chat, print_output, run};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use pudu_agent::agents::{
    AgentPlace, AgentProfile, Agents, BrokenAgent, CustomAgent, MAX_SOUL_BYTES, Roster,
};
use pudu_config::{LoadedConfig, Start, nearest};
use pudu_daemon::{agent, skills};
use serde_json::{Value, json};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

#[derive(Debug, Subcommand)]
pub(super) enum AgentCommand {
    /// List the agents, including unusable ones.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show an agent's settings and its SOUL.md.
    Show {
        /// Name of the agent.
        name: String,
    },
    /// Create an agent.
    New {
        /// Name of the agent: letters, digits and hyphens.
        name: String,
        /// Purpose of the agent, in one line.
        #[arg(long, default_value = "")]
        description: String,
        /// File with its SOUL.md, or - for standard input.
        #[arg(long, value_name = "FILE")]
        soul: PathBuf,
        /// Model that the agent uses (default: the default model).
        #[arg(long)]
        model: Option<String>,
        /// Comma-separated tool groups that the agent may use; an empty text for none (default: all).
        #[arg(long, value_name = "NAMES")]
        tool_groups: Option<String>,
        /// Comma-separated skills that the agent may use; an empty text for none (default: all).
        #[arg(long, value_name = "NAMES")]
        skills: Option<String>,
    },
    /// Remove an agent and its folder.
    Remove {
        /// Name of the agent.
        name: String,
    },
}

/// Runs `pudu agent`.
pub(super) fn agent(start: &Start, verb: &AgentCommand) -> ExitCode {
    let loaded = match run::load(start) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    match execute(start, &loaded, verb) {
        Ok(words) => print_output(words, ExitCode::SUCCESS),
        Err(error) => run::fail(&error),
    }
}

fn execute(start: &Start, loaded: &LoadedConfig, verb: &AgentCommand) -> Result<String> {
    let agents = &Agents::new(loaded.config.fixed.home.clone());
    Ok(match verb {
        AgentCommand::List { json: true } => format!("{:#}\n", as_json(agents)),
        AgentCommand::List { json: false } => chat::fitted(&list(agents)),
        AgentCommand::Show { name } => show(&agents.find(name)?),
        AgentCommand::New { name, description, soul, model, tool_groups, skills } => {
            let profile = AgentProfile {
                about: description.clone(),
                model: model.clone(),
                tool_groups: tool_groups.as_deref().map(split_names),
                skills: skills.as_deref().map(split_names),
                soul: read(soul)?,
                ..AgentProfile::default()
            };
            refuse_unknown(start, loaded, &profile)?;
            let created = agents.create(name, &profile)?;
            format!("Created {0}; /agent {0} in a chat switches to it.\n", created.name)
        }
        AgentCommand::Remove { name } => {
            agents.remove(name)?;
            format!("Removed {name}.\n")
        }
    })
}

/// Refuses unknown models, tool groups and skills: an agent with one would answer differently than intended, or not at
/// all.
fn refuse_unknown(start: &Start, loaded: &LoadedConfig, profile: &AgentProfile) -> Result<()> {
    let (hot, groups) = (&loaded.config.hot, agent::groups(&loaded.config.hot));
    let models: Vec<&str> = hot.models.iter().map(|model| model.settings.name.as_str()).collect();
    all_in("model", profile.model.iter(), &models)?;
    let groups: Vec<&str> = groups.names.iter().map(String::as_str).collect();
    all_in("tool group", profile.tool_groups.iter().flatten(), &groups)?;
    if profile.skills.is_some() {
        let catalog = skills::open(start, &loaded.config.fixed, loaded.report.file.as_deref())?.read();
        let names: Vec<&str> = catalog.entries.iter().map(|entry| entry.name.as_str()).collect();
        all_in("skill", profile.skills.iter().flatten(), &names)?;
    }
    Ok(())
}

fn all_in<'a>(kind: &str, mut wanted: impl Iterator<Item = &'a String>, known: &[&str]) -> Result<()> {
    let Some(unknown) = wanted.find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let help = match nearest(unknown, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "none are configured".to_owned(),
        None => format!("available: {}", known.join(", ")),
    };
    bail!("there is no {kind} `{unknown}`; {help}")
}

fn as_json(agents: &Agents) -> Value {
    let own = agents.owners().into_iter().map(|owner| {
        let mut rosters = roster_json(&agents.own_of(&owner));
        rosters["user"] = json!(owner.as_str());
        rosters
    });
    let mut rosters = roster_json(&agents.list());
    rosters["own"] = own.collect();
    rosters
}

fn roster_json(roster: &Roster) -> Value {
    let agent = |CustomAgent { name, profile, place, odd }: &CustomAgent| {
        json!({
            "name": name,
            "description": profile.about,
            "model": profile.model,
            "tool_groups": profile.tool_groups,
            "skills": profile.skills,
            "legacy": *place == AgentPlace::Legacy,
            "notes": odd,
        })
    };
    let broken = |BrokenAgent { name, why }: &BrokenAgent| json!({ "name": name, "problem": why });
    json!({
        "agents": roster.agents.iter().map(agent).collect::<Vec<_>>(),
        "broken": roster.broken.iter().map(broken).collect::<Vec<_>>(),
    })
}

fn list(agents: &Agents) -> String {
    let mut out = listed(&agents.list());
    for owner in agents.owners() {
        let own = listed(&agents.own_of(&owner));
        let indented: String = own.lines().map(|line| format!("  {line}\n")).collect();
        // Writing to a String cannot fail.
        let _ = write!(out, "of {owner}:\n{indented}");
    }
    out
}

fn listed(roster: &Roster) -> String {
    let mut out = String::new();
    let width = roster.agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    for CustomAgent { name, profile, place, odd } in &roster.agents {
        let about = pudu_dispatch::commands::brief(&profile.about);
        let legacy = if *place == AgentPlace::Legacy { " (in the older folder)" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{name:width$}  {about}{legacy}");
        for note in odd {
            let _ = writeln!(out, "        {note}");
        }
    }
    if roster.agents.is_empty() && roster.broken.is_empty() {
        out.push_str("There are no agents.\n");
    }
    for BrokenAgent { name, why } in &roster.broken {
        let _ = writeln!(out, "BROKEN  {name}\n        {why}");
    }
    if roster.more > 0 {
        let _ = writeln!(out, "and {} more", roster.more);
    }
    out
}

fn show(custom: &CustomAgent) -> String {
    let profile = &custom.profile;
    let mut out = format!("{}\n  {}\n", custom.name, profile.about);
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
    custom.odd.iter().for_each(|note| line("note", note));
    format!("{out}\n{}\n", profile.soul.trim_end())
}

fn split_names(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn read(path: &Path) -> Result<String> {
    let limit = MAX_SOUL_BYTES as u64 + 1;
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => io::stdin().take(limit).read_to_string(&mut text),
        false => File::open(path).and_then(|file| file.take(limit).read_to_string(&mut text)),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}
