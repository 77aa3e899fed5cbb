//! Profiles: a `USER.md` in the user's folder, written by the user. It is exported and deleted with the user's other
//! files.

use crate::Agent;
use pudu_base::{MessageId, UserId};
use pudu_kit::{blocking, file};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Read},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

const FILE: &str = "USER.md";
/// Maximum size of a profile that is read, in bytes.
const MAX_PROFILE_BYTES: u64 = 1024 * 1024;

impl Agent {
    /// Returns a user's profile, if any.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub async fn profile(&self, user: &UserId) -> io::Result<Option<String>> {
        let path = self.0.folders.user(user).join(FILE);
        blocking(move || read(&path), io::Error::other).await
    }

    /// Stores or removes the profile of a user.
    ///
    /// # Errors
    /// If its file cannot be written. The profile is then unchanged.
    pub async fn set_profile(&self, user: &UserId, profile: Option<String>) -> io::Result<()> {
        let folder = self.0.folders.user(user);
        let work = move || match profile {
            Some(text) => write(&folder, &text),
            None => match fs::remove_file(folder.join(FILE)) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        blocking(work, io::Error::other).await
    }
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(MAX_PROFILE_BYTES).read_to_string(&mut text)) {
        Ok(_) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(folder: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let beside = folder.join(format!(".{FILE}.{}.part", MessageId::fresh()));
    file::replace(&folder.join(FILE), &beside, text.as_bytes(), 0o600)
}
