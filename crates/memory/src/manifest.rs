//! `memory.json`: a user's summaries and the revision of their whole memory. Since version 2.0 it contains no facts.

use crate::{
    error::MemoryError,
    files::{MANIFEST, UserFolder},
    summary::Summaries,
    time::FactTime,
};
use serde_json::{Map, Value, json};
use std::path::Path;

const VERSION: &str = "2.0";

/// The file's contents. Unknown keys are kept in `raw`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manifest {
    raw: Map<String, Value>,
}

impl Manifest {
    /// Reads a user's manifest. Returns `None` if it does not exist.
    pub(crate) fn read(folder: &UserFolder) -> Result<Option<Self>, MemoryError> {
        Self::read_file(folder, Path::new(MANIFEST))
    }

    /// Reads a manifest from another path.
    pub(crate) fn read_file(folder: &UserFolder, file: &Path) -> Result<Option<Self>, MemoryError> {
        let Some(bytes) = folder.read(file)? else { return Ok(None) };
        let raw = serde_json::from_slice(&bytes)
            .map_err(|error| MemoryError::Broken { path: folder.path(file), why: error.to_string() })?;
        Ok(Some(Self { raw }))
    }

    /// Whether its format is older than the current version.
    pub(crate) fn is_old(&self) -> bool {
        self.raw.contains_key("facts") || self.raw.get("version").and_then(Value::as_str) != Some(VERSION)
    }

    pub(crate) fn revision(&self) -> u64 {
        self.raw.get("revision").and_then(Value::as_u64).unwrap_or_default()
    }

    pub(crate) fn last_updated(&self) -> Option<FactTime> {
        self.raw.get("lastUpdated").and_then(Value::as_str).and_then(FactTime::parse)
    }

    pub(crate) fn summaries(&self) -> Summaries {
        Summaries::read(&self.raw)
    }

    /// Returns the manifest as a document, which contains facts in version 1.0.
    pub(crate) fn document(&self) -> Value {
        Value::Object(self.raw.clone())
    }

    /// Returns the file's next contents.
    pub(crate) fn next(&self, revision: u64, summaries: &Summaries, now: FactTime) -> String {
        let mut raw = Map::new();
        raw.insert("version".to_owned(), json!(VERSION));
        raw.insert("revision".to_owned(), json!(revision));
        raw.insert("lastUpdated".to_owned(), json!(now.to_string()));
        for (key, value) in &self.raw {
            if key != "facts" && !raw.contains_key(key) {
                raw.insert(key.clone(), value.clone());
            }
        }
        summaries.write(&mut raw);
        // A map of strings and numbers can always be serialized as JSON.
        serde_json::to_string_pretty(&raw).unwrap_or_default()
    }
}
