//! The facts of one agent as files, and the files stored with them: evidence, uses, the record of evictions, and
//! superseded facts.

use crate::{
    cache::KnownFacts,
    changes::{EvictedFact, SupersededFact, Supersession},
    document::BrokenFile,
    error::MemoryError,
    evict::{FactHeat, HeatMap},
    fact::{AUTHOR, Fact, FactId, FactOrigin},
    files::{FileTransaction, UserFolder},
    markdown,
    options::MemoryOptions,
    scope::MemoryScope,
    time::FactTime,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
};

const ORIGINS: &str = "pudu.json";
const USAGE: &str = "fact-usage.json";
const AUDIT: &str = "eviction-audit.json";
const SUPERSEDED: &str = "superseded";
/// Key of a superseded fact's file: the fact that replaces it.
const BY: &str = "supersededBy";
const AT: &str = "supersededAt";
const REASON: &str = "supersededReason";

/// The facts of one agent.
pub(crate) struct FactBucket<'a> {
    folder: &'a UserFolder,
    scope: &'a MemoryScope,
}

impl<'a> FactBucket<'a> {
    pub(crate) fn new(folder: &'a UserFolder, scope: &'a MemoryScope) -> Self {
        Self { folder, scope }
    }

    pub(crate) fn scope(&self) -> &MemoryScope {
        self.scope
    }

    /// Reads the facts, sorted by name, with their evidence, and lists the files that are not facts.
    pub(crate) fn read(&self) -> Result<(Vec<Fact>, Vec<BrokenFile>), MemoryError> {
        self.read_changed(&mut KnownFacts::new(), FactTime::default())
    }

    /// Like [`FactBucket::read`], but reads only files that changed since `known` was filled, and updates `known`.
    pub(crate) fn read_changed(
        &self,
        known: &mut KnownFacts,
        now: FactTime,
    ) -> Result<(Vec<Fact>, Vec<BrokenFile>), MemoryError> {
        let mut origins = self.origins();
        let (mut facts, mut broken) = (Vec::new(), Vec::new());
        let mut before = std::mem::take(known);
        for file in self.files()? {
            let version = self.folder.version(&file, now.millis());
            let same = before.remove(&file).filter(|(old, _)| Some(*old) == version);
            match same.map_or_else(|| self.read_fact(&file), |(_, fact)| Ok(fact)) {
                Ok(mut fact) => {
                    if let Some(version) = version {
                        known.insert(file, (version, fact.clone()));
                    }
                    fact.origin = origins.remove(fact.id.as_str());
                    facts.push(fact);
                }
                Err(why) => broken.push(BrokenFile { path: self.folder.path(&file), why }),
            }
        }
        facts.sort_by(|a, b| a.id.cmp(&b.id));
        Ok((facts, broken))
    }

    fn read_fact(&self, file: &Path) -> Result<Fact, String> {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let id = FactId::new(&stem).map_err(|error| error.to_string())?;
        let expected = self.file(&id);
        if expected != file {
            return Err(format!("a fact with this name must be stored at {}", expected.display()));
        }
        let bytes = self.folder.read(file).map_err(|error| error.to_string())?;
        markdown::read(&bytes.unwrap_or_default(), &stem, self.scope)
    }

    /// Lists the Markdown files, whether valid or not.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, MemoryError> {
        let root = self.scope.facts_folder();
        let mut files = Vec::new();
        for name in self.folder.list(&root)? {
            let below = root.join(&name);
            if is_markdown(&name) {
                files.push(below);
            } else if !name.starts_with('.') {
                let names = self.folder.list(&below).unwrap_or_default();
                files.extend(names.iter().filter(|name| is_markdown(name)).map(|name| below.join(name)));
            }
        }
        Ok(files)
    }

    /// Returns the path of a fact's file.
    pub(crate) fn file(&self, id: &FactId) -> PathBuf {
        self.scope.facts_folder().join(id.shard()).join(format!("{id}.md"))
    }

    fn metadata_path(&self, name: &str) -> PathBuf {
        self.scope.metadata_folder().join(name)
    }

    /// Reads a file stored with the facts. A broken file counts as empty, because its contents are not essential.
    fn read_beside<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        let file = self.metadata_path(name);
        let Ok(Some(bytes)) = self.folder.read(&file) else { return T::default() };
        serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            tracing::warn!(file = %self.folder.path(&file).display(), %error, "ignored broken file beside facts");
            T::default()
        })
    }

    fn write_beside(&self, transaction: &mut FileTransaction, name: &str, value: &Value, is_empty: bool) {
        let file = self.metadata_path(name);
        if !is_empty {
            transaction.write(file, serde_json::to_vec_pretty(value).unwrap_or_default());
        } else if self.folder.exists(&file) {
            transaction.remove(file);
        }
    }

    fn origins(&self) -> BTreeMap<String, FactOrigin> {
        let mut file: Map<String, Value> = self.read_beside(ORIGINS);
        let origins = file.remove("origins").unwrap_or_default();
        serde_json::from_value(origins).unwrap_or_default()
    }

    /// Writes the evidence of facts, and drops the evidence of removed facts.
    pub(crate) fn write_origins(&self, transaction: &mut FileTransaction, facts: &[Fact]) {
        let origins: BTreeMap<String, FactOrigin> =
            facts.iter().filter_map(|fact| Some((fact.id.to_string(), fact.origin.clone()?))).collect();
        if origins != self.origins() {
            let value = json!({"version": 1, "origins": origins});
            self.write_beside(transaction, ORIGINS, &value, origins.is_empty());
        }
    }

    /// Reads how much each fact was used.
    pub(crate) fn heat(&self) -> HeatMap {
        let usage: Map<String, Value> = self.read_beside(USAGE);
        let heat = |entry: &Value| {
            let at = FactTime::parse(entry.get("lastAccessedAt")?.as_str()?)?;
            Some(FactHeat { heat: entry.get("accessHeat")?.as_f64()?, at })
        };
        usage.iter().filter_map(|(id, entry)| Some((FactId::new(id).ok()?, heat(entry)?))).collect()
    }

    /// Counts a use of facts in DeerFlow's file. Uses of unknown facts are ignored.
    pub(crate) fn write_uses(
        &self,
        transaction: &mut FileTransaction,
        used: &[FactId],
        half_life_days: f64,
        now: FactTime,
    ) {
        let mut usage: Map<String, Value> = self.read_beside(USAGE);
        let heat = self.heat();
        let used: HashSet<&FactId> = used.iter().filter(|id| self.folder.exists(self.file(id))).collect();
        for id in &used {
            let old = heat.get(id);
            let left = old.map_or(0.0, |old| old.heat * (-old.at.days_until(now) / half_life_days).exp2());
            let count = usage.get(id.as_str()).and_then(|entry| entry.get("accessCount")?.as_u64());
            let entry = json!({
                "accessHeat": left.max(0.0) + 1.0,
                "accessCount": count.unwrap_or_default() + 1,
                "lastAccessedAt": now.to_string(),
            });
            usage.insert(id.to_string(), entry);
        }
        if !used.is_empty() {
            self.write_beside(transaction, USAGE, &Value::Object(usage), false);
        }
    }

    /// Records evictions in DeerFlow's file: names and scores, never texts.
    pub(crate) fn write_audit(
        &self,
        transaction: &mut FileTransaction,
        evicted: &[EvictedFact],
        reserved: usize,
        options: &MemoryOptions,
        now: FactTime,
    ) {
        if evicted.is_empty() || options.max_audit_entries == 0 {
            return;
        }
        let item = |fact: &EvictedFact| {
            let components: Map<String, Value> =
                fact.components.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            json!({"factId": fact.id.as_str(), "category": fact.category, "score": fact.score, "components": components})
        };
        let mut events: Vec<Value> = self.read_beside(AUDIT);
        events.push(json!({
            "occurredAt": now.to_string(),
            "reason": "capacity",
            "policyVersion": options.eviction.name(),
            "maxFacts": options.max_facts,
            "reservedCorrectionSlots": reserved,
            "evicted": evicted.iter().map(item).collect::<Vec<_>>(),
        }));
        let surplus = events.len().saturating_sub(options.max_audit_entries);
        events.drain(..surplus);
        self.write_beside(transaction, AUDIT, &json!(events), false);
    }

    /// Removes facts from the files of uses and evictions.
    pub(crate) fn forget_metadata(&self, transaction: &mut FileTransaction, gone: &HashSet<&str>) {
        let mut usage: Map<String, Value> = self.read_beside(USAGE);
        let before = usage.len();
        usage.retain(|id, _| !gone.contains(id.as_str()));
        if usage.len() != before {
            let is_empty = usage.is_empty();
            self.write_beside(transaction, USAGE, &Value::Object(usage), is_empty);
        }
        let events: Vec<Value> = self.read_beside(AUDIT);
        let left: Vec<Value> = events.iter().filter_map(|event| without_facts(event, gone)).collect();
        if left != events {
            self.write_beside(transaction, AUDIT, &json!(left), left.is_empty());
        }
    }

    /// Lists the superseded facts, newest first.
    pub(crate) fn superseded(&self) -> Result<Vec<SupersededFact>, MemoryError> {
        let mut found = Vec::new();
        for (file, stem) in self.superseded_files()? {
            let bytes = self.folder.read(&file)?.unwrap_or_default();
            let Ok(fact) = markdown::read_superseded(&bytes, &stem, self.scope) else { continue };
            let text = |key: &str| fact.extra.get(key).and_then(Value::as_str);
            found.push(SupersededFact {
                by: text(BY).and_then(|by| FactId::new(by).ok()),
                at: text(AT).and_then(FactTime::parse),
                reason: text(REASON).unwrap_or_default().to_owned(),
                fact,
            });
        }
        found.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.fact.id.cmp(&b.fact.id)));
        Ok(found)
    }

    /// Lists the files of superseded facts, each with its name without the extension.
    pub(crate) fn superseded_files(&self) -> Result<Vec<(PathBuf, String)>, MemoryError> {
        let folder = self.metadata_path(SUPERSEDED);
        let names = self.folder.list(&folder)?;
        let files =
            names.iter().filter_map(|name| Some((folder.join(name), name.strip_suffix(".md")?.to_owned())));
        Ok(files.collect())
    }

    /// Stores superseded facts, and drops the oldest earlier ones if there are too many.
    pub(crate) fn write_superseded(
        &self,
        transaction: &mut FileTransaction,
        gone: &[(Fact, Supersession)],
        options: &MemoryOptions,
        now: FactTime,
    ) -> Result<(), MemoryError> {
        if gone.is_empty() {
            return Ok(());
        }
        let folder = self.metadata_path(SUPERSEDED);
        let mut old = self.superseded_files()?;
        old.retain(|(_, stem)| !gone.iter().any(|(fact, _)| fact.id.as_str() == stem));
        old.sort_by_cached_key(|(file, _)| self.folder.modified(file));
        // Each newly superseded fact removes at most one older one, so lowering the limit does not delete many at once.
        let surplus = (old.len() + gone.len()).saturating_sub(options.max_superseded).min(gone.len());
        for (file, _) in old.into_iter().take(surplus) {
            transaction.remove(file);
        }
        for (fact, why) in gone {
            let author = fact.origin.as_ref().and_then(|origin| origin.author.as_ref());
            let mut keys = vec![
                (AT, json!(now.to_string())),
                (REASON, json!(why.reason.name())),
                (BY, json!(why.by.as_ref().map(FactId::as_str))),
            ];
            keys.extend(author.map(|author| (AUTHOR, json!(author))));
            let text = markdown::write_superseded(fact, self.scope, &keys);
            transaction.write(folder.join(format!("{}.md", fact.id)), text);
        }
        Ok(())
    }
}

impl FactBucket<'_> {
    /// Stores a fact that is already superseded in another bucket: its unknown keys contain the time and reason.
    pub(crate) fn keep_superseded(&self, transaction: &mut FileTransaction, fact: &Fact) {
        let fact = Fact { raw_user: None, ..fact.clone() };
        let text = markdown::write_superseded(&fact, self.scope, &[]);
        transaction.write(self.metadata_path(SUPERSEDED).join(format!("{}.md", fact.id)), text);
    }

    /// Copies the uses of its facts to another bucket, for facts that exist there under the same name.
    pub(crate) fn move_uses(&self, other: &FactBucket<'_>, transaction: &mut FileTransaction) {
        let brought: Map<String, Value> = self.read_beside(USAGE);
        let mut usage: Map<String, Value> = other.read_beside(USAGE);
        let is_there = |id: &String| FactId::new(id).is_ok_and(|id| other.folder.exists(other.file(&id)));
        let before = usage.len();
        for (id, entry) in brought {
            if is_there(&id) && !usage.contains_key(&id) {
                usage.insert(id, entry);
            }
        }
        if usage.len() != before {
            other.write_beside(transaction, USAGE, &Value::Object(usage), false);
        }
    }
}

/// Returns an entry of the record without removed facts; `None` if nothing is left.
fn without_facts(event: &Value, gone: &HashSet<&str>) -> Option<Value> {
    let mut event = event.clone();
    let is_gone = |id: Option<&Value>| id.and_then(Value::as_str).is_some_and(|id| gone.contains(id));
    let evicted = event.get_mut("evicted")?.as_array_mut()?;
    evicted.retain(|item| !is_gone(item.get("factId")));
    if evicted.is_empty() {
        return None;
    }
    if let Some(shadow) = event.pointer_mut("/shadow/wouldEvict").and_then(Value::as_array_mut) {
        shadow.retain(|id| !is_gone(Some(id)));
    }
    Some(event)
}

fn is_markdown(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}
