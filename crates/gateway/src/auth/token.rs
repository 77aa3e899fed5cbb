//! The token for a gateway that other machines can reach and for which the operator chose none.

use anyhow::{Context, Result};
use pudu_client::base::MessageId;
use pudu_kit::file;
use secrecy::SecretString;
use std::{io::ErrorKind, path::Path};

/// The file's name in the home.
pub const FILE: &str = "gateway-token";

/// Returns the kept token; makes one that only this user can read if there is none.
pub fn kept(home: &Path) -> Result<SecretString> {
    kept_as(home, FILE)
}

/// Returns the secret that is kept in a file of the home; makes one likewise.
pub fn kept_as(home: &Path, file: &str) -> Result<SecretString> {
    let path = home.join(file);
    match std::fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned().into()),
        Ok(_) => make(&path),
        Err(error) if error.kind() == ErrorKind::NotFound => make(&path),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns the kept token, if there is one.
pub fn found(home: &Path) -> Option<SecretString> {
    let token = std::fs::read_to_string(home.join(FILE)).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty()).map(SecretString::from)
}

fn make(path: &Path) -> Result<SecretString> {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // Beside and renamed, so that no half-written token is ever read.
    let beside = path.with_extension(MessageId::fresh().as_str());
    let written = file::replace(path, &beside, token.as_bytes(), 0o600);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let home = tempfile::tempdir().unwrap();
        let first = kept(home.path()).unwrap();
        assert_eq!(first.expose_secret().len(), 48);
        assert_eq!(kept(home.path()).unwrap().expose_secret(), first.expose_secret());
        let mode = std::fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(kept(other.path()).unwrap().expose_secret(), first.expose_secret());
    }
}
