//! The switches of skills: `skills.{name}.enabled` in DeerFlow's file `extensions_config.json`. A skill that is not
//! listed is enabled.
//!
//! The file also contains other settings and secrets. A change is atomic, and preserves the exact text of every other
//! value, the file's permissions, and a link to it.

use crate::SkillError;
use indexmap::IndexMap;
use pudu_kit::file;
use serde_json::{Value, value::RawValue};
use std::{
    collections::HashMap,
    fs,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum size of the file, in bytes.
const MAX_STATE_BYTES: u64 = 4 * 1024 * 1024;

/// A JSON object whose values keep their exact text.
type RawState = IndexMap<String, Box<RawValue>>;

/// The skills listed in the file, and whether they are enabled.
pub(crate) type Switches = HashMap<String, bool>;

/// Reads the switches. A missing file counts as empty.
pub(crate) fn read(path: &Path) -> Result<Switches, SkillError> {
    let wrong = |why: String| SkillError::State { path: path.to_owned(), why };
    let file = load(path)?;
    let Some(skills) = file.get("skills") else { return Ok(Switches::new()) };
    let skills: RawState = object(skills.get()).map_err(|why| wrong(format!("`skills`: {why}")))?;
    let mut switches = Switches::new();
    for (name, value) in skills {
        let entry: RawState = object(value.get()).map_err(|why| wrong(format!("`skills.{name}`: {why}")))?;
        let Some(enabled) = entry.get("enabled") else { continue };
        match enabled.get() {
            "true" | "null" => switches.insert(name, true),
            "false" => switches.insert(name, false),
            _ => return Err(wrong(format!("`skills.{name}.enabled` must be true or false"))),
        };
    }
    Ok(switches)
}

/// Switches one skill. The caller holds the lock.
pub(crate) fn write(path: &Path, name: &str, enabled: bool) -> Result<(), SkillError> {
    change(path, |skills| {
        let mut entry: RawState = match skills.get(name) {
            Some(value) => object(value.get()).map_err(|why| format!("`skills.{name}`: {why}"))?,
            None => RawState::new(),
        };
        entry.insert("enabled".to_owned(), raw(&enabled)?);
        skills.insert(name.to_owned(), raw(&entry)?);
        Ok(())
    })
}

/// Removes the switch of a removed skill, so that a later skill with its name starts enabled.
pub(crate) fn forget(path: &Path, name: &str) -> Result<(), SkillError> {
    if !read(path)?.contains_key(name) {
        return Ok(());
    }
    change(path, |skills| {
        skills.shift_remove(name);
        Ok(())
    })
}

fn change(path: &Path, edit: impl FnOnce(&mut RawState) -> Result<(), String>) -> Result<(), SkillError> {
    let wrong = |why: String| SkillError::State { path: path.to_owned(), why };
    let mut file = load(path)?;
    let mut skills: RawState = match file.get("skills") {
        Some(skills) => object(skills.get()).map_err(|why| wrong(format!("`skills`: {why}")))?,
        None => RawState::new(),
    };
    edit(&mut skills).map_err(wrong)?;
    file.insert("skills".to_owned(), raw(&skills).map_err(wrong)?);
    store(path, &file)
}

/// Reads a key of the file. Returns `None` if it is missing.
pub(crate) fn section(path: &Path, key: &str) -> Result<Option<Value>, SkillError> {
    let wrong =
        |error: serde_json::Error| SkillError::State { path: path.to_owned(), why: error.to_string() };
    load(path)?.get(key).map(|value| serde_json::from_str(value.get())).transpose().map_err(wrong)
}

/// Writes a key of the file. All other keys keep their exact text. The caller holds the lock.
pub(crate) fn write_section(path: &Path, key: &str, value: &Value) -> Result<(), SkillError> {
    let wrong = |why: String| SkillError::State { path: path.to_owned(), why };
    let mut file = load(path)?;
    file.insert(key.to_owned(), raw(value).map_err(wrong)?);
    store(path, &file)
}

fn store(path: &Path, file: &RawState) -> Result<(), SkillError> {
    let wrong =
        |error: serde_json::Error| SkillError::State { path: path.to_owned(), why: error.to_string() };
    let mut text = serde_json::to_string_pretty(file).map_err(wrong)?;
    text.push('\n');
    replace(path, text.as_bytes())
}

fn load(path: &Path) -> Result<RawState, SkillError> {
    let wrong = |why: String| SkillError::State { path: path.to_owned(), why };
    let mut text = String::new();
    match fs::File::open(path).and_then(|file| file.take(MAX_STATE_BYTES + 1).read_to_string(&mut text)) {
        Ok(_) if text.len() as u64 > MAX_STATE_BYTES => {
            return Err(wrong("the file is larger than 4 MiB".to_owned()));
        }
        Ok(_) if text.trim().is_empty() => return Ok(RawState::new()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RawState::new()),
        Err(why) => return Err(SkillError::Io { path: path.to_owned(), why }),
    }
    object(&text).map_err(wrong)
}

fn object(text: &str) -> Result<RawState, String> {
    serde_json::from_str(text).map_err(|error| format!("this is not a JSON object ({error}): fix it by hand"))
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, String> {
    let text = serde_json::to_string(value).and_then(RawValue::from_string);
    text.map_err(|error| error.to_string())
}

/// Writes to a temporary file and renames it.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), SkillError> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = folder.join(format!(".{name}.{}.part", uuid::Uuid::now_v7()));
    let mode = fs::metadata(&target).map_or(0o600, |meta| meta.mode() & 0o777);
    let written = fs::create_dir_all(&folder).and_then(|()| file::replace(&target, &beside, bytes, mode));
    written.map_err(SkillError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn house() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("extensions_config.json");
        (dir, path)
    }

    #[test]
    fn a_switch_changes_nothing_else_in_the_file() {
        let (_dir, path) = house();
        let text = "{\"mcpServers\": {\"a\":   {\"env\": {\"K\": \"$KEY\"}, \"n\": 1e2}},\n \"skills\": {\"x\": {\"enabled\": true, \"note\": [1 ,2]}}, \"zzz\": null}";
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, "x", false).unwrap();
        write(&path, "new", true).unwrap();
        let now = fs::read_to_string(&path).unwrap();
        let expect = "{\n  \"mcpServers\": {\"a\":   {\"env\": {\"K\": \"$KEY\"}, \"n\": 1e2}},\n  \"skills\": {\"x\":{\"enabled\":false,\"note\":[1 ,2]},\"new\":{\"enabled\":true}},\n  \"zzz\": null\n}\n";
        assert_eq!(now, expect);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(read(&path).unwrap(), Switches::from([("x".into(), false), ("new".into(), true)]));
        forget(&path, "x").unwrap();
        forget(&path, "never").unwrap();
        assert_eq!(read(&path).unwrap(), Switches::from([("new".into(), true)]));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no staging folder is left");
    }

    #[test]
    fn the_first_switch_creates_a_private_file() {
        let (_dir, path) = house();
        assert_eq!(read(&path).unwrap(), Switches::new());
        write(&path, "a", false).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), Switches::from([("a".into(), false)]));
    }

    #[test]
    fn a_link_stays_a_link() {
        let (dir, path) = house();
        let real = dir.path().join("real.json");
        fs::write(&real, "{}").unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        write(&path, "a", true).unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("\"a\":{\"enabled\":true}"));
    }

    #[test]
    fn an_invalid_file_is_left_alone() {
        let (_dir, path) = house();
        for (text, expect) in [
            ("{", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{\"skills\": []}", "`skills`: this is not"),
            ("{\"skills\": {\"a\": 1}}", "`skills.a`: this is not"),
        ] {
            fs::write(&path, text).unwrap();
            for error in [read(&path).unwrap_err(), write(&path, "a", true).unwrap_err()] {
                assert!(error.to_string().contains(expect), "{text}: {error}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, "{\"skills\": {\"a\": {\"enabled\": 1}}}").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("must be true or false"));
    }
}
