//! Picks up an edited configuration.
//!
//! Asked for each message, it looks at the file once (path, time of change and size). A file that cannot be
//! used leaves the last good configuration in force and is reported once. What has changed and needs a restart
//! is named and stays as it was.

use super::{
    Config, ConfigError, Live, Loaded, Report, Start, load_file,
    reader::{Effect, Key},
};
use indexmap::IndexMap;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

/// Holds the configuration that is in force.
#[derive(Debug)]
pub(crate) struct Watcher {
    start: Start,
    file: PathBuf,
    /// The keys as they were when the daemon was built.
    built: IndexMap<String, Key>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seen: Option<Stamp>,
    live: Arc<Live>,
    restart: Vec<String>,
}

/// What tells that a file was changed.
pub(super) type Stamp = (SystemTime, u64);

/// What became of an edited file.
#[derive(Debug)]
pub(crate) enum News {
    /// It is in force.
    Changed {
        /// Keys that have another value now and need a restart to be in force.
        restart: Vec<String>,
        /// Warnings and notes about the file.
        report: Report,
    },
    /// It cannot be used; the one before stays in force.
    Broken(ConfigError),
}

impl Watcher {
    /// Watches the file that was loaded, or the place where one would be looked for first. An edit since it
    /// was read is seen.
    pub(crate) fn new(start: Start, loaded: &Loaded) -> Self {
        let file = loaded.report.file.clone().unwrap_or_else(|| start.dir.join("config.yaml"));
        let Config { live, .. } = &loaded.config;
        let state = State { seen: loaded.stamp, live: Arc::clone(live), restart: Vec::new() };
        Self { start, file, built: loaded.keys.clone(), state: Mutex::new(state) }
    }

    /// Returns the configuration in force, after a look at the file; tells the log what is new.
    pub(crate) fn current(&self) -> Arc<Live> {
        match self.look() {
            None => {}
            Some(News::Broken(error)) => {
                tracing::error!(
                    "the edited configuration cannot be used, the one before stays in force:\n{error}"
                );
            }
            Some(News::Changed { restart, report }) => {
                tracing::info!(file = %self.file.display(), "the edited configuration is in force");
                report.lines().for_each(|(_, line)| tracing::warn!("{line}"));
                if !restart.is_empty() {
                    tracing::warn!("needs a restart: {}", restart.join(", "));
                }
            }
        }
        Arc::clone(&self.state().live)
    }

    /// Looks at the file; returns what is new, once.
    pub(crate) fn look(&self) -> Option<News> {
        let mut state = self.state();
        let now = stamp(&self.file);
        if now == state.seen {
            return None;
        }
        state.seen = now;
        match load_file(&self.start, Some(&self.file)) {
            Ok(loaded) => {
                let restart = self.needs_restart(&loaded.keys);
                let news = restart.iter().filter(|key| !state.restart.contains(key)).cloned().collect();
                state.restart = restart;
                state.live = loaded.config.live;
                Some(News::Changed { restart: news, report: loaded.report })
            }
            Err(error) => Some(News::Broken(error)),
        }
    }

    /// Compares with what the daemon was built from: also a key that is gone, or a new account's, counts.
    fn needs_restart(&self, keys: &IndexMap<String, Key>) -> Vec<String> {
        let differs = |path: &&String| {
            let (old, new) = (self.built.get(*path), keys.get(*path));
            old.or(new).is_some_and(|key| key.effect == Effect::Restart)
                && old.map(|key| key.value) != new.map(|key| key.value)
        };
        let added = keys.keys().filter(|path| !self.built.contains_key(*path));
        self.built.keys().chain(added).filter(differs).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn stamp(file: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, time::Duration};

    /// A folder with a config file whose time of change is set by hand, as two edits may fall into one tick.
    struct Desk {
        dir: tempfile::TempDir,
        edits: u64,
    }

    impl Desk {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), edits: 0 }
        }

        fn write(&mut self, text: &str) {
            let path = self.dir.path().join("config.yaml");
            fs::write(&path, format!("config_version: 34\n{text}")).unwrap();
            self.edits += 1;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.edits);
            fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        }

        fn watch(&self) -> Watcher {
            let start = Start { dir: self.dir.path().to_owned(), ..Start::default() };
            let loaded = super::super::load(&start).unwrap();
            Watcher::new(start, &loaded)
        }
    }

    /// Writes news as words, the folder's name taken out.
    fn told(news: Option<News>) -> String {
        match news {
            None => "nothing".to_owned(),
            Some(News::Changed { restart, report }) => {
                format!("changed, restart: [{}], {} problems", restart.join(", "), report.problems.len())
            }
            Some(News::Broken(error)) => {
                format!("broken: {}", error.to_string().rsplit('/').next().unwrap_or_default())
            }
        }
    }

    #[test]
    fn an_edit_is_picked_up_once() {
        let mut desk = Desk::new();
        desk.write("uploads: {max_files: 1}\n");
        let watcher = desk.watch();
        assert_eq!((watcher.current().uploads.max_files, told(watcher.look())), (1, "nothing".to_owned()));
        desk.write("uploads: {max_files: 2}\ncolour: red\n");
        assert_eq!(told(watcher.look()), "changed, restart: [], 1 problems");
        assert_eq!((watcher.current().uploads.max_files, told(watcher.look())), (2, "nothing".to_owned()));
    }

    #[test]
    fn a_broken_edit_is_told_once_and_the_one_before_stays() {
        let mut desk = Desk::new();
        desk.write("uploads: {max_files: 1}\n");
        let watcher = desk.watch();
        desk.write("uploads: {max_files: many}\n");
        let expected = "broken: config.yaml:2:22: error: uploads.max_files: found \"many\", expected whole number, 0 to 1000";
        assert_eq!((told(watcher.look()).as_str(), told(watcher.look()).as_str()), (expected, "nothing"));
        assert_eq!(watcher.current().uploads.max_files, 1);
        fs::remove_file(desk.dir.path().join("config.yaml")).unwrap();
        assert_eq!(told(watcher.look()), "broken: config.yaml cannot be read");
        assert_eq!((told(watcher.look()).as_str(), watcher.current().uploads.max_files), ("nothing", 1));
        desk.write("uploads: {max_files: 3}\n");
        assert_eq!(watcher.current().uploads.max_files, 3);
    }

    #[test]
    fn what_needs_a_restart_is_named_once() {
        let mut desk = Desk::new();
        desk.write("channels: {telegram: {bot_token: one}}\n");
        let watcher = desk.watch();
        desk.write("channels: {telegram: {bot_token: one, api_url: 'https://api.telegram.org/', allowed_users: [1]}}\n");
        assert_eq!(
            told(watcher.look()),
            "changed, restart: [], 0 problems",
            "a default that is written out is the same"
        );
        desk.write("database: {backend: memory}\nchannels: {telegram: {bot_token: two}}\n");
        assert_eq!(told(watcher.look()), "changed, restart: [database.backend], 0 problems");
        desk.write(
            "database: {backend: memory}\nuploads: {max_files: 2}\nchannels: {telegram: {bot_token: two}}\n",
        );
        assert_eq!(told(watcher.look()), "changed, restart: [], 0 problems");
        desk.write("channels: {telegram: {bot_token: one}}\n");
        assert_eq!(told(watcher.look()), "changed, restart: [], 0 problems");
        desk.write("log_level: debug\nchannels: {telegram: {bot_token: two}}\n");
        assert_eq!(told(watcher.look()), "changed, restart: [log_level], 0 problems");
    }

    #[test]
    fn an_account_connects_anew_only_for_what_its_connection_is_made_of() {
        let prints = |two: &str| {
            let mut desk = Desk::new();
            desk.write(&format!(
                "channels: {{one: {{type: telegram, bot_token: a}}, two: {{type: telegram, bot_token: b{two}}}}}\n"
            ));
            let live = desk.watch().current();
            live.accounts.iter().map(|account| account.print).collect::<Vec<_>>()
        };
        let before = prints("");
        assert_eq!(prints(", allowed_users: [7], follow_ups: steer"), before);
        assert_eq!(prints(", require_mention: true"), before, "a default that is written out is the same");
        for edit in ["c", ", require_mention: false", ", api_url: 'http://127.0.0.1:1'"] {
            let after = prints(edit);
            assert!(after[0] == before[0] && after[1] != before[1], "{edit}");
        }
    }

    #[test]
    fn a_file_that_appears_is_picked_up() {
        let mut desk = Desk::new();
        let watcher = desk.watch();
        assert_eq!(watcher.current().uploads.max_files, 10);
        desk.write("uploads: {max_files: 7}\n");
        assert_eq!(watcher.current().uploads.max_files, 7);
    }
}
