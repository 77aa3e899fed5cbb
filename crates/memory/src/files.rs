//! A user's folder on the disk: its lock, its files, and changes of several files that happen whole or not at all.
//!
//! Deliberately absent: what the files mean.

mod folder;
mod journal;
mod lock;

pub(crate) use folder::{UserFolder, metadata_folder};
pub(crate) use journal::{FileTransaction, MANIFEST, recover};
pub(crate) use lock::FolderLock;

#[cfg(test)]
pub(crate) use folder::tests;
