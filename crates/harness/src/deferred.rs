//! Tools that a model knows only by name. It reads the schemas that it needs with `tool_search` and can call those
//! tools from its next step on: the schemas of hundreds of tools would leave little room for anything else.
//!
//! `search.rs` finds them, `middleware/deferred_tools.rs` hides the others.

mod search;

pub use search::searching;

use crate::Toolbox;
use pudu_base::{ToolSpec, foreign};
use sha2::{Digest, Sha256};
use std::{collections::HashSet, fmt::Write, sync::Arc};

/// Name of the tool that finds the others.
pub const SEARCH: &str = "tool_search";
/// Maximum length of the list of names, in bytes.
const MAX_NAMES_BYTES: usize = 24 * 1024;

/// Introduces the list.
const ABOUT: &str = "In addition to the tools that you see, you can use the tools listed below by name. Before you call one of them, look it up with tool_search: it returns the tool's parameters, and from your next step on you can call the tool.";

/// Tools that have to be found by searching. With an empty catalogue the model sees every tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCatalog {
    /// Sorted by name.
    specs: Vec<Arc<ToolSpec>>,
    /// Identifies this catalogue and its subsets.
    hash: String,
    prompt: String,
}

impl ToolCatalog {
    /// Creates a catalogue of tools.
    #[must_use]
    pub fn new(specs: impl IntoIterator<Item = Arc<ToolSpec>>) -> Self {
        let mut specs: Vec<Arc<ToolSpec>> = specs.into_iter().collect();
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        let hash = hash(&specs);
        let prompt = prompt(&specs);
        Self { specs, hash, prompt }
    }

    /// Whether the catalogue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Whether a tool has to be searched for before it is called.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.specs.binary_search_by(|spec| spec.name.as_str().cmp(name)).is_ok()
    }

    /// Returns the section of the system prompt, which is the same as long as the tools are.
    #[must_use]
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Returns the identity of the catalogue.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns the subset that is among `tools`. A tool found in the whole catalogue counts as found in the subset.
    fn restricted_to(self: &Arc<Self>, tools: &Toolbox) -> Arc<Self> {
        let available: HashSet<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
        let inside = |spec: &&Arc<ToolSpec>| available.contains(spec.name.as_str());
        if self.specs.iter().all(|spec| inside(&spec)) {
            return self.clone();
        }
        let part = Self::new(self.specs.iter().filter(inside).cloned());
        Arc::new(Self { hash: self.hash.clone(), ..part })
    }
}

/// Returns sixteen hex digits that change with any of the tools.
fn hash(specs: &[Arc<ToolSpec>]) -> String {
    let mut digest = Sha256::new();
    for spec in specs {
        let ToolSpec { name, description: about, parameters, idempotent: _ } = &**spec;
        for part in [name.as_str(), about.as_str(), &parameters.to_string()] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn prompt(specs: &[Arc<ToolSpec>]) -> String {
    let mut names = String::new();
    for (at, spec) in specs.iter().enumerate() {
        if names.len() + spec.name.len() > MAX_NAMES_BYTES {
            // Writing to a String cannot fail.
            let _ = writeln!(names, "({} more are not listed; tool_search finds them)", specs.len() - at);
            break;
        }
        let _ = writeln!(names, "{}", foreign::line(&spec.name, usize::MAX));
    }
    format!("\n\n{ABOUT}\n\n<available-deferred-tools>\n{names}</available-deferred-tools>")
}

#[cfg(test)]
mod tests;
