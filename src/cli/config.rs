//! `pudu config check`, `pudu config schema` and `pudu config upgrade`.
//!
//! They write to `out` and return a [`ConfigVerdict`]. They never print a secret: reports contain none, and the summary
//! only states whether one is set.

use pudu_config::{
    AccountConfig, Backend, CLOSING, Config, ConfigError, LoadedConfig, ModelConfig, Problem, Report,
    Severity, Start, VERSION, extensions, load,
    upgrade::{Upgraded, upgrade as upgraded},
};
use pudu_daemon::missing_agents;
use pudu_net::scrub;
use serde_json::{Map, Value, json};
use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigVerdict {
    /// No errors.
    Fine,
    /// There are errors to fix.
    Wrong,
}

impl From<ConfigVerdict> for ExitCode {
    fn from(verdict: ConfigVerdict) -> Self {
        match verdict {
            ConfigVerdict::Fine => Self::SUCCESS,
            ConfigVerdict::Wrong => Self::FAILURE,
        }
    }
}

/// Reads the configuration and the extensions like the daemon, and reports the settings and their problems.
pub(crate) fn check(start: &Start, as_json: bool, out: &mut dyn Write) -> io::Result<ConfigVerdict> {
    let loaded = match load(start) {
        Ok(loaded) => loaded,
        Err(error) => {
            match as_json {
                true => writeln!(out, "{:#}", json!({ "usable": false, "problems": problems_of(&error) }))?,
                false => writeln!(out, "{}", describe_error(&error))?,
            }
            return Ok(ConfigVerdict::Wrong);
        }
    };
    loaded.remember_secrets();
    let Report { file, problems } = loaded.report.clone();
    let report = Report::new(file, problems.into_iter().chain(doubts(&loaded)).collect());
    let extensions = extensions::check(start, &loaded);
    let reports: Vec<&Report> = std::iter::once(&report).chain(&extensions).collect();
    let wrong = reports.iter().any(|report| report.has_errors());
    let verdict = if wrong { ConfigVerdict::Wrong } else { ConfigVerdict::Fine };
    if as_json {
        let summary: Map<_, _> = summary(&loaded.config)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        let problems: Vec<_> = reports.iter().flat_map(|report| listed_problems(report)).collect();
        let told = json!({ "file": report.file, "usable": verdict == ConfigVerdict::Fine, "problems": problems, "summary": summary });
        writeln!(out, "{}", scrub::hide(&format!("{told:#}")))?;
        return Ok(verdict);
    }
    for (_, line) in reports.iter().flat_map(|report| report.lines()) {
        writeln!(out, "{line}")?;
    }
    if verdict == ConfigVerdict::Wrong {
        return Ok(verdict);
    }
    writeln!(out, "{}", headline(&report))?;
    for (name, value) in summary(&loaded.config) {
        writeln!(out, "  {name:<9} {}", scrub::hide(&value))?;
    }
    Ok(verdict)
}

/// Returns warnings about malformed credentials, bots that are open to everyone, and bots whose agent does not exist.
fn doubts(loaded: &LoadedConfig) -> Vec<Problem> {
    let hot = &loaded.config.hot;
    let wrong = hot.accounts.iter().flat_map(|account| {
        let doubts = account.platform.doubts();
        doubts.into_iter().map(move |(key, what, help)| {
            let key = format!("channels.{}.{key}", account.name);
            Problem::error(loaded.place(&key), &key, what, help)
        })
    });
    let open = hot.open_to_the_world().into_iter().map(|name| {
        let (account, list) = (format!("channels.{name}"), format!("channels.{name}.allowed_users"));
        Problem::warning(loaded.place(&list), &account, "this account is open to everyone", CLOSING)
    });
    wrong.chain(open).chain(missing_agents::problems(loaded)).collect()
}

fn problems_of(error: &ConfigError) -> Vec<Value> {
    match error {
        ConfigError::Wrong(report) => listed_problems(report),
        _ => {
            let problem = Problem::error(None, "", describe_error(error).trim_start_matches("error: "), "");
            listed_problems(&Report::new(None, vec![problem]))
        }
    }
}

fn listed_problems(Report { file, problems }: &Report) -> Vec<Value> {
    problems.iter().map(|found| problem(file.as_deref(), found)).collect()
}

fn problem(file: Option<&Path>, problem: &Problem) -> Value {
    json!({
        "file": file,
        "severity": problem.severity.to_string(),
        "line": problem.at.map(|at| at.line),
        "column": problem.at.map(|at| at.column),
        "key": problem.key,
        "problem": scrub::hide(&problem.what),
        "help": Some(&problem.help).filter(|help| !help.is_empty()),
    })
}

/// Writes the JSON schema of the file.
pub(crate) fn schema(out: &mut dyn Write) -> io::Result<ConfigVerdict> {
    writeln!(out, "{:#}", pudu_config::schema())?;
    Ok(ConfigVerdict::Fine)
}

/// Raises the file's version. The previous file is kept as `….bak`.
pub(crate) fn upgrade(start: &Start, out: &mut dyn Write) -> io::Result<ConfigVerdict> {
    let file = match start.file() {
        Ok(Some(file)) => file,
        Ok(None) => {
            writeln!(out, "there is no config file; all defaults apply")?;
            return Ok(ConfigVerdict::Fine);
        }
        Err(error) => {
            writeln!(out, "{}", describe_error(&error))?;
            return Ok(ConfigVerdict::Wrong);
        }
    };
    // A symbolic link is kept; its target is replaced.
    let target = fs::canonicalize(&file)?;
    let old = fs::read_to_string(&target)?;
    match upgraded(&old) {
        Err(report) => {
            writeln!(out, "{}", Report { file: Some(file), ..report })?;
            Ok(ConfigVerdict::Wrong)
        }
        Ok(new) => {
            if new.text != old {
                replace(&target, &old, &new.text)?;
            }
            write!(out, "{}", changes(&file, &old, &new))?;
            Ok(ConfigVerdict::Fine)
        }
    }
}

/// Writes the backup and a new file next to the old one, then replaces the old one atomically.
fn replace(file: &Path, old: &str, new: &str) -> io::Result<()> {
    let mode = fs::metadata(file)?.permissions();
    for (path, text) in [(with_suffix(file, ".bak"), old), (with_suffix(file, ".new"), new)] {
        let mut file = fs::File::create(path)?;
        // Set before any text is written, because it may contain secrets.
        file.set_permissions(mode.clone())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    fs::rename(with_suffix(file, ".new"), file)
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn changes(file: &Path, old: &str, new: &Upgraded) -> String {
    let name = file.display();
    match (new.text == old, new.from > i128::from(VERSION)) {
        (_, true) => format!(
            "{name} has version {}, newer than this pudu's {VERSION}; nothing was changed\n",
            new.from
        ),
        (true, _) => format!("{name} is up to date; nothing was changed\n"),
        _ => format!(
            "Upgraded {name} from version {} to {VERSION}; nothing else changed. The previous file is {name}.bak.\n",
            new.from
        ),
    }
}

/// Formats an error with its causes, which its `Display` omits.
fn describe_error(error: &ConfigError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("error: {error}: {source}"),
        None if matches!(error, ConfigError::Wrong(_)) => error.to_string(),
        None => format!("error: {error}"),
    }
}

fn headline(report: &Report) -> String {
    let count = report.problems.iter().filter(|problem| problem.severity == Severity::Warning).count();
    let warnings = match count {
        0 => String::new(),
        1 => ", with 1 warning".to_owned(),
        _ => format!(", with {count} warnings"),
    };
    match &report.file {
        Some(file) => format!("{} is valid{warnings}:", file.display()),
        None => format!("there is no config file; the defaults{warnings} are:"),
    }
}

fn summary(Config { fixed, hot }: &Config) -> Vec<(&'static str, String)> {
    let gateway = &fixed.gateway;
    let token = if gateway.token.is_some() {
        "a token is required"
    } else {
        "a generated token, if other machines or the agent's commands can reach it"
    };
    let store = match &fixed.database.backend {
        Backend::Memory => "memory; data is lost when pudu ends".to_owned(),
        Backend::Sqlite { dir } => format!("sqlite in {}", dir.display()),
        Backend::Postgres { .. } => "postgres".to_owned(),
    };
    // `pudu doctor` checks whether there is a shell.
    let tools: Vec<_> = hot.offered(true).map(|tool| tool.tool.name()).collect();
    vec![
        ("home", fixed.home.display().to_string()),
        ("gateway", format!("{}:{}, {token}", gateway.host, gateway.port)),
        ("database", store),
        ("models", listed(hot.models.iter().map(model))),
        ("tools", tools.join(", ")),
        ("accounts", listed(hot.accounts.iter().map(account))),
    ]
}

fn listed(items: impl Iterator<Item = String>) -> String {
    match items.collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        items => items.join("; "),
    }
}

fn model(config: &ModelConfig) -> String {
    let model = &config.settings;
    let host = model.base_url.host_str().unwrap_or_default();
    let key = if model.api_key.is_some() { "with a key" } else { "without a key" };
    format!("{} ({} at {host}, {key})", hide_if_secret(&model.name), hide_if_secret(&model.model))
}

fn account(account: &AccountConfig) -> String {
    let platform = &account.platform;
    format!("{} ({}, {})", hide_if_secret(&account.name), platform.name(), platform.transport())
}

/// Returns a name, or a placeholder if it looks like a secret.
fn hide_if_secret(name: &str) -> &str {
    let in_one_piece = |c: char| !c.is_ascii_alphanumeric();
    if name.split(in_one_piece).any(scrub::looks_secret) { scrub::HIDDEN } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_config::{EXAMPLE, Env};

    /// Runs a command on this file in a folder and returns its output without the folder's name.
    fn run(
        command: impl Fn(&Start, &mut dyn Write) -> io::Result<ConfigVerdict>,
        dir: &tempfile::TempDir,
        env: Env,
    ) -> (ConfigVerdict, String) {
        let start = Start { env, dir: dir.path().to_owned(), ..Start::default() };
        let mut out = Vec::new();
        let verdict = command(&start, &mut out).unwrap();
        (verdict, String::from_utf8(out).unwrap().replace(&format!("{}/", dir.path().display()), ""))
    }

    fn plain_check(start: &Start, out: &mut dyn Write) -> io::Result<ConfigVerdict> {
        check(start, false, out)
    }

    #[test]
    fn check_tells_of_unknown_keys_of_the_extensions_and_of_approvals_of_no_tool() {
        let check = |config: &str, extensions: &str| {
            let dir = folder(config);
            fs::write(dir.path().join("extensions_config.json"), extensions).unwrap();
            let (verdict, words) = run(plain_check, &dir, Env::default());
            (verdict, words)
        };
        let server =
            |more: &str| format!(r#"{{"mcpServers": {{"a": {{"url": "http://localhost/mcp"{more}}}}}}}"#);
        let (verdict, told) =
            check("{}", &server(r#", "urll": 1, "tools": {"x": {"off": true}}, "description": "d""#));
        let expect = "\
extensions_config.json: warning: mcpServers.a.urll: unknown key
  help: did you mean `url`?
extensions_config.json: warning: mcpServers.a.tools.x.off: unknown key
  help: remove it; docs/extensions.md lists the known keys";
        assert!(verdict == ConfigVerdict::Fine && told.starts_with(expect), "{told}");
        let (_, told) = check("{}", r#"{"mcpServer": {}, "skills": {"pdf": {"enable": true}}}"#);
        assert!(
            told.contains("mcpServer: ")
                && told.contains("`mcpServers`")
                && told.contains("skills.pdf.enable: "),
            "{told}"
        );
        let (verdict, told) = check("approvals: {tools: [shell, a_shell, bash]}", &server(""));
        assert_eq!(verdict, ConfigVerdict::Wrong, "{told}");
        assert!(told.contains("error: approvals.tools: there is no tool \"shell\""), "{told}");
        let (verdict, told) = check("approvals: {tools: [shell]}", &server(r#", "tool_name_prefix": false"#));
        assert_eq!(verdict, ConfigVerdict::Fine, "{told}");
        let off = r#"{"mcpServers": {"jira": {"enabled": false}, "odd": {"type": "sse", "url": "http://localhost"}}}"#;
        let (verdict, told) = check("approvals: {tools: [jira_search, odd_one]}", off);
        assert_eq!(verdict, ConfigVerdict::Fine, "{told}");
        let (_, told) = check("approvals: {tools: [github_create_issue]}", off);
        assert!(told.contains("no tool \"github_create_issue\""), "{told}");
        let list = |config: &str| {
            let text =
                format!("guardrails: {{enabled: true, provider: {{use: allowlist, config: {{{config}}}}}}}");
            check(&text, off)
        };
        let (verdict, told) = list("denied_tools: [shell, jira_search, bash], allowed_tools: [execute, ls]");
        assert_eq!(verdict, ConfigVerdict::Wrong, "{told}");
        let denied =
            "error: guardrails.provider.config.denied_tools: there is no tool \"shell\": this would deny";
        let allowed =
            "error: guardrails.provider.config.allowed_tools: there is no tool \"execute\": this would allow";
        assert!(told.contains(denied) && told.contains(allowed), "{told}");
        assert_eq!(told.matches("error: ").count(), 2, "{told}");
        let (verdict, told) = list("denied_tools: [jira_search, bash, memory_delete]");
        assert_eq!(verdict, ConfigVerdict::Fine, "{told}");
    }

    #[test]
    fn check_knows_credentials_that_cannot_be_and_accounts_that_are_open() {
        let told = |channels: &str| {
            let dir = folder(&format!("channels: {{{channels}}}\n"));
            let (verdict, words) = run(plain_check, &dir, Env::default());
            (
                verdict,
                words
                    .lines()
                    .filter_map(|line| line.strip_prefix("config.yaml:1:"))
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        let swapped = told("slack: {bot_token: xapp-1-A0-1-ab, app_token: xoxb-1-2-ab}");
        assert_eq!(
            swapped,
            (
                ConfigVerdict::Wrong,
                vec![
                    "31: error: channels.slack.bot_token: this is an app-level token (xapp-)".to_owned(),
                    "58: error: channels.slack.app_token: this is a bot token".to_owned(),
                ]
            )
        );
        let good = format!("123456789:{}", "A".repeat(35));
        let telegram = |token: &str| told(&format!("telegram: {{bot_token: '{token}', allowed_users: [7]}}"));
        for bad in [
            "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0",
            "123456789:AAH",
            &format!("bot{good}"),
            &good.replace(':', " "),
        ] {
            assert_eq!(
                telegram(bad),
                (
                    ConfigVerdict::Wrong,
                    vec![
                        "34: error: channels.telegram.bot_token: this does not look like a Telegram bot token"
                            .to_owned()
                    ]
                ),
                "{bad}"
            );
        }
        assert_eq!(telegram(&good), (ConfigVerdict::Fine, vec![]));
        let open = told(&format!("telegram: {{bot_token: '{good}'}}"));
        assert_eq!(
            open,
            (
                ConfigVerdict::Fine,
                vec!["12: warning: channels.telegram: this account is open to everyone".to_owned()]
            )
        );
    }

    #[test]
    fn check_looks_at_the_extensions_as_the_start_does() {
        let check = |extensions: &str, expected: &str| {
            let dir = folder("log_level: debug\n");
            fs::write(dir.path().join("extensions_config.json"), extensions).unwrap();
            let (verdict, words) = run(plain_check, &dir, Env::default());
            assert_eq!(verdict == ConfigVerdict::Wrong, !expected.is_empty(), "{words}");
            assert!(words.starts_with(expected), "{words}");
        };
        let booleans = "`true` or `false`, without quotes, is expected here\n  help: ";
        check(
            "{\n\"skills\": {\"a\": {\"enabled\": \"no\"}}}",
            &format!("extensions_config.json:2:32: error: skills.a.enabled: {booleans}"),
        );
        check(
            "[]",
            "extensions_config.json:1:0: error: an object in braces, `{…}`, is expected here\n  help: ",
        );
        check(
            "{\"mcpServers\": {,}}",
            "extensions_config.json:1:17: error: mcpServers: key must be a string",
        );
        check("{\"skills\": {\"a\": {\"enabled\": false}}}", "");
    }

    #[test]
    fn check_tells_programs_in_json() {
        let json = |text: &str| {
            let (verdict, words) = run(|start, out| check(start, true, out), &folder(text), Env::default());
            (verdict, serde_json::from_str::<Value>(&words).unwrap())
        };
        let (verdict, told) = json("log_level: debug\n");
        assert_eq!(
            (verdict, &told["usable"], &told["summary"]["database"]),
            (ConfigVerdict::Fine, &json!(true), &json!("sqlite in .pudu/data"))
        );
        let (verdict, told) = json("gateway: {port: no}\n");
        let expected = json!([{
            "file": told["problems"][0]["file"], "severity": "error", "line": 1, "column": 17, "key": "gateway.port", "help": null,
            "problem": "found `false`, expected a whole number from 0 to 65535",
        }]);
        assert_eq!(
            (verdict, &told["usable"], &told["problems"]),
            (ConfigVerdict::Wrong, &json!(false), &expected)
        );
    }

    fn folder(text: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.yaml"), text).unwrap();
        dir
    }

    #[test]
    fn check_tells_what_was_found_and_no_secret() {
        let dir = folder(
            "config_version: 34\ngateway: {token: hush-1}\nmodels:\n  - {name: a, model: b, api_key: hush-2}\n\
             channels:\n  bot: {type: telegram, bot_token: '1:hush-3_hush-3_hush-3_hush-3_hush-3', colour: red, allowed_users: [7]}\nmcp_tasks: {}\n\
             database: {backend: postgres, postgres_url: 'postgres://u:hush-4@h/d'}\n",
        );
        let expected = "config.yaml:6:76: warning: channels.bot.colour: unknown key
  help: remove it; docs/configuration.md lists the known keys
config.yaml: note: not used by this version: mcp_tasks
config.yaml is valid, with 1 warning:
  home      .pudu
  gateway   127.0.0.1:8001, a token is required
  database  postgres
  models    a (b at api.openai.com, with a key)
  tools     web_search, web_fetch, image_search, ls, read_file, write_file, str_replace, glob, grep, bash, present_files, list_uploaded_files
  accounts  bot (telegram, polling)
";
        assert_eq!(run(plain_check, &dir, Env::default()), (ConfigVerdict::Fine, expected.to_owned()));
    }

    #[test]
    fn check_fails_on_errors_and_on_a_file_that_is_not_there() {
        let dir = folder("config_version: 34\ngateway: {port: no}\n");
        let expected =
            "config.yaml:2:17: error: gateway.port: found `false`, expected a whole number from 0 to 65535\n";
        assert_eq!(run(plain_check, &dir, Env::default()), (ConfigVerdict::Wrong, expected.to_owned()));
        let env = Env::from([("PUDU_CONFIG", "x.yaml")]);
        let expected = "error: x.yaml, named by PUDU_CONFIG, does not exist\n";
        assert_eq!(run(plain_check, &dir, env), (ConfigVerdict::Wrong, expected.to_owned()));
    }

    #[test]
    fn upgrade_keeps_a_backup_and_has_nothing_to_do_the_second_time() {
        let old = "config_version: 3\n# mine\nlog_level: debug\n";
        let dir = folder(old);
        let file = dir.path().join("config.yaml");
        let (verdict, words) = run(upgrade, &dir, Env::default());
        assert_eq!(verdict, ConfigVerdict::Fine);
        assert!(
            words.starts_with("Upgraded config.yaml from version 3 to 34; nothing else changed. The previous file is config.yaml.bak.\n"),
            "{words}"
        );
        let new = fs::read_to_string(&file).unwrap();
        assert_eq!(new, "config_version: 34\n# mine\nlog_level: debug\n");
        assert_eq!(fs::read_to_string(dir.path().join("config.yaml.bak")).unwrap(), old);
        let nothing = (ConfigVerdict::Fine, "config.yaml is up to date; nothing was changed\n".to_owned());
        assert_eq!(run(upgrade, &dir, Env::default()), nothing);
        assert_eq!(fs::read_to_string(&file).unwrap(), new);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no other file is left");
    }

    #[test]
    fn the_example_itself_has_everything() {
        let nothing = (ConfigVerdict::Fine, "config.yaml is up to date; nothing was changed\n".to_owned());
        assert_eq!(run(upgrade, &folder(EXAMPLE), Env::default()), nothing);
    }

    #[cfg(unix)]
    #[test]
    fn upgrade_follows_a_link_and_keeps_the_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.yaml");
        fs::write(&real, "config_version: 1\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, dir.path().join("config.yaml")).unwrap();
        assert_eq!(run(upgrade, &dir, Env::default()).0, ConfigVerdict::Fine);
        assert!(dir.path().join("config.yaml").is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            fs::metadata(dir.path().join("real.yaml.bak")).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
