//! Applies an edited configuration.
//!
//! For each message and twice a second, the watcher checks the file's metadata (modification time, size, inode). An
//! edit is applied after two equal checks, because an editor may still be writing: half a file may lack the list of
//! allowed users. If a file is unusable, was emptied, lost all its bots, or opens one to everyone without an explicit
//! list, the last good configuration stays in effect, and the problem is reported once. Changed settings that need a
//! restart are reported and not applied.

use super::{
    Allow, CLOSING, Config, ConfigError, HotConfig, LoadedConfig, Report, Start, load_file,
    reader::{Effect, Key},
};
use indexmap::IndexMap;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// Minimum interval between the two checks that must be equal.
const SETTLING: Duration = Duration::from_millis(500);

/// Holds the configuration in effect.
pub struct Watcher {
    start: Start,
    file: PathBuf,
    /// The keys that the daemon was built with.
    built: IndexMap<String, Key>,
    state: Mutex<WatchState>,
    apply: OnceLock<ApplyFn>,
    /// Held while an edit is detected, applied and logged, so that no caller continues before an edit is in effect.
    applying: Mutex<()>,
}

type ApplyFn = Box<dyn Fn(&HotConfig) + Send + Sync>;

#[derive(Debug)]
struct WatchState {
    seen: Option<ConfigStamp>,
    /// A changed fingerprint of the file, and when it was first seen.
    settling: Option<(Option<ConfigStamp>, Instant)>,
    /// Whether the file in effect has any settings.
    has_entries: bool,
    hot: Arc<HotConfig>,
    restart: Vec<String>,
}

/// Fingerprint of a file, to detect changes.
pub(super) type ConfigStamp = (SystemTime, u64, u64);

/// Result of reading an edited file.
#[derive(Debug)]
pub enum ConfigNews {
    /// The new configuration is in effect.
    Changed {
        /// Changed keys that need a restart to take effect.
        restart: Vec<String>,
        /// Warnings and notes about the file.
        report: Report,
    },
    /// The new configuration is unusable. The previous one stays in effect.
    Broken(ConfigError),
}

impl Watcher {
    /// Watches the loaded file, or the first path at which one would be searched for. An edit since it was loaded is
    /// detected.
    pub fn new(start: Start, loaded: &LoadedConfig) -> Self {
        let file = loaded.report.file.clone().unwrap_or_else(|| start.dir.join("config.yaml"));
        let Config { hot, .. } = &loaded.config;
        let (has_entries, hot) = (loaded.has_entries, Arc::clone(hot));
        let state = WatchState { seen: loaded.stamp, settling: None, has_entries, hot, restart: Vec::new() };
        Self {
            start,
            file,
            built: loaded.keys.clone(),
            state: Mutex::new(state),
            apply: OnceLock::new(),
            applying: Mutex::default(),
        }
    }

    /// Detects edits from now on. `apply` puts each into effect before it is logged as applied.
    pub fn follow(&self, apply: impl Fn(&HotConfig) + Send + Sync + 'static) {
        let is_first = self.apply.set(Box::new(apply)).is_ok();
        debug_assert!(is_first, "edits are applied twice");
    }

    /// Returns the facts known at the daemon's start.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Checks the file if edits are followed, applies and logs changes, and returns the configuration in effect.
    pub fn current(&self) -> Arc<HotConfig> {
        self.current_at(Instant::now())
    }

    fn current_at(&self, now: Instant) -> Arc<HotConfig> {
        let Some(apply) = self.apply.get() else { return Arc::clone(&self.state().hot) };
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        match self.poll(now) {
            None => {}
            Some(ConfigNews::Broken(error)) => {
                tracing::error!("refused edited configuration, the previous one stays in effect:\n{error}");
            }
            Some(ConfigNews::Changed { restart, report }) => {
                let hot = Arc::clone(&self.state().hot);
                apply(&hot);
                tracing::info!(file = %self.file.display(), "applied edited configuration");
                for account in hot.open_to_the_world() {
                    tracing::warn!(account, "opened account to everyone: {CLOSING}");
                }
                report.lines().for_each(|(_, line)| tracing::warn!("{line}"));
                if !restart.is_empty() {
                    tracing::warn!("takes effect after a restart: {}", restart.join(", "));
                }
            }
        }
        Arc::clone(&self.state().hot)
    }

    /// Checks the file. Returns each change once.
    pub fn poll(&self, now: Instant) -> Option<ConfigNews> {
        let mut state = self.state();
        let found = stamp(&self.file);
        if found == state.seen {
            state.settling = None;
            return None;
        }
        match state.settling {
            Some((before, since)) if before == found => {
                if now.duration_since(since) < SETTLING {
                    return None;
                }
            }
            _ => {
                state.settling = Some((found, now));
                return None;
            }
        }
        // Checks the owner of the file, as at the start.
        let loaded = self.start.file().and_then(|_| load_file(&self.start, Some(&self.file)));
        if stamp(&self.file) != found {
            state.settling = None;
            return None;
        }
        (state.settling, state.seen) = (None, found);
        loaded.iter().for_each(LoadedConfig::remember_secrets);
        match loaded {
            Ok(loaded) if state.loses_all(&loaded) => Some(ConfigNews::Broken(ConfigError::Emptied)),
            Ok(loaded) => {
                if let Some(account) = state.opened(&loaded) {
                    return Some(ConfigNews::Broken(ConfigError::Opened { account }));
                }
                state.has_entries = loaded.has_entries;
                let restart = self.needs_restart(&loaded.keys);
                let news = restart.iter().filter(|key| !state.restart.contains(key)).cloned().collect();
                state.restart = restart;
                state.hot = loaded.config.hot;
                Some(ConfigNews::Changed { restart: news, report: loaded.report })
            }
            Err(error) => Some(ConfigNews::Broken(error)),
        }
    }

    /// Compares with the keys that the daemon was built with. Removed keys and keys of new bots also count.
    fn needs_restart(&self, keys: &IndexMap<String, Key>) -> Vec<String> {
        let differs = |path: &&String| {
            let (old, new) = (self.built.get(*path), keys.get(*path));
            old.or(new).is_some_and(|key| key.effect == Effect::Restart)
                && old.map(|key| key.value) != new.map(|key| key.value)
        };
        let added = keys.keys().filter(|path| !self.built.contains_key(*path));
        self.built.keys().chain(added).filter(differs).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    /// Returns whether a file lost all its settings or all its bots. To disable a bot, operators switch it off instead.
    fn loses_all(&self, new: &LoadedConfig) -> bool {
        let switched_off =
            || new.keys.keys().any(|key| key.starts_with("channels.") && key.ends_with(".enabled"));
        let hot = &new.config.hot;
        (self.has_entries && !new.has_entries)
            || (!self.hot.accounts.is_empty() && hot.accounts.is_empty() && !switched_off())
    }

    /// Returns a bot that would become open to everyone without an explicit list. Each list that restricted the bot
    /// must be present, or one of the two if neither did.
    fn opened(&self, new: &LoadedConfig) -> Option<String> {
        let before = self.hot.open_to_the_world();
        let unsaid = |name: &&str| {
            let Some(policy) = self.hot.policies.get(*name).filter(|_| !before.contains(name)) else {
                return false;
            };
            let said = |list| new.keys.get(&format!("channels.{name}.{list}")).is_some_and(|key| key.said);
            let lists = [("allowed_users", &policy.allowed_users), ("allowed_chats", &policy.allowed_chats)];
            let mut narrow = lists.iter().filter(|(_, allow)| **allow != Allow::Everyone).peekable();
            match narrow.peek() {
                Some(_) => narrow.any(|(list, _)| !said(*list)),
                None => !lists.iter().any(|(list, _)| said(*list)),
            }
        };
        let open = new.config.hot.open_to_the_world();
        open.into_iter().find(unsaid).map(str::to_owned)
    }
}

pub(super) fn stamp(file: &Path) -> Option<ConfigStamp> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, fs};

    /// A folder with a config file whose modification time is set by hand, because two edits may fall into one tick.
    struct ConfigFolder {
        dir: tempfile::TempDir,
        edits: u64,
    }

    impl ConfigFolder {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), edits: 0 }
        }

        fn write(&mut self, text: &str) {
            self.write_raw(&format!("config_version: 34\n{text}"));
        }

        fn write_raw(&mut self, text: &str) {
            let path = self.dir.path().join("config.yaml");
            fs::write(&path, text).unwrap();
            self.edits += 1;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.edits);
            fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        }

        fn watch(&self) -> Watched {
            let start = Start { dir: self.dir.path().to_owned(), ..Start::default() };
            let loaded = super::super::load(&start).unwrap();
            Watched { watcher: Watcher::new(start, &loaded), now: Cell::new(Instant::now()) }
        }
    }

    /// A watcher with its own clock.
    struct Watched {
        watcher: Watcher,
        now: Cell<Instant>,
    }

    impl Watched {
        /// Polls some time after the last poll.
        fn look_after(&self, time: Duration) -> Option<ConfigNews> {
            self.now.set(self.now.get() + time);
            self.watcher.poll(self.now.get())
        }

        /// Polls as often as an edit needs.
        fn poll_twice(&self) -> Option<ConfigNews> {
            self.look_after(SETTLING).or_else(|| self.look_after(SETTLING))
        }

        fn current(&self) -> Arc<HotConfig> {
            self.poll_twice();
            Arc::clone(&self.watcher.state().hot)
        }
    }

    /// Describes news in words, without the folder's name.
    fn describe_news(news: Option<ConfigNews>) -> String {
        match news {
            None => "nothing".to_owned(),
            Some(ConfigNews::Changed { restart, report }) => {
                format!("changed, restart: [{}], {} problems", restart.join(", "), report.problems.len())
            }
            Some(ConfigNews::Broken(error)) => {
                format!("broken: {}", error.to_string().rsplit('/').next().unwrap_or_default())
            }
        }
    }

    #[test]
    fn an_edit_is_put_into_effect_once_before_it_is_returned() {
        let mut folder = ConfigFolder::new();
        folder.write("channels: {telegram: {bot_token: one, allowed_users: [1]}}\n");
        let Watched { watcher, now } = folder.watch();
        let users = |hot: &HotConfig| hot.policies["telegram"].allowed_users.clone();
        let before = users(&watcher.current());
        let is_edited = move |hot: &HotConfig| users(hot) != before;
        folder.write("channels: {telegram: {bot_token: one, allowed_users: [1, 2]}}\n");
        let later = |checks: u32| now.get() + SETTLING * checks;
        for check in 0..3 {
            assert!(!is_edited(&watcher.current_at(later(check))), "no component follows edits yet");
        }
        let applied = Arc::new(Mutex::new(Vec::new()));
        let (effect, is_applied) = (Arc::clone(&applied), is_edited.clone());
        watcher.follow(move |hot| effect.lock().unwrap().push(is_applied(hot)));
        let returned: Vec<bool> = (3..6).map(|check| is_edited(&watcher.current_at(later(check)))).collect();
        assert_eq!(returned, [false, true, true]);
        assert_eq!(*applied.lock().unwrap(), [true]);
    }

    #[test]
    fn an_edit_is_applied_after_two_equal_checks() {
        let mut folder = ConfigFolder::new();
        folder.write("channels: {telegram: {bot_token: one, allowed_users: [1]}}\n");
        let watched = folder.watch();
        let users = || watched.watcher.state().hot.policies["telegram"].allowed_users.clone();
        let only = users();
        folder.write("channels: {telegram: {bot_token: one}}\n");
        assert_eq!(describe_news(watched.look_after(SETTLING)), "nothing", "the file may be incomplete");
        folder.write("channels: {telegram: {bot_token: one, allowed_users: [1]}}\n# whole\n");
        assert_eq!(describe_news(watched.look_after(SETTLING)), "nothing", "the file changed again");
        assert_eq!(
            describe_news(watched.look_after(SETTLING - Duration::from_millis(1))),
            "nothing",
            "too soon"
        );
        assert_eq!(
            describe_news(watched.look_after(Duration::from_millis(1))),
            "changed, restart: [], 0 problems"
        );
        assert_eq!(users(), only);
    }

    #[test]
    fn losing_all_accounts_is_a_mistake_and_disabling_them_is_not() {
        let one = "channels: {telegram: {bot_token: one}}\n";
        let check = |edit: &str, expected: &str, accounts: usize| {
            let mut folder = ConfigFolder::new();
            folder.write(one);
            let watched = folder.watch();
            folder.write_raw(edit);
            assert_eq!(describe_news(watched.poll_twice()), expected, "{edit:?}");
            assert_eq!(watched.current().accounts.len(), accounts, "{edit:?}");
        };
        let emptied = "broken: the file no longer has any key, or any account; to close an account write \
                       `enabled: false`, or restart pudu";
        check("", emptied, 1);
        check("\n# nothing\n", emptied, 1);
        check("config_version: 34\nchannels:\n", emptied, 1);
        check("config_version: 34\nuploads: {max_files: 3}\n", emptied, 1);
        check(
            "config_version: 34\nchannels: {telegram: {bot_token: one, enabled: false}}\n",
            "changed, restart: [], 0 problems",
            0,
        );
        check(
            "config_version: 34\nchannels: {two: {type: telegram, bot_token: two}}\n",
            "changed, restart: [], 0 problems",
            1,
        );
    }

    #[test]
    fn an_edit_that_opens_an_account_needs_an_explicit_list() {
        let check = |edit: &str, expected: &str| {
            let mut folder = ConfigFolder::new();
            folder.write("channels: {telegram: {bot_token: one, allowed_users: [1]}}\n");
            let watched = folder.watch();
            folder.write(&format!("channels: {{telegram: {{bot_token: one{edit}}}}}\n"));
            let description = describe_news(watched.poll_twice());
            assert!(description.starts_with(expected), "{edit:?}: {description}");
            let open = !watched.current().open_to_the_world().is_empty();
            assert_eq!(open, edit.contains("allowed_users: []"), "{edit:?}");
        };
        let refused = "broken: the edit would open `channels.telegram` to everyone: list its users";
        check("", refused);
        check(", allowed_users:", refused);
        check(", allowed_users: []", "changed, restart: [], 0 problems");
        check(", allowed_chats: []", refused);
        check(", allowed_users: [], allowed_chats: []", "changed, restart: [], 0 problems");
        check(", allowed_chats: [-5]", "changed, restart: [], 0 problems");
        check(", pairing: true", "changed, restart: [], 0 problems");
        // No additional user is admitted: the bot was already open to everyone.
        let mut folder = ConfigFolder::new();
        folder.write("channels: {telegram: {bot_token: one}}\n");
        let watched = folder.watch();
        folder.write("channels: {telegram: {bot_token: one, follow_ups: steer}}\n");
        assert_eq!(describe_news(watched.poll_twice()), "changed, restart: [], 0 problems");
    }

    #[test]
    fn an_edit_is_applied_once() {
        let mut folder = ConfigFolder::new();
        folder.write("uploads: {max_files: 1}\n");
        let watcher = folder.watch();
        assert_eq!(
            (watcher.current().uploads.max_files, describe_news(watcher.poll_twice())),
            (1, "nothing".to_owned())
        );
        folder.write("uploads: {max_files: 2}\ncolour: red\n");
        assert_eq!(describe_news(watcher.poll_twice()), "changed, restart: [], 1 problems");
        assert_eq!(
            (watcher.current().uploads.max_files, describe_news(watcher.poll_twice())),
            (2, "nothing".to_owned())
        );
    }

    #[test]
    fn a_broken_edit_is_reported_once_and_the_previous_one_stays() {
        let mut folder = ConfigFolder::new();
        folder.write("uploads: {max_files: 1}\n");
        let watcher = folder.watch();
        folder.write("uploads: {max_files: many}\n");
        let expected = "broken: config.yaml:2:22: error: uploads.max_files: found \"many\", expected a whole number \
                        from 0 to 1000";
        assert_eq!(
            (describe_news(watcher.poll_twice()).as_str(), describe_news(watcher.poll_twice()).as_str()),
            (expected, "nothing")
        );
        assert_eq!(watcher.current().uploads.max_files, 1);
        fs::remove_file(folder.dir.path().join("config.yaml")).unwrap();
        assert_eq!(describe_news(watcher.poll_twice()), "broken: config.yaml cannot be read");
        assert_eq!(
            (describe_news(watcher.poll_twice()).as_str(), watcher.current().uploads.max_files),
            ("nothing", 1)
        );
        folder.write("uploads: {max_files: 3}\n");
        assert_eq!(watcher.current().uploads.max_files, 3);
    }

    #[test]
    fn a_setting_that_needs_a_restart_is_reported_once() {
        let mut folder = ConfigFolder::new();
        folder.write("channels: {telegram: {bot_token: one, allowed_users: []}}\n");
        let watcher = folder.watch();
        folder.write("channels: {telegram: {bot_token: one, api_url: 'https://api.telegram.org/', allowed_users: [1]}}\n");
        assert_eq!(
            describe_news(watcher.poll_twice()),
            "changed, restart: [], 0 problems",
            "an explicit default changes nothing"
        );
        folder.write(
            "database: {backend: memory}\nchannels: {telegram: {bot_token: two, allowed_users: []}}\n",
        );
        assert_eq!(describe_news(watcher.poll_twice()), "changed, restart: [database.backend], 0 problems");
        folder.write(
            "database: {backend: memory}\nuploads: {max_files: 2}\nchannels: {telegram: {bot_token: two, allowed_users: []}}\n",
        );
        assert_eq!(describe_news(watcher.poll_twice()), "changed, restart: [], 0 problems");
        folder.write("channels: {telegram: {bot_token: one, allowed_users: []}}\n");
        assert_eq!(describe_news(watcher.poll_twice()), "changed, restart: [], 0 problems");
        folder.write("log_level: debug\nchannels: {telegram: {bot_token: two, allowed_users: []}}\n");
        assert_eq!(describe_news(watcher.poll_twice()), "changed, restart: [log_level], 0 problems");
    }

    #[test]
    fn an_account_reconnects_only_for_its_connection_settings() {
        let prints = |two: &str| {
            let mut folder = ConfigFolder::new();
            folder.write(&format!(
                "channels: {{one: {{type: telegram, bot_token: a}}, two: {{type: telegram, bot_token: b{two}}}}}\n"
            ));
            let hot = folder.watch().current();
            hot.accounts.iter().map(|account| account.print).collect::<Vec<_>>()
        };
        let before = prints("");
        assert_eq!(prints(", allowed_users: [7], follow_ups: steer"), before);
        assert_eq!(prints(", require_mention: true"), before, "an explicit default changes nothing");
        for edit in ["c", ", require_mention: false", ", api_url: 'http://127.0.0.1:1'"] {
            let after = prints(edit);
            assert!(after[0] == before[0] && after[1] != before[1], "{edit}");
        }
    }

    #[test]
    fn a_file_that_appears_is_applied() {
        let mut folder = ConfigFolder::new();
        let watcher = folder.watch();
        assert_eq!(watcher.current().uploads.max_files, 10);
        folder.write("uploads: {max_files: 7}\n");
        assert_eq!(watcher.current().uploads.max_files, 7);
    }
}
