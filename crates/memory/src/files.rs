//! A user's folder on disk: its lock, its files, and atomic changes of several files.
//!
//! Deliberately absent: the contents of the files.

mod folder;
mod journal;
mod lock;

pub(crate) use folder::{FactFileVersion, UserFolder, metadata_folder};
pub(crate) use journal::{FileTransaction, MANIFEST, recover};
pub(crate) use lock::FolderLock;

#[cfg(test)]
pub(crate) use folder::tests;
