//! The operator's token, generated if the gateway needs one and the operator chose none.

use anyhow::{Context, Result};
use pudu_base::MessageId;
use pudu_kit::file;
use secrecy::{ExposeSecret, SecretString};
use std::{io::ErrorKind, path::Path};

/// File name in the home folder.
pub const FILE: &str = "gateway-token";

/// Returns the stored token. If there is none, creates one that only this system user can read.
pub fn kept(home: &Path) -> Result<SecretString> {
    kept_as(home, FILE)
}

/// Returns the secret stored in a file of the home folder. Creates it if it is missing.
pub fn kept_as(home: &Path, file: &str) -> Result<SecretString> {
    let path = home.join(file);
    match std::fs::read_to_string(&path) {
        Ok(token) if !token.trim().is_empty() => Ok(token.trim().to_owned().into()),
        Ok(_) => make(&path),
        Err(error) if error.kind() == ErrorKind::NotFound => make(&path),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns the stored token, if there is one.
pub fn found(home: &Path) -> Option<SecretString> {
    let token = std::fs::read_to_string(home.join(FILE)).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty()).map(SecretString::from)
}

/// Returns a new secret without storing it.
pub fn fresh() -> Result<SecretString> {
    let mut bytes = [0u8; 24];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("the system's random number generator failed: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
}

fn make(path: &Path) -> Result<SecretString> {
    let token = fresh()?;
    // Written next to the target and renamed, so that a partial token is never read.
    let beside = path.with_extension(MessageId::fresh().as_str());
    let written = file::replace(path, &beside, token.expose_secret().as_bytes(), 0o600);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_created_once_and_only_its_owner_can_read_it() {
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
