//! Custom agents: who answers instead of the lead agent, as DeerFlow keeps them: a folder with a `SOUL.md`,
//! and a `config.yaml` that may name a model.
//!
//! Deliberately absent so far: an agent's own tools and skills.

use serde::Deserialize;
use std::path::Path;
use tokio::io::AsyncReadExt;

/// A soul is no longer, in bytes.
const LARGEST: u64 = 64 * 1024;

/// A custom agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Persona {
    /// Who it is, for the system prompt.
    pub(crate) soul: String,
    /// The model that it wants.
    pub(crate) model: Option<String>,
}

#[derive(Default, Deserialize)]
struct File {
    model: Option<String>,
}

/// Finds an agent in the home. The error is for people.
pub(crate) async fn find(home: &Path, wanted: &str) -> Result<Persona, String> {
    let name = normal(wanted).ok_or_else(|| format!("`{wanted}` cannot be the name of an agent."))?;
    // The folder before people had their own is still read.
    let folders = [home.join("users/default/agents").join(&name), home.join("agents").join(&name)];
    for folder in &folders {
        if let Some(soul) = read(&folder.join("SOUL.md")).await {
            return Ok(Persona { soul, model: model(folder).await });
        }
    }
    tracing::error!(agent = name, folder = %folders[0].display(), "there is no SOUL.md");
    Err(format!("There is no agent `{name}`. Whoever runs this bot finds in its log where it is looked for."))
}

/// Brings a name to DeerFlow's form; `None` for one that is none, or that would leave the folder.
fn normal(name: &str) -> Option<String> {
    let name = name.trim().to_lowercase().replace('_', "-");
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (!name.is_empty() && name.len() <= 64 && name.chars().all(fits)).then_some(name)
}

async fn model(folder: &Path) -> Option<String> {
    let text = read(&folder.join("config.yaml")).await?;
    match serde_saphyr::from_str::<File>(&text) {
        Ok(file) => file.model,
        Err(_) => {
            tracing::warn!(folder = %folder.display(), "an agent's config.yaml cannot be read; its model is not used");
            None
        }
    }
}

async fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = tokio::fs::File::open(path).await.ok()?;
    file.take(LARGEST).read_to_string(&mut text).await.ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_agent_is_a_folder_with_a_soul() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let folder = home.join("users/default/agents/code-reviewer");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SOUL.md"), "You review code.").unwrap();
        let plain = Persona { soul: "You review code.".into(), model: None };
        assert_eq!(find(home, " Code_Reviewer ").await, Ok(plain.clone()));
        std::fs::write(folder.join("config.yaml"), "name: code-reviewer\nmodel: big\ntool_groups: [web]\n")
            .unwrap();
        assert_eq!(
            find(home, "code-reviewer").await,
            Ok(Persona { model: Some("big".into()), ..plain.clone() })
        );
        std::fs::write(folder.join("config.yaml"), ": [").unwrap();
        assert_eq!(find(home, "code-reviewer").await, Ok(plain));
        assert!(find(home, "nobody").await.unwrap_err().contains("There is no agent `nobody`"));
        for name in ["", "../code-reviewer", "a/b", "é", "."] {
            assert!(find(home, name).await.unwrap_err().contains("cannot be the name"), "{name}");
        }
    }
}
