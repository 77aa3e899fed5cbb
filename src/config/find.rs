//! Where the configuration is, and where pudu keeps its own things.

use super::{ConfigError, Env};
use std::path::{Path, PathBuf};

/// What is known before the configuration is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--bind`.
    pub(crate) bind: Option<String>,
    /// The process's environment.
    pub(crate) env: Env,
    /// The current folder, from which relative paths count; empty for the process's own.
    pub(crate) dir: PathBuf,
}

/// The variables that name the config file, first one first.
const VARIABLES: &[&str] = &["PUDU_CONFIG", "DEER_FLOW_CONFIG_PATH"];

impl Start {
    /// Finds the config file: the one that is named, or the one that lies in this folder or the one above.
    pub(crate) fn file(&self) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(file) = &self.config {
            return self.named(file, "--config").map(Some);
        }
        if let Some((name, file)) = self.env.first(VARIABLES) {
            return self.named(Path::new(file), name).map(Some);
        }
        let usual = [self.dir.join("config.yaml"), self.dir.join("../config.yaml")];
        Ok(usual.into_iter().find(|file| file.exists()))
    }

    /// Returns the folder for everything that pudu keeps.
    pub(crate) fn home(&self) -> PathBuf {
        let named = self.env.first(&["PUDU_HOME", "DEER_FLOW_HOME"]);
        self.dir.join(named.map_or(".pudu", |(_, home)| home))
    }

    fn named(&self, file: &Path, by: &'static str) -> Result<PathBuf, ConfigError> {
        let path = self.dir.join(file);
        match path.is_file() {
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

    #[test]
    fn home_is_named_or_usual() {
        let home = |env: Env| Start { env, dir: "/d".into(), ..Start::default() }.home();
        assert_eq!(home(Env::default()), Path::new("/d/.pudu"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer")])), Path::new("/d/deer"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer"), ("PUDU_HOME", "/p")])), Path::new("/p"));
    }
}
