//! Generates `config.example.yaml` and the tables of `docs/configuration.md` from the declarations. The tests fail if
//! a file differs; with `PUDU_UPDATE=1` they write it.

use super::*;
use declaration::ValueKind;
use reader::{Effect, Log};
use schema::{every_key, schema};
use std::{collections::BTreeMap, env, fs};

const DOCS: &str = include_str!("../../../../docs/configuration.md");

/// The beginning of the example.
const HEAD: &str = "\
# pudu's configuration: every key, its default and its meaning. It is generated from the declarations in crates/config.
#
# A key after `# ` has no fixed default, or belongs to an entry that does not exist yet; remove the two
# characters to use it. A change of a `[restart]` key needs a restart, a change of an `[account]` key reconnects
# the bot, and all other keys apply from the next message. A value that begins with `$` names a variable,
# $NAME or ${NAME}, from the environment or from the file .env beside this one. A literal leading dollar sign is
# written twice.
#
# docs/configuration.md has the same keys as tables, with types and limits.
";

/// A key or a section, with its children in the order in which they are read.
#[derive(Default)]
struct Branch {
    name: String,
    path: String,
    key: Option<Key>,
    below: Vec<Branch>,
}

impl Branch {
    /// Returns all keys. Defaults of an empty file take precedence over those of the sample. Keys of the second model alone
    /// are for Azure.
    fn root(log: &Log, azure: bool) -> Self {
        let bare = load(&Start { dir: "/d".into(), ..Start::default() }).unwrap().keys;
        let mut root = Self::default();
        let others = |path: &str| path.starts_with("models[") && !path.starts_with("models[0]");
        for (path, key) in log.keys.iter().filter(|(path, _)| azure || !others(path)) {
            root.insert(bare.get(path).unwrap_or(key));
        }
        root.sort(&tables(DOCS));
        root
    }

    /// Sorts keys before sections, and sections in the order of the page.
    fn sort(&mut self, tables: &[&str]) {
        let place = |path: &str| tables.iter().position(|table| Some(*table) == home(tables, path));
        self.below.sort_by_key(|branch| branch.key.is_none().then(|| place(&branch.path)));
        self.below.iter_mut().for_each(|branch| branch.sort(tables));
    }

    fn insert(&mut self, key: &Key) {
        let mut at = self;
        for part in key.pattern.split('.') {
            let index = at.below.iter().position(|branch| branch.name == part).unwrap_or_else(|| {
                let path = problem::join(&at.path, part);
                at.below.push(Self { name: part.to_owned(), path, ..Self::default() });
                at.below.len() - 1
            });
            at = &mut at.below[index];
        }
        at.key = Some(key.clone());
    }

    fn keys(&self) -> Vec<&Key> {
        self.key.iter().chain(self.below.iter().flat_map(Self::keys)).collect()
    }

    /// Returns the lines of the example; `all` uncomments everything.
    fn lines(&self, log: &Log, all: bool, inside: bool) -> Vec<String> {
        if let Some(Key { declared, effect, pattern, .. }) = &self.key {
            let usual = declared.usual.clone().unwrap_or_default();
            let fixed = declared.example.is_none()
                && (declared.default == usual || usual.is_empty() || pattern.ends_with(".enabled"));
            let value = declared.example.map_or_else(|| yaml(&declared.kind, &usual), str::to_owned);
            let mark = if fixed || inside || all { "" } else { "# " };
            return vec![
                format!("# {}{}", declared.about, mark_of(*effect)),
                format!("{mark}{}: {value}", self.name),
            ];
        }
        let list = self.name.strip_suffix("[]");
        let hidden = (list.is_some() || log.named.contains(&self.path)) && !inside && !all;
        let hide = |line: String| if hidden { format!("# {line}") } else { line };
        let below = self.below.iter().flat_map(|branch| branch.lines(log, all, inside || hidden));
        let about = log.about.get(self.path.trim_end_matches("[]")).map(|about| format!("# {about}"));
        match list {
            Some(list) => {
                let entry = dashed(below.collect()).into_iter().map(|line| format!("  {}", hide(line)));
                about.into_iter().chain([format!("{list}:")]).chain(entry).collect()
            }
            None => {
                let below = below.map(|line| format!("  {line}"));
                about.into_iter().chain([format!("{}:", self.name)]).chain(below).map(hide).collect()
            }
        }
    }
}

/// Turns lines into an entry of a list, with a dash before its first key.
fn dashed(lines: Vec<String>) -> Vec<String> {
    let first = lines.iter().position(|line| !line.starts_with('#'));
    let start = |at| match Some(at) < first {
        true => "",
        false if Some(at) == first => "- ",
        false => "  ",
    };
    lines.into_iter().enumerate().map(|(at, line)| format!("{}{line}", start(at))).collect()
}

fn mark_of(effect: Effect) -> &'static str {
    match effect {
        Effect::Restart => " [restart]",
        Effect::Reconnect => " [account]",
        Effect::NextMessage => "",
    }
}

fn yaml(kind: &ValueKind, usual: &str) -> String {
    match kind {
        ValueKind::List(_) => format!("[{usual}]"),
        _ if usual.is_empty() => "\"\"".to_owned(),
        _ => usual.to_owned(),
    }
}

/// Returns the example; `all` uncomments every key.
fn example(all: bool) -> String {
    let log = every_key();
    let blocks =
        Branch::root(&log, false).below.into_iter().map(|branch| branch.lines(&log, all, false).join("\n"));
    format!("{HEAD}\n{}\n", blocks.collect::<Vec<_>>().join("\n\n"))
}

/// Returns the sections that have tables on the page, in its order; the empty one is the top level.
fn tables(page: &str) -> Vec<&str> {
    let mark = |line: &&str| line.starts_with(MARK);
    page.lines().filter(mark).flat_map(prefixes).collect()
}

const MARK: &str = "<!-- keys";

fn prefixes(line: &str) -> impl Iterator<Item = &str> {
    let list = line.trim_start_matches(MARK).trim_end_matches("-->").trim_start_matches(':');
    list.split(',').map(str::trim)
}

/// Returns the table of a path: that of the innermost section.
fn home<'a>(tables: &[&'a str], path: &str) -> Option<&'a str> {
    let covers = |prefix: &&&str| {
        let rest = path.strip_prefix(**prefix);
        match **prefix {
            "" => !path.contains(['.', '[']),
            _ => rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])),
        }
    };
    tables.iter().filter(covers).max_by_key(|prefix| prefix.len()).copied()
}

/// Returns the page with newly generated tables.
fn page(old: &str) -> String {
    let log = every_key();
    let (root, all) = (Branch::root(&log, true), tables(old));
    let mut rows: BTreeMap<&str, String> = BTreeMap::new();
    for key in root.keys() {
        let prefix = home(&all, &key.pattern).unwrap_or_else(|| panic!("no table has {}", key.pattern));
        let applies = match key.effect {
            Effect::Restart => "restart",
            Effect::Reconnect => "account",
            Effect::NextMessage => "next message",
        };
        let declared = &key.declared;
        let default = if declared.default.is_empty() { "empty" } else { &declared.default };
        let others = match key.aliases.as_slice() {
            [] => String::new(),
            names => format!(" Other names: `{}`.", names.join("`, `")),
        };
        let (pattern, kind, about) = (&key.pattern, &declared.kind, declared.about);
        let row = format!("| `{pattern}` | {kind} | {default} | {applies} | {about}{others} |\n");
        rows.entry(prefix).or_default().push_str(&row);
    }
    let mut new = String::new();
    let mut lines = old.lines().peekable();
    while let Some(line) = lines.next() {
        new += &format!("{line}\n");
        if line.starts_with(MARK) {
            while lines.next_if(|line| line.is_empty() || line.starts_with('|')).is_some() {}
            new += "\n| key | type | default | applies at | description |\n| --- | --- | --- | --- | --- |\n";
            prefixes(line).for_each(|prefix| new += &rows[prefix]);
            new += "\n";
        }
    }
    new.trim_end().to_owned() + "\n"
}

/// Compares a file with the generated text, and writes it if requested.
fn check(file: &str, generated: &str) {
    let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
    if env::var_os("PUDU_UPDATE").is_some() {
        fs::write(&path, generated).unwrap();
    }
    let first = |(old, new): &(&str, &str)| old != new;
    let old = fs::read_to_string(&path).unwrap();
    let differs = old.lines().zip(generated.lines()).find(first);
    assert!(old == generated, "{file} is stale: run PUDU_UPDATE=1 cargo test -p pudu-config. {differs:?}");
}

#[test]
fn the_example_and_the_page_match_the_declarations() {
    check("config.example.yaml", &example(false));
    check("docs/configuration.md", &page(DOCS));
}

#[test]
fn every_key_has_a_description_and_an_example() {
    let log = every_key();
    let lacks = |key: &&&Key| {
        let declared = &key.declared;
        declared.about.is_empty() || (declared.usual.is_none() && declared.example.is_none())
    };
    let root = Branch::root(&log, true);
    let lacking: Vec<_> = root.keys().iter().filter(lacks).map(|key| &key.pattern).collect();
    assert_eq!(lacking, Vec::<&String>::new());
}

#[test]
fn the_example_contains_only_defaults() {
    let example = good(EXAMPLE, []);
    assert_eq!(example.report.problems, []);
    let none = load(&Start { dir: "/d".into(), ..Start::default() }).unwrap();
    assert_eq!(format!("{:#?}", example.config), format!("{:#?}", none.config));
}

#[test]
fn the_example_is_valid_with_every_key_enabled() {
    let env = [
        ("PUDU_TOKEN", "t"),
        ("OPENAI_API_KEY", "k"),
        ("TAVILY_API_KEY", "k"),
        ("OIDC_CLIENT_SECRET", "s"),
        ("PROVISIONER_API_KEY", "k"),
        ("DATABASE_URL", "postgres://x"),
        ("DINGTALK_CLIENT_SECRET", "d"),
        ("TELEGRAM_BOT_TOKEN", "1:a"),
        ("TELEGRAM_WEBHOOK_SECRET", "sixteen-letters_"),
        ("SLACK_BOT_TOKEN", "xoxb-a"),
        ("SLACK_APP_TOKEN", "xapp-a"),
        ("SLACK_SIGNING_SECRET", "s"),
        ("DISCORD_BOT_TOKEN", "d"),
        ("FEISHU_APP_SECRET", "f"),
        ("FEISHU_ENCRYPT_KEY", "e"),
        ("FEISHU_VERIFICATION_TOKEN", "v"),
    ];
    let text = example(true)
        .replace("enabled: false", "enabled: true")
        .replace("passport: passport.json", "passport: {status: active}")
        .replace("mode: polling", "mode: webhook")
        .replace("mode: ws", "mode: webhook");
    let expected = "config.yaml:LINE: warning: checkpointer: this has no effect, because `database` is set\n  \
                    help: remove it; pudu keeps everything in one store\n\
                    config.yaml: note: different unit than in DeerFlow: subagents.agents.bash.max_turns (model calls), \
                    subagents.custom_agents.researcher.max_turns (model calls), subagents.max_turns (model calls)";
    let line = text.lines().position(|line| line.starts_with("checkpointer")).unwrap() + 3;
    assert_eq!(good(&text, env).report.to_string(), expected.replace("LINE", &format!("{line}:3")));
}

#[test]
fn the_docs_list_unused_sections_and_all_classes() {
    for section in later::SECTIONS {
        assert!(DOCS.contains(&format!("`{section}`")), "{section}");
    }
    for path in class::paths() {
        assert!(DOCS.contains(&format!("`{path}`")), "{path}");
    }
}

#[test]
fn the_schema_accepts_known_keys_and_refuses_others() {
    let schema = schema();
    let at = |path: &str| schema.pointer(path).unwrap_or_else(|| panic!("{path}")).clone();
    let port = at("/properties/gateway/properties/port");
    assert_eq!(port["type"], serde_json::json!(["integer", "string", "null"]));
    assert_eq!((port["minimum"].as_f64(), port["maximum"].as_f64()), (Some(0.0), Some(65535.0)));
    assert_eq!(
        port["description"],
        "Port to listen on; 0 takes any free port. Default: 8001. A change needs a restart."
    );
    assert_eq!(at("/properties/gateway/additionalProperties"), false);
    assert_eq!(at("/properties/mcp_tasks"), serde_json::json!({}));
    for path in [
        "/properties/models/items/properties/num_ctx",
        "/properties/models/items/properties/azure_endpoint",
        "/properties/models/items/properties/openai_api_key",
        "/properties/channels/properties/telegram/properties/webhook/properties/url",
        "/properties/auth/properties/oidc/properties/providers/additionalProperties/properties/issuer",
    ] {
        at(path);
    }
}
