//! Location of the configuration and of pudu's files.

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
    /// The base of relative paths; empty for the process's current folder.
    pub dir: PathBuf,
}

/// The variables that name the config file, in order of precedence.
const VARIABLES: &[&str] = &["PUDU_CONFIG", "DEER_FLOW_CONFIG_PATH"];

impl Start {
    /// Finds the config file: the one that a flag or a variable names, or `config.yaml` in this folder or its parent. A
    /// file that is not named must belong to the operator if it is in the parent folder or if the daemon is root,
    /// because root runs the file's programs with all rights.
    pub fn file(&self) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(file) = &self.config {
            return self.named(file, "--config").map(Some);
        }
        if let Some((name, file)) = self.env.first(VARIABLES) {
            return self.named(Path::new(file), name).map(Some);
        }
        let (here, above) = (self.dir.join("config.yaml"), self.dir.join("../config.yaml"));
        let mut found = None;
        for file in [&here, &above] {
            if found.is_none() && exists(file)? {
                found = Some(file);
            }
        }
        if found == Some(&above) || rustix::process::geteuid().is_root() {
            let secrets = found.unwrap_or(&here).with_file_name(".env");
            for file in found.into_iter().chain(Some(&secrets).filter(|file| file.exists())) {
                trust::check(file)?;
            }
        }
        Ok(found.cloned())
    }

    /// Returns the folder for all of pudu's data.
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

/// Returns whether a file exists. A symbolic link to a missing file is an error.
fn exists(file: &Path) -> Result<bool, ConfigError> {
    match (file.exists(), file.read_link()) {
        (false, Ok(target)) => Err(ConfigError::Dangling { path: file.to_owned(), target }),
        (exists, _) => Ok(exists),
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
    fn the_file_is_searched_in_this_order() {
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
    fn a_named_file_must_exist() {
        check(Some("x.yaml"), &[], &["config.yaml"], "x.yaml, named by --config, does not exist");
        check(
            None,
            &[("PUDU_CONFIG", "x.yaml")],
            &["config.yaml"],
            "x.yaml, named by PUDU_CONFIG, does not exist",
        );
    }

    #[test]
    fn a_link_to_a_missing_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("config.yaml"), dir.path().join("target.yaml"));
        std::os::unix::fs::symlink("target.yaml", &link).unwrap();
        let start = Start { dir: dir.path().to_owned(), ..Start::default() };
        let error = start.file().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{} is a symbolic link to target.yaml, which does not exist", link.display())
        );
        std::fs::write(&target, "").unwrap();
        assert_eq!(start.file().unwrap(), Some(link));
    }

    /// Only root can give files away.
    #[test]
    fn a_file_that_is_not_named_must_belong_to_the_operator() {
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
            assert!(start(Some("../config.yaml")).file().is_ok(), "the file was named explicitly");
            chown(file, Some(0), None).unwrap();
        }
    }

    #[test]
    fn the_home_is_named_or_the_default() {
        let home = |env: Env| Start { env, dir: "/d".into(), ..Start::default() }.home();
        assert_eq!(home(Env::default()), Path::new("/d/.pudu"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer")])), Path::new("/d/deer"));
        assert_eq!(home(Env::from([("DEER_FLOW_HOME", "deer"), ("PUDU_HOME", "/p")])), Path::new("/p"));
    }
}
