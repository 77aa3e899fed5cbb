//! Location of the configuration, and of pudu's own files.

use super::{ConfigError, Env, trust};
use std::path::{Path, PathBuf};

/// Facts known before the configuration is read.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--bind`.
    pub bind: Option<String>,
    /// The process's environment.
    pub env: Env,
    /// The current folder, from which relative paths count; empty for the process's own.
    pub dir: PathBuf,
}

/// The variables that name the config file, first one first.
const VARIABLES: &[&str] = &["PUDU_CONFIG", "DEER_FLOW_CONFIG_PATH"];

impl Start {
    /// Finds the config file: the named one, or else the one in this folder or the one above. Files that were found
    /// without a name have to be the operator's own in the folder above, and everywhere if the daemon is root,
    /// because root runs their programs with all rights.
    pub fn file(&self) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(file) = &self.config {
            return self.named(file, "--config").map(Some);
        }
        if let Some((name, file)) = self.env.first(VARIABLES) {
            return self.named(Path::new(file), name).map(Some);
        }
        let (here, above) = (self.dir.join("config.yaml"), self.dir.join("../config.yaml"));
        let found = [&here, &above].into_iter().find(|file| file.exists());
        if found == Some(&above) || rustix::process::geteuid().is_root() {
            let secrets = found.unwrap_or(&here).with_file_name(".env");
            for file in found.into_iter().chain(Some(&secrets).filter(|file| file.exists())) {
                trust::check(file)?;
            }
        }
        Ok(found.cloned())
    }

    /// Returns the folder for everything that pudu keeps.
    pub fn home(&self) -> PathBuf {
        let named = self.env.first(&["PUDU_HOME", "DEER_FLOW_HOME"]);
        self.dir.join(named.map_or(".pudu", |(_, home)| home))
    }

    fn named(&self, file: &Path, by: &'static str) -> Result<PathBuf, ConfigError> {
        let path = self.dir.join(file);
        match path.is_file() || path.is_dir() {
            true => Ok(path),
            false => Err(ConfigError::NotThere { path, by }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flag: Option<&str>, env: &[(&str, &str)], files: &[&str], expected: &str) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("in");
        std::fs::create_dir(&dir).unwrap();
        for file in files {
            std::fs::write(dir.join(file), "").unwrap();
        }
        let mut all = Env::default();
        for (name, value) in env {
            all.add_file(&format!("{name}={value}"));
        }
        let start = Start { config: flag.map(PathBuf::from), env: all, dir: dir.clone(), ..Start::default() };
        let found = match start.file() {
            Ok(file) => {
                file.map_or("none".to_owned(), |file| file.strip_prefix(&dir).unwrap().display().to_string())
            }
            Err(error) => error.to_string().replace(&format!("{}/", dir.display()), ""),
        };
        assert_eq!(found, expected, "{flag:?} {env:?} {files:?}");
    }

    #[test]
    fn the_file_is_looked_for_in_this_order() {
        let all = ["a.yaml", "b.yaml", "c.yaml", "config.yaml", "../config.yaml"];
        let pudu = ("PUDU_CONFIG", "b.yaml");
        let deer = ("DEER_FLOW_CONFIG_PATH", "c.yaml");
        check(Some("a.yaml"), &[pudu, deer], &all, "a.yaml");
        check(None, &[pudu, deer], &all, "b.yaml");
        check(None, &[("PUDU_CONFIG", ""), deer], &all, "c.yaml");
        check(None, &[], &all, "config.yaml");
        check(None, &[], &["../config.yaml"], "../config.yaml");
        check(None, &[], &[], "none");
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        check(Some("x.yaml"), &[], &["config.yaml"], "x.yaml, named by --config, is not there");
        check(
            None,
            &[("PUDU_CONFIG", "x.yaml")],
            &["config.yaml"],
            "x.yaml, named by PUDU_CONFIG, is not there",
        );
    }

    /// Only root can give files away.
    #[test]
    fn what_nobody_named_has_to_be_the_operators() {
        use std::os::unix::fs::chown;
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("in");
        std::fs::create_dir(&dir).unwrap();
        let (above, secrets) = (root.path().join("config.yaml"), root.path().join(".env"));
        let start = |config: Option<&str>| Start {
            config: config.map(PathBuf::from),
            dir: dir.clone(),
            ..Start::default()
        };
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for file in [&above, &secrets] {
            std::fs::write(file, "").unwrap();
            assert!(start(None).file().is_ok(), "{}", file.display());
            chown(file, Some(12_345), None).unwrap();
            let said = start(None).file().unwrap_err().to_string();
            assert!(said.contains("belongs to user 12345, and pudu runs as user 0"), "{said}");
            assert!(start(Some("../config.yaml")).file().is_ok(), "it was named");
            chown(file, Some(0), None).unwrap();
        }
    }

    #[test]
    fn home_is_named_or_usual() {
        let home = |env: Env| Start { env, dir: "/d".into(), ..Start::default() }.home();
        assert_eq!(home(Env::default()), Path::new("/d/.pudu"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer")])), Path::new("/d/deer"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer"), ("PUDU_HOME", "/p")])), Path::new("/p"));
    }
}
