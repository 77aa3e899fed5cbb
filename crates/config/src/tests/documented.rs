//! Holds the types, `config.example.yaml` and `docs/configuration.md` together.

use super::*;
use raw::NodeValue;
use reader::Effect;
use std::collections::BTreeMap;

const DOCS: &str = include_str!("../../../../docs/configuration.md");

/// A line of the example, or of a comment in it, that has a key.
#[derive(Debug, PartialEq)]
struct Line {
    path: String,
    about: String,
    effect: Effect,
}

/// Uncomments the keys, so that all keys are set.
fn all_keys() -> String {
    let line = |line: &str| match line.split_once("# ") {
        Some((indent, key)) if is_key(key) => format!("{indent}{key}"),
        _ => line.to_owned(),
    };
    EXAMPLE.lines().map(|text| line(text) + "\n").collect()
}

/// Distinguishes a key from words: `name:`, perhaps with `- ` or a comment of a deeper key before it.
fn is_key(text: &str) -> bool {
    let text = text.trim_start();
    let text = text.strip_prefix("- ").unwrap_or(text);
    let word = text.split(':').next().unwrap_or_default();
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (plain && text.contains(':')) || text.starts_with("# ")
}

fn documented_lines() -> BTreeMap<String, Line> {
    let text = all_keys();
    let (root, problems) = raw::parse(text.as_bytes());
    assert_eq!(problems, []);
    let lines: Vec<_> = text.lines().collect();
    let mut found = BTreeMap::new();
    walk(&root.unwrap(), "", &lines, &mut found);
    found
}

fn walk(node: &Node, path: &str, lines: &[&str], found: &mut BTreeMap<String, Line>) {
    if let NodeValue::List(items) = &node.value {
        items.iter().for_each(|item| walk(item, &format!("{path}[]"), lines, found));
    }
    for entry in node.entries() {
        let path = problem::join(path, &entry.key);
        let about = words_above(lines, usize::try_from(entry.at.line).unwrap() - 1);
        let marks = [("[restart]", Effect::Restart), ("[account]", Effect::Reconnect)];
        let mark = marks.iter().find(|(mark, _)| about.ends_with(mark));
        let effect = mark.map_or(Effect::NextMessage, |(_, effect)| *effect);
        let about = about.trim_end_matches(mark.map_or("", |(mark, _)| mark)).trim().to_owned();
        found.insert(path.clone(), Line { path: path.clone(), about, effect });
        if !path.ends_with("thinking") {
            walk(&entry.node, &path, lines, found);
        }
    }
}

fn words_above(lines: &[&str], line: usize) -> String {
    let above = lines[..line].iter().rev().map_while(|line| line.trim().strip_prefix("# "));
    let mut words: Vec<_> = above.collect();
    words.reverse();
    words.join(" ")
}

fn keys() -> BTreeMap<String, Key> {
    let text = "models: [{name: a, model: a, base_url: http://localhost/v1}]\n\
                tool_groups: [{name: a}]\n\
                tools: [{use: deerflow.community.ddg_search.tools:web_search_tool}]\n\
                loop_detection: {tool_freq_overrides: {bash: {warn: 1, hard_limit: 2}}}\n\
                subagents: {agents: {bash: {}}, custom_agents: {researcher: {description: a, system_prompt: b}}}\n\
                auth: {oidc: {providers: {company: {issuer: \"https://login.example.com\", client_id: pudu}}}}\n\
                sandbox: {use: \"deerflow.community.aio_sandbox:AioSandboxProvider\", mounts: [{host_path: /srv, container_path: /mnt/srv}]}\n\
                channels: {telegram: {}, feishu: {}, dingtalk: {}, slack: {}, discord: {}}\n";
    good(text, []).keys.into_values().map(|key| (key.pattern.clone(), key)).collect()
}

#[test]
fn the_example_has_every_key_and_marks_what_needs_a_restart() {
    let keys = keys();
    let lines = documented_lines();
    let sections = |path: &str| {
        keys.keys().any(|key| key.starts_with(&format!("{path}.")) || key.starts_with(&format!("{path}[")))
    };
    let example: Vec<_> =
        lines.values().filter(|line| !sections(&line.path)).map(|l| (&l.path, l.effect)).collect();
    let types: Vec<_> = keys.values().map(|key| (&key.pattern, key.effect)).collect();
    assert_eq!(example, types);
    assert_eq!(lines.values().find(|line| line.about.is_empty()), None, "every key says what it means");
}

#[test]
fn the_example_says_nothing_but_the_defaults() {
    let example = good(EXAMPLE, []);
    assert_eq!(example.report.problems, []);
    let none = load(&Start { dir: "/d".into(), ..Start::default() }).unwrap();
    assert_eq!(format!("{:#?}", example.config), format!("{:#?}", none.config));
}

#[test]
fn the_example_can_be_read_with_every_key_in_use() {
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
    let text = all_keys()
        .replace("enabled: false", "enabled: true")
        .replace("passport: passport.json", "passport: {status: active}")
        .replace("mode: polling", "mode: webhook")
        .replace("mode: ws", "mode: webhook");
    let expected = "config.yaml:LINE: warning: checkpointer: this has no effect beside `database`\n  \
                    help: remove it; pudu keeps everything in one store\n\
                    config.yaml: note: different unit than in DeerFlow: subagents.agents.bash.max_turns (model calls), \
                    subagents.custom_agents.researcher.max_turns (model calls), subagents.max_turns (model calls)";
    let line = text.lines().position(|line| line.starts_with("checkpointer")).unwrap() + 3;
    assert_eq!(good(&text, env).report.to_string(), expected.replace("LINE", &format!("{line}:3")));
}

#[test]
fn the_docs_have_a_row_for_every_key_and_no_other() {
    let lines = documented_lines();
    let mut expected = Vec::new();
    for (path, key) in keys() {
        let counts = match key.effect {
            Effect::Restart => "restart",
            Effect::Reconnect => "account",
            Effect::NextMessage => "next message",
        };
        let default = match key.default.as_str() {
            "" => "empty".to_owned(),
            told => told.to_owned(),
        };
        let about = lines.get(&path).map_or("", |line| &line.about);
        expected.push(format!("| `{path}` | {} | {default} | {counts} | {about} |", key.kind));
    }
    let rows: Vec<_> =
        DOCS.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 6).collect();
    let missing =
        expected.iter().filter(|row| !rows.contains(&row.as_str())).fold(String::new(), |mut out, row| {
            let _ = writeln!(out, "{row}");
            out
        });
    assert_eq!(missing, "", "rows that docs/configuration.md lacks");
    let stray: Vec<_> = rows.iter().filter(|row| !expected.iter().any(|other| other == *row)).collect();
    assert_eq!(stray, Vec::<&&str>::new(), "rows in docs/configuration.md of keys that are not like this");
}

#[test]
fn the_docs_list_what_is_not_used_and_every_class() {
    for section in later::SECTIONS {
        assert!(DOCS.contains(&format!("`{section}`")), "{section}");
    }
    for path in class::paths() {
        assert!(DOCS.contains(&format!("`{path}`")), "{path}");
    }
}
