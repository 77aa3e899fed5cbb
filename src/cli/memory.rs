//! `pudu memory`: lists, exports and replaces the memory of a user.
//!
//! Reading works beside a daemon. Replacing locks the home and the database, because the store indexes the files.

use super::{
    person::{self, Belonging},
    run,
};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand};
use pudu_agent::{Memories, MemoryOf};
use pudu_base::foreign;
use pudu_config::{Config, LoadedConfig, Start};
use pudu_daemon::store;
use pudu_kit::{file, home::Home};
use pudu_memory::{MemoryOptions, MemoryStore};
use pudu_store::{Db, DbLocation};
use serde_json::Value;
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Maximum size of an imported document, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum length of a listed fact, in characters.
const MAX_FACT_CHARS: usize = 300;

#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List users with memory, or the facts about one user.
    List {
        /// User, as for `pudu export`.
        #[arg(long, value_name = "WHO")]
        user: Option<String>,
        /// Custom agent (default: the lead agent).
        #[arg(long)]
        agent: Option<String>,
    },
    /// Export the memory of a user as DeerFlow's JSON document.
    Export {
        #[command(flatten)]
        owner: MemoryOwner,
        /// File to create (default: standard output).
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Replace the memory of a user with a document. Facts that are not in the document are lost.
    Import {
        /// Document, or - for standard input.
        file: PathBuf,
        #[command(flatten)]
        owner: MemoryOwner,
        /// Confirm that all other facts are deleted.
        #[arg(long)]
        yes: bool,
    },
}

/// A user, and the agent that remembers them.
#[derive(Args, Debug)]
pub(super) struct MemoryOwner {
    /// User, as for `pudu export`.
    #[arg(long, value_name = "WHO")]
    user: String,
    /// Custom agent (default: the lead agent).
    #[arg(long)]
    agent: Option<String>,
}

/// Runs `pudu memory`.
pub(super) async fn memory(start: &Start, verb: &MemoryCommand) -> Result<String> {
    let loaded = run::load(start).map_err(|_| anyhow!("the configuration is invalid"))?;
    let config = &loaded.config;
    match verb {
        MemoryCommand::List { user: None, .. } => users(config),
        MemoryCommand::List { user: Some(user), agent } => {
            let document = reader(config)
                .await?
                .read(&resolve_memory(start, &loaded, user, agent.as_ref()).await?)
                .await?;
            let line = |fact: &pudu_memory::Fact| {
                let text = foreign::line(&fact.content, MAX_FACT_CHARS);
                format!("{}  {}  {:.2}  {text}", fact.id, fact.category.label(), fact.confidence)
            };
            let lines: Vec<String> = document.facts.iter().map(line).collect();
            Ok(if lines.is_empty() { "There are no facts.".to_owned() } else { lines.join("\n") })
        }
        MemoryCommand::Export { owner, output } => {
            let of = resolve_memory(start, &loaded, &owner.user, owner.agent.as_ref()).await?;
            let document = format!("{:#}", reader(config).await?.export(&of).await?);
            let Some(output) = output else { return Ok(document) };
            file::create(output, document.as_bytes(), 0o600)
                .with_context(|| format!("cannot write {}", output.display()))?;
            Ok(format!("Wrote {}.", output.display()))
        }
        MemoryCommand::Import { file, owner, yes } => {
            let of = resolve_memory(start, &loaded, &owner.user, owner.agent.as_ref()).await?;
            let document = read(file)?;
            if !yes {
                let user = &of.user;
                bail!(
                    "this replaces the memory of {user} and permanently deletes facts that the document does not \
                     contain; confirm with --yes"
                );
            }
            import(config, &of, document).await
        }
    }
}

/// Replaces a memory, with the home and the database locked.
async fn import(config: &Config, of: &MemoryOf, document: Value) -> Result<String> {
    let _home = Home::lock(&config.fixed.home)?;
    let db = store::open(&config.fixed.database).await?;
    let claim = db.claim().await.context("cannot get exclusive use of the database");
    let done = match claim {
        Ok(_claim) => memories(config, db.clone()).import(of, document).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    db.close().await;
    Ok(format!("Stored {} facts of {}.", done?, of.user))
}

/// Opens memories for reading, without the store.
async fn reader(config: &Config) -> Result<Memories> {
    Ok(memories(config, Db::open(&DbLocation::Memory).await?))
}

fn memories(config: &Config, db: Db) -> Memories {
    Memories::new(db, &config.fixed.home, options(config))
}

fn options(config: &Config) -> MemoryOptions {
    config.hot.memory.rules.as_ref().map(|rules| rules.options.clone()).unwrap_or_default()
}

/// Returns the memory's key.
async fn resolve_memory(
    start: &Start,
    loaded: &LoadedConfig,
    user: &str,
    agent: Option<&String>,
) -> Result<MemoryOf> {
    let user = person::named(start, loaded, user, Belonging::Common).await?;
    Ok(MemoryOf { user, agent: agent.cloned() })
}

fn users(config: &Config) -> Result<String> {
    let store = MemoryStore::new(config.fixed.home.clone(), options(config));
    let mut lines = Vec::new();
    for scope in store.all_scopes()? {
        let facts = store.read(&scope, pudu_kit::clock::now())?.facts.len();
        lines.push(format!("{}  {}  {facts} facts", scope.user(), scope.agent()));
    }
    Ok(if lines.is_empty() { "No memories are stored yet.".to_owned() } else { lines.join("\n") })
}

fn read(path: &Path) -> Result<Value> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => io::stdin().take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
        bail!("{} is larger than {} MiB", path.display(), MAX_DOCUMENT_BYTES >> 20);
    }
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not valid JSON", path.display()))
}
