//! Package of an Office document: its parts, the relationships between them, and a copy with changed parts.

use crate::{DocumentLimits, Error, archive::Archive, draft::DocumentDraft, text, xml::Element};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io::{Cursor, Write},
};
use zip::{CompressionMethod, ZipArchive, ZipWriter, result::ZipError, write::SimpleFileOptions};

/// Maximum size of a part that is read as text, in bytes. Its tree takes many times as much memory.
const MAX_PART_BYTES: u64 = 64 * 1024 * 1024;

/// Parts of an Office document.
pub(crate) struct Package<'a> {
    bytes: &'a [u8],
    archive: Archive<'a>,
    /// Maximum size of a part, in bytes.
    limit: u64,
    /// Names of parts that are too large.
    too_large: RefCell<BTreeSet<String>>,
    /// New texts of parts, by name.
    changed: BTreeMap<String, String>,
}

impl<'a> Package<'a> {
    pub(crate) fn open(bytes: &'a [u8], limits: &DocumentLimits) -> Result<Self, Error> {
        let archive = Archive::open(bytes)?;
        let limit = limits.expanded.min(MAX_PART_BYTES);
        Ok(Self { bytes, archive, limit, too_large: RefCell::default(), changed: BTreeMap::new() })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> + use<> {
        self.archive.names()
    }

    /// Returns the text of a part. Records a part that is too large.
    pub(crate) fn text(&self, part: &str) -> Option<String> {
        match self.archive.read(part, self.limit) {
            Ok(bytes) => Some(text::decode(&bytes)),
            Err(error) => {
                if matches!(error, Error::TooLarge(_)) {
                    self.too_large.borrow_mut().insert(part.to_owned());
                }
                None
            }
        }
    }

    /// Adds the parts that were too large to the warnings of a document.
    pub(crate) fn warn(&self, draft: &mut DocumentDraft) {
        let parts: Vec<String> = self.too_large.borrow().iter().cloned().collect();
        if !parts.is_empty() {
            let parts = parts.join(", ");
            draft.warn(format!("formulas, diagrams, comments and hidden parts are missing in parts that are too large: {parts}"));
        }
    }

    /// Returns the parts that a part refers to, by relationship ID.
    pub(crate) fn relationships(&self, part: &str) -> BTreeMap<String, Relationship> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let rels = self.text(format!("{folder}/_rels/{file}.rels").trim_start_matches('/'));
        let tree = Element::parse(&rels.unwrap_or_default());
        let relationships = tree.all("Relationship").into_iter().filter_map(|entry| {
            let kind = entry.attribute("Type").unwrap_or_default();
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            let target = resolve(folder, entry.attribute("Target")?);
            Some((entry.attribute("Id")?.to_owned(), Relationship { kind, target }))
        });
        relationships.collect()
    }

    /// Replaces the text of a part.
    pub(crate) fn change(&mut self, part: &str, text: String) {
        self.changed.insert(part.to_owned(), text);
    }

    /// Returns the package with the changed parts; `None` if no part was changed.
    pub(crate) fn changed(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.changed.is_empty() {
            return Ok(None);
        }
        self.repack().map(Some).map_err(|error| Error::Damaged(error.to_string()))
    }

    fn repack(&self) -> Result<Vec<u8>, ZipError> {
        let mut source = ZipArchive::new(Cursor::new(self.bytes))?;
        let mut copy = ZipWriter::new(Cursor::new(Vec::new()));
        for index in 0..source.len() {
            let part = source.by_index_raw(index)?;
            let name = part.name().map(|name| name.into_owned()).unwrap_or_default();
            let Some(text) = self.changed.get(&name) else {
                copy.raw_copy_file(part)?;
                continue;
            };
            copy.start_file(
                name,
                SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
            )?;
            copy.write_all(text.as_bytes())?;
        }
        Ok(copy.finish()?.into_inner())
    }
}

/// Reference from one part to another.
#[derive(Clone, Debug)]
pub(crate) struct Relationship {
    /// Last segment of the relationship type, such as `comments`.
    pub(crate) kind: String,
    /// Name of the part.
    pub(crate) target: String,
}

/// Resolves the name of a part relative to the folder of another.
fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
