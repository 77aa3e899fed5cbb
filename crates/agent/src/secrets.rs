//! Secrets that users provide for skills: `secrets.json` in the user's folder, readable only by pudu. A run reads it
//! once. Commands get a value only in their environment, and only for skills that need it.
//!
//! The file is not encrypted, because the key would be stored next to it. Deliberately absent: the check of who may
//! provide a secret, and the ways to do so.

use pudu_base::{SecretSource, UserId, Variable, is_secret_name};
use pudu_kit::file;
use pudu_net::scrub::SecretWords;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The file in a user's folder.
const FILE: &str = "secrets.json";
/// Maximum number of secrets of a user.
const MAX_SECRETS: usize = 32;
/// Allowed length of a secret, in bytes. Hiding a shorter one would also damage other text.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=8_192;
/// Maximum size of the file, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum number of recorded names that a user was asked for.
const MAX_ASKED: usize = 256;

/// Why a secret was not stored, or a user's secrets cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The name is invalid for a secret.
    #[error(
        "`{0}` is not a valid name of a secret: use at most 64 letters, digits and `_`, and not a variable that controls programs"
    )]
    Name(String),
    /// It is too short, too long, or has characters that a variable must not have.
    #[error("a secret must have {} to {} bytes, and no control characters except line breaks and tabs", LENGTH.start(), LENGTH.end())]
    Value,
    /// There are too many.
    #[error("there are {MAX_SECRETS} secrets already: delete one first")]
    Full,
    /// The file was not written by pudu.
    #[error("{}: {why}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The cause and the remedy.
        why: String,
    },
    /// The system failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SecretError {
    move |why| SecretError::Io { path: path.to_owned(), why }
}

/// The file's contents. It does not implement `Debug`, so that values are never logged.
#[derive(Default, Serialize, Deserialize)]
struct SecretFile {
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    /// Names that the user was asked for, so that they are not asked twice.
    #[serde(default)]
    asked: BTreeSet<String>,
}

/// The secrets of a home. All methods do blocking file I/O.
#[derive(Clone, Debug)]
pub struct SecretStore {
    users: PathBuf,
}

impl SecretStore {
    /// Creates the store for a folder of users. Nothing is read yet.
    #[must_use]
    pub fn new(users: PathBuf) -> Self {
        Self { users }
    }

    /// Returns the names of a user's secrets.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn names(&self, user: &UserId) -> Result<Vec<String>, SecretError> {
        Ok(self.read(user)?.secrets.into_keys().collect())
    }

    /// Stores a secret, replacing one with the same name.
    ///
    /// # Errors
    /// If the name or the value is invalid, there are too many secrets, or the disk fails.
    pub fn set(&self, user: &UserId, name: &str, value: &str) -> Result<(), SecretError> {
        check(name, value)?;
        self.change(user, |file| {
            if !file.secrets.contains_key(name) && file.secrets.len() >= MAX_SECRETS {
                return Err(SecretError::Full);
            }
            file.asked.remove(name);
            file.secrets.insert(name.to_owned(), value.to_owned());
            Ok(())
        })?;
        // From now on, the value is hidden in the log.
        SecretWords::remember([value]);
        Ok(())
    }

    /// Deletes a secret. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn delete(&self, user: &UserId, name: &str) -> Result<bool, SecretError> {
        if !self.read(user)?.secrets.contains_key(name) {
            return Ok(false);
        }
        self.change(user, |file| Ok(file.secrets.remove(name).is_some()))
    }

    /// Returns the names that the user was never asked for, and records them as asked.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn ask(&self, user: &UserId, names: &BTreeSet<String>) -> Result<BTreeSet<String>, SecretError> {
        let file = self.read(user)?;
        let new = |name: &&String| !file.asked.contains(*name) && !file.secrets.contains_key(*name);
        let new: BTreeSet<String> = names.iter().filter(new).cloned().collect();
        if !new.is_empty() {
            self.change(user, |file| {
                if file.asked.len() + new.len() > MAX_ASKED {
                    file.asked.clear();
                }
                file.asked.extend(new.iter().cloned());
                Ok(())
            })?;
        }
        Ok(new)
    }

    /// Deletes all secrets of a user, and temporary files.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn forget(&self, user: &UserId) -> Result<(), SecretError> {
        let folder = self.users.join(user.as_str());
        if !folder.exists() {
            return Ok(());
        }
        let _alone = lock(&folder)?;
        // The lock file is empty, and others may be waiting for it.
        let [_, files @ ..] = own_files();
        for name in files {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(&path)(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns whether a path in the user's folder belongs to a file with secrets.
    pub fn is_own(place: &Path) -> bool {
        place.to_str().is_some_and(|place| own_files().iter().any(|name| name == place))
    }

    /// Returns a user's secrets for one run; `own` ones take precedence. From now on, they are hidden in the run's
    /// results and in the log.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn secrets_for_run(&self, user: &UserId, own: RunSecrets) -> Result<LentSecrets, SecretError> {
        let mut secrets = self.read(user)?.secrets;
        secrets.extend(own.0);
        let words = SecretWords::remember(secrets.values().map(String::as_str));
        Ok(LentSecrets { secrets, words })
    }

    fn path(&self, user: &UserId) -> PathBuf {
        self.users.join(user.as_str()).join(FILE)
    }

    fn read(&self, user: &UserId) -> Result<SecretFile, SecretError> {
        let path = self.path(user);
        let broken = |why: &str| SecretError::Broken { path: path.clone(), why: why.to_owned() };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SecretFile::default()),
            Err(error) => return Err(io_error(&path)(error)),
        };
        let meta = file.metadata().map_err(io_error(&path))?;
        if !meta.is_file() || meta.mode() & 0o077 != 0 {
            return Err(broken(
                "other users of this machine can read it: set its mode to 600, and replace the secrets in it",
            ));
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(io_error(&path))?;
        // The parser's error would show contents of the file.
        serde_json::from_str(&text).map_err(|_| broken("it is not a valid secrets file: fix or remove it"))
    }

    fn change<T>(
        &self,
        user: &UserId,
        edit: impl FnOnce(&mut SecretFile) -> Result<T, SecretError>,
    ) -> Result<T, SecretError> {
        let path = self.path(user);
        let folder = self.users.join(user.as_str());
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(io_error(&folder))?;
        let _alone = lock(&folder)?;
        let mut file = self.read(user)?;
        let done = edit(&mut file)?;
        let text = serde_json::to_vec_pretty(&file).map_err(|error| io_error(&path)(error.into()))?;
        replace(&path, &text).map_err(io_error(&path))?;
        Ok(done)
    }
}

/// Fails for a name or a value that is invalid for a secret.
fn check(name: &str, value: &str) -> Result<(), SecretError> {
    if !is_secret_name(name) {
        return Err(SecretError::Name(name.chars().take(64).collect()));
    }
    let is_forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if !LENGTH.contains(&value.len())
        || value.trim().len() < *LENGTH.start()
        || value.chars().any(is_forbidden)
    {
        return Err(SecretError::Value);
    }
    Ok(())
}

/// Returns the names of all files written here: the lock, the secrets, and the temporary file.
fn own_files() -> [String; 3] {
    [format!(".{FILE}.lock"), FILE.to_owned(), format!(".{FILE}.part")]
}

/// Locks the file against concurrent changes, such as those by the command line.
fn lock(folder: &Path) -> Result<File, SecretError> {
    let path = folder.join(format!(".{FILE}.lock"));
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(io_error(&path))?;
    file.lock().map_err(io_error(&path))?;
    Ok(file)
}

/// Writes a temporary file and renames it. The caller holds the lock, so an existing temporary file was left by a
/// crash.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let part = path.with_file_name(format!(".{FILE}.part"));
    fs::remove_file(&part).ok();
    file::replace(path, &part, text, 0o600)
}

/// Secrets in the request for a run. Their values are neither logged nor stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RunSecrets(BTreeMap<String, String>);

impl RunSecrets {
    /// Reads the option `secrets` of a run: an object of strings.
    ///
    /// # Errors
    /// If there are too many, or a name or a value is invalid. Errors contain no values.
    pub fn read(options: &Map<String, Value>) -> Result<Self, String> {
        let Some(secrets) = options.get("secrets") else { return Ok(Self::default()) };
        let secrets = serde_json::from_value(secrets.clone())
            .map_err(|_| "secrets must be an object of strings".to_owned())?;
        Self::new(secrets).map_err(|error| format!("secrets: {error}"))
    }

    fn new(secrets: BTreeMap<String, String>) -> Result<Self, SecretError> {
        if secrets.len() > MAX_SECRETS {
            return Err(SecretError::Full);
        }
        secrets.iter().try_for_each(|(name, value)| check(name, value))?;
        SecretWords::remember(secrets.values().map(String::as_str));
        Ok(Self(secrets))
    }
}

impl fmt::Debug for RunSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// One user's secrets, for one run.
#[derive(Default)]
pub struct LentSecrets {
    secrets: BTreeMap<String, String>,
    words: SecretWords,
}

impl LentSecrets {
    /// Returns whether there is a secret with this name.
    pub fn has(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }
}

impl SecretSource for LentSecrets {
    fn variables(&self, names: &[String]) -> Vec<Variable> {
        let wanted: BTreeSet<&String> = names.iter().filter(|name| is_secret_name(name)).collect();
        let run_secrets = wanted
            .into_iter()
            .filter_map(|name| Some(Variable { name: name.clone(), value: self.secrets.get(name)?.clone() }));
        run_secrets.collect()
    }

    fn hide(&self, text: String) -> String {
        match self.words.hide(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(hidden) => hidden,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_net::scrub::hide_in_log;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, SecretStore, UserId) {
        let home = tempfile::tempdir().unwrap();
        let store = SecretStore::new(home.path().join("users"));
        (home, store, UserId::from_raw("ada").unwrap())
    }

    #[test]
    fn a_secret_is_stored_for_its_user_and_unreadable_for_others() {
        let (home, store, ada) = store();
        assert_eq!(store.names(&ada).unwrap(), [""; 0]);
        store.set(&ada, "ERP_TOKEN", "tok-123456").unwrap();
        store.set(&ada, "ERP_TOKEN", "tok-654321").unwrap();
        store.set(&ada, "MAIL_KEY", "a 'quoted'\nkey").unwrap();
        assert_eq!(store.names(&ada).unwrap(), ["ERP_TOKEN", "MAIL_KEY"]);
        let file = home.path().join("users/ada/secrets.json");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(hide_in_log("it is tok-654321"), "it is [secret]", "before any run");
        let run_secrets = store.secrets_for_run(&ada, RunSecrets::default()).unwrap();
        let names = ["ERP_TOKEN", "OTHER", "PATH"].map(str::to_owned);
        let variable = Variable { name: "ERP_TOKEN".into(), value: "tok-654321".into() };
        assert_eq!(run_secrets.variables(&names), [variable]);
        assert_eq!(run_secrets.hide("it is tok-654321".into()), "it is [secret]");
        assert!(run_secrets.has("MAIL_KEY") && !run_secrets.has("OTHER"));
        let bob = UserId::from_raw("bob").unwrap();
        assert_eq!(store.secrets_for_run(&bob, RunSecrets::default()).unwrap().variables(&names), []);
        let own = RunSecrets::new(BTreeMap::from([("ERP_TOKEN".into(), "of-this-run".into())])).unwrap();
        assert_eq!(format!("{own:?}"), r#"{"ERP_TOKEN"}"#);
        let run_secrets = store.secrets_for_run(&ada, own).unwrap();
        assert_eq!(run_secrets.variables(&names)[0].value, "of-this-run");
        assert!(run_secrets.has("MAIL_KEY") && run_secrets.hide("of-this-run".into()) == "[secret]");
        assert!(store.delete(&ada, "ERP_TOKEN").unwrap());
        assert!(!store.delete(&ada, "ERP_TOKEN").unwrap());
        assert_eq!(store.names(&ada).unwrap(), ["MAIL_KEY"]);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            store.names(&ada).unwrap_err().to_string().contains("other users of this machine can read it")
        );
    }

    #[test]
    fn invalid_secrets_and_too_many_secrets_are_refused() {
        let (home, store, ada) = store();
        for name in ["", "PATH", "LD_PRELOAD", "A B", "a-b", &"A".repeat(65)] {
            assert!(matches!(store.set(&ada, name, "12345678"), Err(SecretError::Name(_))), "{name}");
        }
        for value in ["", "short", "          ", "with\0zero", "bell\u{7}bell", &"x".repeat(8_193)] {
            assert!(matches!(store.set(&ada, "KEY", value), Err(SecretError::Value)), "{value:?}");
        }
        assert!(store.set(&ada, "PATH", "another user's text").is_err());
        assert_eq!(
            hide_in_log("another user's text"),
            "another user's text",
            "a value that is not stored is not hidden"
        );
        (0..MAX_SECRETS).for_each(|n| store.set(&ada, &format!("K{n}"), "12345678").unwrap());
        assert!(matches!(store.set(&ada, "MORE", "12345678"), Err(SecretError::Full)));
        store.set(&ada, "K0", "another one").unwrap();
        // A crash in the middle of a change leaves the file as it was.
        fs::write(home.path().join("users/ada/.secrets.json.part"), "half").unwrap();
        store.set(&ada, "K0", "yet another").unwrap();
        fs::write(home.path().join("users/ada/secrets.json"), "{\"secrets\": {\"K\": \"hush-hush\"").unwrap();
        let error = store.names(&ada).unwrap_err().to_string();
        assert!(error.contains("not a valid secrets file") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn a_user_is_asked_only_once_for_a_secret() {
        let (_home, store, ada) = store();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        store.set(&ada, "A_KEY", "12345678").unwrap();
        assert_eq!(store.ask(&ada, &names(&["A_KEY", "B_KEY"])).unwrap(), names(&["B_KEY"]));
        assert_eq!(store.ask(&ada, &names(&["B_KEY", "C_KEY"])).unwrap(), names(&["C_KEY"]));
        assert_eq!(store.ask(&ada, &names(&["B_KEY"])).unwrap(), names(&[]));
        store.set(&ada, "B_KEY", "12345678").unwrap();
        store.delete(&ada, "B_KEY").unwrap();
        assert_eq!(store.ask(&ada, &names(&["B_KEY"])).unwrap(), names(&["B_KEY"]), "it is requested again");
    }
}
