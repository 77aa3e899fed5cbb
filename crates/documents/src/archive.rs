//! Untrusted archives, whose number of files, extracted size and nesting are checked before use.

use crate::{DocumentLimits, Error, markup};
use std::{
    cell::RefCell,
    io::{BufReader, Cursor, Read},
};
use zip::{ZipArchive, result::ZipError};

/// Returns one file of an archive, of at most `limit` bytes, without extracting the others.
///
/// # Errors
/// When the input is not an archive, or the file is missing or larger.
pub fn member(archive: std::fs::File, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let mut zip = ZipArchive::new(BufReader::new(archive)).map_err(|error| failed(&error))?;
    let file = zip.by_name(name).map_err(|error| match error {
        ZipError::FileNotFound => Error::Refused(format!("it has no {name}")),
        error => failed(&error),
    })?;
    if !file.is_file() {
        return Err(Error::Refused(format!("{name} is not a file")));
    }
    unpacked(file, name, limit)
}

fn unpacked(file: impl Read, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| damaged(name, &error))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge(format!("{name} in it unpacks to more than {limit} bytes")));
    }
    Ok(bytes)
}

/// An archive in memory.
pub(crate) struct Archive<'a>(RefCell<ZipArchive<Cursor<&'a [u8]>>>);

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        ZipArchive::new(Cursor::new(bytes)).map(|zip| Self(RefCell::new(zip))).map_err(|error| failed(&error))
    }

    /// Returns the files' names.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + use<> {
        let zip = self.0.borrow();
        let names: Vec<String> = zip.file_names().filter_map(Result::ok).map(Into::into).collect();
        names.into_iter()
    }

    /// Returns the beginning of a small file, if it is text.
    pub(crate) fn peek(&self, name: &str) -> Option<String> {
        let mut zip = self.0.borrow_mut();
        let mut text = String::new();
        zip.by_name(name).ok()?.take(256).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Returns a whole file of at most `limit` bytes.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let mut zip = self.0.borrow_mut();
        let file = zip.by_name(name).map_err(|error| failed(&error))?;
        unpacked(file, name, limit)
    }
}

/// Extracts everything once without keeping it, so that libraries never see an archive of excessive size or nesting.
/// The sizes that an archive declares are not trusted.
pub(crate) fn examine(bytes: &[u8], limits: &DocumentLimits) -> Result<(), Error> {
    unpack(bytes, limits, true)
}

/// Like [`examine`], but checks only sizes and not the markup.
pub(crate) fn measure(bytes: &[u8], limits: &DocumentLimits) -> Result<(), Error> {
    unpack(bytes, limits, false)
}

fn unpack(bytes: &[u8], limits: &DocumentLimits, strict: bool) -> Result<(), Error> {
    let archive = Archive::open(bytes)?;
    let mut zip = archive.0.into_inner();
    if zip.len() > limits.entries {
        let text = format!("it contains {} files; the limit is {}", zip.len(), limits.entries);
        return Err(Error::TooLarge(text));
    }
    let limit = limits
        .expanded
        .min(DocumentLimits::MIN_BOMB_BYTES.max(limits.ratio.saturating_mul(bytes.len() as u64)));
    let mut left = limit;
    for index in 0..zip.len() {
        let file = zip.by_index(index).map_err(|error| failed(&error))?;
        let name = file.name().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        let mut counted = BufReader::new(file.take(left.saturating_add(1)));
        if strict && [".xml", ".rels"].iter().any(|ending| name.ends_with(ending)) {
            markup::examine(&mut counted, limits.depth)?;
        }
        std::io::copy(&mut counted, &mut std::io::sink()).map_err(|error| damaged(&name, &error))?;
        let used = left.saturating_add(1) - counted.get_ref().limit();
        left = left
            .checked_sub(used)
            .ok_or_else(|| Error::TooLarge(format!("it unpacks to more than {limit} bytes")))?;
    }
    Ok(())
}

fn failed(error: &ZipError) -> Error {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) | ZipError::InvalidPassword => {
            Error::Protected
        }
        other => Error::Damaged(other.to_string()),
    }
}

fn damaged(name: &str, error: &std::io::Error) -> Error {
    Error::Damaged(format!("{name}: {error}"))
}
