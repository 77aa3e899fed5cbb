//! Operators' logins at MCP servers: a file in the home folder, sealed with a key in another file, so that a copy of the
//! logins alone is of no use.

use base64::{Engine, prelude::BASE64_STANDARD};
use pudu_base::BoxFuture;
use pudu_kit::{blocking, file};
use pudu_mcp::LoginVault;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::{ExposeSecret, SecretString};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Name of the file with the logins in the home folder.
const FILE: &str = "mcp-logins.json";
/// Name of the file with the key in the home folder.
const KEY_FILE: &str = "mcp-login-key";
/// Length of the key, in bytes.
const KEY_BYTES: usize = 32;

/// The logins of a home.
#[derive(Clone, Debug)]
pub struct LoginFile {
    home: PathBuf,
}

impl LoginFile {
    /// Creates the vault of a home. Nothing is read yet.
    #[must_use]
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }

    fn read(&self) -> Result<BTreeMap<String, String>, String> {
        let path = self.home.join(FILE);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| described(&path, &error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(described(&path, &error)),
        }
    }

    /// Returns the key, which is created if it is missing.
    fn key(&self) -> Result<LessSafeKey, String> {
        let path = self.home.join(KEY_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut fresh = vec![0; KEY_BYTES];
                getrandom::fill(&mut fresh).map_err(|error| format!("no randomness: {error}"))?;
                file::create(&path, &fresh, 0o600).map_err(|error| described(&path, &error))?;
                fresh
            }
            Err(error) => return Err(described(&path, &error)),
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes);
        key.map(LessSafeKey::new).map_err(|_| format!("{}: it is no key", path.display()))
    }

    fn open(&self, server: &str) -> Result<Option<SecretString>, String> {
        let Some(sealed) = self.read()?.remove(server) else { return Ok(None) };
        let broken = || format!("the login at {server} cannot be read: log in again");
        let mut sealed = BASE64_STANDARD.decode(sealed).map_err(|_| broken())?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN).ok_or_else(broken)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
        // The name of the server is bound to the login, so that no login is moved to another server.
        let opened =
            self.key()?.open_in_place(nonce, Aad::from(server.as_bytes()), text).map_err(|_| broken())?;
        String::from_utf8(opened.to_vec()).map(|text| Some(text.into())).map_err(|_| broken())
    }

    /// Waits until no other process and no other thread changes the logins.
    fn lock(&self) -> Result<fs::File, String> {
        let locked = fs::File::open(&self.home).and_then(|folder| folder.lock().map(|()| folder));
        locked.map_err(|error| described(&self.home, &error))
    }

    fn seal(&self, server: &str, login: &SecretString) -> Result<(), String> {
        let _lock = self.lock()?;
        let mut logins = self.read()?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| format!("no randomness: {error}"))?;
        let mut text = login.expose_secret().as_bytes().to_vec();
        let (unique, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(server.as_bytes()));
        let sealed = self.key()?.seal_in_place_append_tag(unique, aad, &mut text);
        sealed.map_err(|_| format!("the login at {server} cannot be sealed"))?;
        logins.insert(server.to_owned(), BASE64_STANDARD.encode([&nonce[..], &text].concat()));
        let bytes = serde_json::to_vec_pretty(&logins).map_err(|error| error.to_string())?;
        let (path, part) = (self.home.join(FILE), self.home.join(format!("{FILE}.{}", std::process::id())));
        file::replace(&path, &part, &bytes, 0o600).map_err(|error| described(&path, &error))
    }
}

fn described(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

impl LoginVault for LoginFile {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        let (vault, server) = (self.clone(), server.to_owned());
        Box::pin(blocking(move || vault.open(&server), |error| error.to_string()))
    }

    fn store<'a>(&'a self, server: &'a str, login: SecretString) -> BoxFuture<'a, Result<(), String>> {
        let (vault, server) = (self.clone(), server.to_owned());
        Box::pin(blocking(move || vault.seal(&server, &login), |error| error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn logins_that_are_stored_at_once_are_all_kept() {
        let home = tempfile::tempdir().unwrap();
        let vault = || LoginFile::new(home.path().to_owned());
        let names: Vec<String> = (0..8).map(|number| format!("server-{number}")).collect();
        let store = |name: String| {
            let vault = vault();
            tokio::spawn(async move { vault.store(&name, name.clone().into()).await })
        };
        let stored: Vec<_> = names.iter().cloned().map(store).collect();
        for stored in stored {
            assert_eq!(stored.await.unwrap(), Ok(()));
        }
        for name in &names {
            let login = vault().load(name).await.unwrap().unwrap();
            assert_eq!(login.expose_secret(), name);
        }
    }

    #[tokio::test]
    async fn a_login_is_sealed_and_belongs_to_its_server() {
        let home = tempfile::tempdir().unwrap();
        let vault = LoginFile::new(home.path().to_owned());
        let load = async |server| {
            vault.load(server).await.map(|login| login.map(|login| login.expose_secret().to_owned()))
        };
        assert_eq!(load("a").await, Ok(None));
        vault.store("a", "token-of-a".to_owned().into()).await.unwrap();
        vault.store("b", "token-of-b".to_owned().into()).await.unwrap();
        assert_eq!(load("a").await, Ok(Some("token-of-a".to_owned())));
        let path = home.path().join(FILE);
        let stored = fs::read_to_string(&path).unwrap();
        assert!(!stored.contains("token"), "{stored}");
        let mut logins: BTreeMap<String, String> = serde_json::from_str(&stored).unwrap();
        logins.insert("b".to_owned(), logins["a"].clone());
        fs::write(&path, serde_json::to_vec(&logins).unwrap()).unwrap();
        assert_eq!(load("b").await, Err("the login at b cannot be read: log in again".to_owned()));
        fs::write(home.path().join(KEY_FILE), [7; KEY_BYTES]).unwrap();
        assert_eq!(load("a").await, Err("the login at a cannot be read: log in again".to_owned()));
        fs::write(home.path().join(KEY_FILE), "short").unwrap();
        assert!(load("a").await.unwrap_err().ends_with("it is no key"));
        fs::write(&path, "{").unwrap();
        assert!(load("a").await.is_err());
    }
}
