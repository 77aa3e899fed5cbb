//! Locates a DeerFlow home and its files.

use crate::error::ImportError;
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// A DeerFlow home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeerFlowHome {
    /// The folder with users, threads and the database.
    pub folder: PathBuf,
    /// The configuration, if it was found.
    pub config: Option<PathBuf>,
    /// The file of MCP servers and skill switches, if it was found.
    pub extensions: Option<PathBuf>,
    /// The folder of skills, if it was found.
    pub skills: Option<PathBuf>,
}

impl DeerFlowHome {
    /// Finds the home at this path, which is the project's folder or the home itself.
    ///
    /// # Errors
    /// When there is no home.
    pub fn find(dir: &Path) -> Result<Self, ImportError> {
        match dir.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ImportError::Missing(dir.to_owned()));
            }
            Ok(found) if !found.is_dir() => return Err(ImportError::NotAFolder(dir.to_owned())),
            _ => {}
        }
        let below = [dir.join(".deer-flow"), dir.join("backend/.deer-flow"), dir.to_owned()];
        let is_home = |folder: &&PathBuf| {
            ["users", "data", "channels", "threads"].iter().any(|name| folder.join(name).is_dir())
        };
        let folder = below.iter().find(is_home).ok_or_else(|| ImportError::NoHome(dir.to_owned()))?.clone();
        let around: Vec<PathBuf> = folder.ancestors().take(3).map(Path::to_path_buf).collect();
        // Folders above the given one are not searched.
        let around: Vec<PathBuf> =
            around.into_iter().filter(|place| place.starts_with(dir) || folder == *dir).collect();
        let find = |names: &[&str], is_wanted: fn(&PathBuf) -> bool| {
            let places = around.iter().flat_map(|place| names.iter().map(move |name| place.join(name)));
            places.into_iter().find(is_wanted)
        };
        // Unusual files are reported later.
        let is_there = |file: &PathBuf| file.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        Ok(Self {
            config: find(&["config.yaml"], |file| file.is_file()),
            extensions: find(&["extensions_config.json", "mcp_config.json"], is_there),
            skills: around.iter().map(|place| place.join("skills")).find(|place| place.is_dir()),
            folder,
        })
    }

    /// Returns the default path of the database.
    #[must_use]
    pub fn usual_database(&self) -> PathBuf {
        self.folder.join("data").join("deerflow.db")
    }
}
