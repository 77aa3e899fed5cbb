//! Messages on a wrong file.

use super::*;
use proptest::prelude::*;

/// Compares the messages on a file that begins in line 2, as line 1 has the version.
fn check(text: &str, expected: &str) {
    assert_eq!(said(text, []), expected.trim_start(), "{text}");
}

#[test]
fn a_time_zone_is_one_that_there_is() {
    check(
        "channels: {timezone: Mars/Olympus}\n",
        "
config.yaml:2:22: error: channels.timezone: found \"Mars/Olympus\", expected time zone
  help: write the name of one that this machine knows, such as Europe/Berlin, or an offset: +02:00",
    );
}

#[test]
fn a_language_is_one_that_has_a_catalogue() {
    check(
        "channels:\n  language: de\n  telegram: {bot_token: \"1:x\", language: zh-TW}\n",
        "
config.yaml:3:13: error: channels.language: found \"de\", expected en or zh
  help: write en, or zh for Simplified Chinese; without the key each person gets their own
config.yaml:4:42: error: channels.telegram.language: found \"zh-TW\", expected en or zh
  help: write en, or zh for Simplified Chinese; without the key each person gets their own",
    );
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_its_place_and_the_mend() {
    let text = "\
log_level: inof
gateway:
  port: 70000
  hots: x
database:
  backend: postgres
  postgres_url: $NO_SUCH
models:
  - name: a
    model: 4
    api_key: [sk-hush]
    base_url: example.com
    temperature: hot
sandbox: local
uploads:
  max_files: -1
  max_files: 2
";
    check(
        text,
        "
config.yaml:2:12: error: log_level: found \"inof\", expected one of trace, debug, info, warning, warn, error, critical
  help: did you mean `info`?
config.yaml:4:9: error: gateway.port: found the number 70000, expected whole number, 0 to 65535
config.yaml:8:17: error: database.postgres_url: the environment variable NO_SUCH is not set
  help: set NO_SUCH, or write NO_SUCH=… into the file .env beside this one
config.yaml:11:12: error: models[0].model: found the number 4, expected text
  help: put it in quotes
config.yaml:12:14: error: models[0].api_key: found a list, expected secret
config.yaml:13:15: error: models[0].base_url: found \"example.com\", expected URL
  help: begin it with https:// or http://
config.yaml:14:18: error: models[0].temperature: found \"hot\", expected number, 0 to 2
config.yaml:15:10: error: sandbox: found text, expected a mapping
  help: write `key: value` lines, indented alike
config.yaml:18:3: error: uploads.max_files: the key is there twice, first in line 17
  help: keep one of the two
config.yaml:5:3: warning: gateway.hots: pudu does not know this key
  help: did you mean `host`?",
    );
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_known_one() {
    check(
        "chanels: {}\nchannels:\n  telegram:\n    enabled: false\n    bot_tokn: x\n  webex: 1\nfavourite: x\n",
        "
config.yaml:2:1: error: chanels: pudu does not know this key
  help: did you mean `channels`?
config.yaml:6:5: warning: channels.telegram.bot_tokn: pudu does not know this key
  help: did you mean `bot_token`?
config.yaml:7:3: warning: channels.webex: pudu does not know this key
  help: remove it, or see docs/configuration.md for the keys there are
config.yaml:8:1: warning: favourite: pudu does not know this key
  help: remove it, or see docs/configuration.md for the keys there are",
    );
}

#[test]
fn keys_that_have_no_effect_yet_are_told_in_one_line() {
    check(
        "scheduler: {enabled: true, anything: [1]}\nmcp_tasks: {}\nsummarization:\nsandbox: {replicas: 3}\n\
         channels: {telegram: {enabled: false, rich_messages: true}}\n",
        "config.yaml: note: not used by this version: channels.telegram.rich_messages, mcp_tasks, scheduler",
    );
}

#[test]
fn a_missing_variable_is_an_error_only_where_it_is_needed() {
    check(
        "channels:\n  telegram: {enabled: false, bot_token: $NONE}\n  slack: {enabled: false, bot_token: $NONE}\n\
         database: {backend: sqlite, postgres_url: $NONE}\nscheduler: {key: $NONE}\n\
         tools: [{name: web_search, use: deerflow.community.infoquest.tools:web_search_tool, api_key: $NONE}]\n",
        "
config.yaml:7:33: warning: tools[0].use: this tool is not in this version; it is left out
  help: nothing has to be done; the agent works without it
config.yaml: note: not used by this version: scheduler",
    );
    check(
        "channels:\n  telegram: {bot_token: \"${NONE}\", session: {context: {deep: [{er: $NONE}]}}}\n",
        "
config.yaml:3:25: error: channels.telegram.bot_token: the environment variable NONE is not set
  help: set NONE, or write NONE=… into the file .env beside this one
config.yaml:3:68: error: channels.telegram.session.context.deep.er: the environment variable NONE is not set
  help: set NONE, or write NONE=… into the file .env beside this one
config.yaml: note: not used by this version: channels.telegram.session.context",
    );
}

#[test]
fn what_a_variable_holds_is_never_shown() {
    let text = "gateway: {port: $PORT, token: $EMPTY}\nchannels: {telegram: {bot_token: $EMPTY, allowed_users: $USERS}}\n";
    let expected = "
config.yaml:2:17: error: gateway.port: found something else in the variable $PORT, expected whole number, 0 to 65535
config.yaml:3:34: error: channels.telegram.bot_token: this is missing or empty
  help: @BotFather gives one; or set `enabled: false`
config.yaml:3:57: error: channels.telegram.allowed_users: found something else in the variable $USERS, expected a list of numeric ids
  help: write ids: a name can change hands, and whoever has it then would be let in";
    assert_eq!(said(text, [("PORT", "hush"), ("EMPTY", ""), ("USERS", "hush")]), expected.trim_start());
}

#[test]
fn what_may_be_a_secret_is_never_shown() {
    let text = "gateway: {token: 1234567}\nmodels:\n  - {name: a, model: b, api_key: 7654321, default_headers: Bearer hush, base_url: 'ftp://hush:hush@x'}\n\
                channels: {telegram: 1:hush}\ndatabase: {backend: postgres, postgres_url: [hush]}\n";
    check(
        text,
        "
config.yaml:2:18: error: gateway.token: found a number, expected secret
  help: put it in quotes
config.yaml:4:34: error: models[0].api_key: found a number, expected secret
  help: put it in quotes
config.yaml:4:60: error: models[0].default_headers: found text, expected a mapping
config.yaml:4:83: error: models[0].base_url: found an address with a name or a password in it, expected URL
  help: begin it with https:// or http://
config.yaml:5:22: error: channels.telegram: found text, expected a mapping
  help: write `key: value` lines, indented alike
config.yaml:6:45: error: database.postgres_url: found a list, expected secret",
    );
}

#[test]
fn a_text_with_a_dollar_sign_is_a_variable_or_two_dollar_signs() {
    check(
        "models: [{name: a, model: $5 off, api_key: k}]\n",
        "
config.yaml:2:27: error: models[0].model: a text with `$` in front must be a variable's name
  help: write $NAME or ${NAME}; a text that begins with a dollar sign begins with `$$`",
    );
    let loaded = good("models: [{name: $$5 off, model: a, api_key: k}]\n", []);
    assert_eq!(loaded.config.hot.models[0].settings.name, "$5 off");
}

#[test]
fn only_ids_open_the_door_and_an_emptied_variable_does_not() {
    let help = "write ids: a name can change hands, and whoever has it then would be let in";
    let group = "write a group's id under `allowed_chats`";
    for (typed, found, help) in [
        ("[1, \"@bob\"]", "\"@bob\"", help),
        ("bob", "\"bob\"", help),
        ("[1.5]", "the number 1.5", help),
        ("\"\"", "\"\"", help),
        ("[1, -1001234567890]", "the number -1001234567890", group),
    ] {
        let expected = format!(
            "error: channels.telegram.allowed_users: found {found}, expected a list of numeric ids\n  help: {help}"
        );
        let said = said(&format!("channels: {{telegram: {{bot_token: t, allowed_users: {typed}}}}}\n"), []);
        assert!(said.ends_with(&expected), "{typed}: {said}");
    }
}

#[test]
fn no_account_takes_the_place_of_the_page_or_of_clients() {
    let taken = [("local", 10, "the page and the terminal"), ("api", 8, "clients of the HTTP API")];
    for (name, at, whose) in taken {
        let told = format!("config.yaml:3:{at}: error: channels.{name}: this is the name of {whose}");
        let help = "help: give the account another name, and its platform as `type:`";
        check(&format!("channels:\n  {name}: {{type: telegram}}\n"), &format!("{told}\n  {help}"));
    }
}

#[test]
fn one_bot_is_one_account() {
    let same = "{type: slack, bot_token: b, app_token: a}";
    check(
        &format!(
            "channels:\n  one: {same}\n  two: {same}\n  off: {{enabled: false, type: slack, bot_token: b, app_token: a}}\n"
        ),
        "
config.yaml:4:3: error: channels.two: this is the same bot as `channels.one`
  help: keep one of the two, or give each a bot of its own",
    );
    good("channels:\n  one: {type: telegram, bot_token: b}\n  two: {type: discord, bot_token: b}\n", []);
}

#[test]
fn a_class_that_cannot_be_had_names_what_to_use() {
    let said = said(
        "sandbox: {use: deerflow.community.boxlite:BoxliteProvider}\n\
         models:\n  - {name: a, use: deerflow.models.openai_codex_provider:CodexChatModel}\n\
         \x20 - {name: b, use: langchain_openai:ChatOpenAi, model: b}\n\
         tools:\n  - {use: my_company.tools:lookup}\n",
        [],
    );
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "config.yaml:2:16: error: sandbox.use: \"deerflow.community.boxlite:BoxliteProvider\" cannot be used",
            "  help: this sandbox is not in this version; use deerflow.community.aio_sandbox:AioSandboxProvider for containers, \
             deerflow.sandbox.local:LocalSandboxProvider for this machine, or leave `use` out",
            "config.yaml:4:20: error: models[0].use: \"deerflow.models.openai_codex_provider:CodexChatModel\" cannot be used",
            "  help: it borrows the login of a command line program, which pudu does not; use langchain_anthropic:ChatAnthropic \
             or langchain_openai:ChatOpenAI with an API key",
            "config.yaml:5:20: error: models[1].use: \"langchain_openai:ChatOpenAi\" is not a path that pudu knows",
        ]
    );
    let start = "  help: did you mean langchain_openai:ChatOpenAI? known, nearest first: langchain_openai:ChatOpenAI, ";
    assert!(lines[5].starts_with(start), "{}", lines[5]);
    assert_eq!(
        lines[6],
        "config.yaml:7:11: error: tools[0].use: \"my_company.tools:lookup\" is not a path that pudu knows"
    );
    assert_eq!(lines.len(), 8);
}

#[test]
fn accounts_are_checked_as_a_whole() {
    check(
        "channels:\n  one: {type: telegrm, bot_token: t}\n  two: {enabled: true, bot_token: t}\n  slack: {bot_token: a}\n\
         \x20 three: {type: telegram, bot_token: t, mode: webhook, webhook: {url: 'http://x.org/', secret_token: 'no way'}}\n\
         \x20 four: {type: telegram, bot_token: t, mode: webhook}\n",
        "
config.yaml:3:8: error: channels.one: \"telegrm\" is not a platform that pudu knows
  help: did you mean `type: telegram`?
config.yaml:4:8: error: channels.two: \"two\" is not a platform that pudu knows
  help: write `type:` with one of telegram, feishu, dingtalk, slack, discord
config.yaml:5:3: error: channels.slack.app_token: this is missing or empty
  help: an app-level token (xapp-) with connections:write, made at https://api.slack.com/apps, \"Basic Information\"
config.yaml:6:71: error: channels.three.webhook.url: Telegram delivers only to https:// addresses
  help: write the public https:// address that leads to pudu's gateway
config.yaml:6:102: error: channels.three.webhook.secret_token: Telegram does not accept this secret
  help: choose 16 to 256 letters, digits, `_` or `-`, by `openssl rand -hex 32` for one
config.yaml:7:3: error: channels.four.webhook.url: this is missing or empty
  help: write the public https:// address that leads to pudu's gateway
config.yaml:7:3: error: channels.four.webhook.secret_token: this is missing or empty
  help: choose 16 to 256 letters, digits, `_` or `-`, by `openssl rand -hex 32` for one",
    );
    check(
        "channels:\n  telegram: {bot_token: t, mode: webhook, webhook: {url: 'https://x.org/', secret_token: fifteen-letters}}\n",
        "
config.yaml:3:90: error: channels.telegram.webhook.secret_token: this can be guessed: whoever does speaks as anybody
  help: choose 16 to 256 letters, digits, `_` or `-`, by `openssl rand -hex 32` for one",
    );
}

#[test]
fn models_need_a_key_where_their_provider_does_and_names_of_their_own() {
    check(
        "models:\n  - {name: a, model: b}\n  - {name: a, model: c, base_url: 'http://10.0.0.1/v1'}\n  - {model: z, use: langchain_ollama:ChatOllama}\n",
        "
config.yaml:3:5: error: models[0].api_key: no key is written, and OPENAI_API_KEY is not set
  help: set OPENAI_API_KEY, or write `api_key: $NAME` with a variable of your own
config.yaml:4:12: error: models[1].name: two models have the name \"a\"
  help: give each its own; people choose a model by its name
config.yaml:5:5: error: models[2].name: this is missing or empty
  help: give the name by which people choose the model",
    );
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
    check(
        "models:\n  - name: a\n    model: b\n    api_key: k\n    default_headers: {'X Team': t}\n  - name: c\n    model: d\n    api_key: k\n    default_headers: {X-Token: \"a\\nb\"}\n",
        "
config.yaml:6:22: error: models[0].default_headers: the header \"X Team\" cannot be sent
  help: write a name and a value of plain letters, digits and signs
config.yaml:10:22: error: models[1].default_headers: the header \"X-Token\" cannot be sent
  help: write a name and a value of plain letters, digits and signs",
    );
}

#[test]
fn an_older_file_is_told_about_the_upgrade_and_a_newer_one_about_its_keys() {
    let said = |text| good(text, []).report.to_string();
    assert_eq!(said("config_version: 34\n"), "");
    let upgrade = "  help: `pudu config upgrade` raises it, and changes no value";
    assert_eq!(
        said("config_version: 12\n"),
        format!(
            "config.yaml:1:17: warning: config_version: the file has the shape of version 12, this pudu has 34\n{upgrade}"
        )
    );
    assert_eq!(said("log_level: info\n"), "", "a file that does not say is current");
    assert_eq!(
        said("config_version: 35\n"),
        "config.yaml:1:17: warning: config_version: the file has the shape of version 35, this pudu knows 34\n  \
         help: keys that are newer than this pudu have no effect"
    );
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = "# x\n".repeat(1024 * 1024 / 4 + 1);
    let error = read(&text, []).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "the file is larger than 1024 KiB");
}

#[test]
fn variables_that_are_not_what_they_should_be_are_named() {
    let start = |bind: Option<&str>, env| Start {
        bind: bind.map(str::to_owned),
        env,
        dir: "/d".into(),
        config: None,
    };
    let said = |bind, env| load(&start(bind, env)).unwrap_err().to_string();
    assert_eq!(
        said(Some("a b"), Env::from([("GATEWAY_PORT", "http")])),
        "error: GATEWAY_PORT: the variable does not hold a port\n  help: set it to 0 to 65535\n\
         error: --bind: \"a b\" is not an address\n  help: write HOST:PORT, HOST or :PORT"
    );
}

/// Any value under any key, or any nested keys.
fn yaml() -> impl Strategy<Value = String> {
    let words = "(channels|telegram|models|gateway|port|database|use|type|session|users|tools|enabled|name|\\$A|\\$\\{|[a-z0-9.@-]{0,6})";
    let leaf =
        prop_oneof![words.prop_map(|word| format!("\"{word}\"")), "(true|~|-?[0-9]{1,30}|1e9|\\[\\]|\\{\\})"];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((words, inner), 0..5).prop_map(|pairs| {
                let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
                format!("{{{}}}", pairs.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_shape_of_a_file_makes_it_panic(text in yaml()) {
        let (root, _) = raw::parse(text.as_bytes());
        if let Some(root) = root {
            let start = Start { env: Env::from([("A", "1")]), ..Start::default() };
            let _ = understand(&root, &start);
        }
    }
}

#[test]
fn a_misspelt_account_is_told_with_what_was_probably_meant() {
    let said = said("channels: {slak: {bot_token: x}}\n", []);
    println!("{said}");
    assert!(said.contains("did you mean `slack`? Or add `type: slack`"), "{said}");
    assert_eq!(said.matches("channels.slak").count(), 1, "{said}");
}

#[test]
fn an_account_without_a_platform_and_an_approval_of_no_tool_are_told() {
    let support = said("channels: {support: {bot_token: x}}\n", []);
    assert!(support.contains("error: channels.support") && support.contains("type: telegram"), "{support}");
    let check = |name: &str, near: &str| {
        let said = said(&format!("approvals: {{tools: [{name}]}}\n"), []);
        let told = said.contains("error: approvals.tools") && said.contains("did you mean");
        assert_eq!(told, !near.is_empty(), "{said}");
        assert!(near.is_empty() || said.contains(&format!("`{near}`")), "{said}");
    };
    check("Bash", "bash");
    check("write-file", "write_file");
    check("bash", "");
    check("demo_shout", "");
    check("update-agent", "update_agent");
    check("web_serch", "web_search");
    check("jira_search", "");
    check("edit_file", "");
}

#[test]
fn a_misspelt_key_of_what_is_kept_or_approved_stops_the_start() {
    let check = |text: &str, expect: &str| {
        let said = said(text, []);
        assert!(said.contains(expect), "{text}: {said}");
    };
    check(
        "retention: {threads_max_age_day: 1}\n",
        "error: retention.threads_max_age_day: pudu does not know this key\n  help: did you mean `threads_max_age_days`?",
    );
    check("retention: {keep: all}\n", "error: retention.keep: ");
    check("channels: {retention: {threads_max_age_days: 1}}\n", "error: channels.retention: ");
    check(
        "tools: [{use: 'deerflow.sandbox.tools:bash_tool', aproval: required}]\n",
        "error: tools[0].aproval: ",
    );
    check("retentions: {threads_max_age_days: 1}\n", "error: retentions: ");
    check("channels: {retention: {}, telegram: {bot_token: t}}\n", "error: channels.retention: ");
    check(
        "channels: {telegram: {bot_token: t, retention: {files: 1}}}\n",
        "error: channels.telegram.retention.files: ",
    );
    check(
        "approval: {tools: [bash]}\n",
        "error: approval: pudu does not know this key\n  help: did you mean `approvals`?",
    );
    check("approvals: {tool: [bash]}\n", "error: approvals.tool: ");
}

#[test]
fn memory_that_cannot_be_kept_so_is_refused() {
    let check = |text: &str, words: &[&str]| {
        let said = said(text, []);
        words.iter().for_each(|word| assert!(said.contains(word), "{text}: {said}"));
    };
    for manager in ["mem0", "honcho", "openviking", "my.package:Memory"] {
        let text = format!("memory: {{manager_class: \"{manager}\"}}\n");
        check(&text, &["error: memory.manager_class", "one of deermem, noop"]);
    }
    check("memory: {mode: both}\n", &["error: memory.mode", "one of middleware, tool"]);
    check("memory: {shutdown_flush_timeout_seconds: 0}\n", &["error: memory.shutdown_flush_timeout_seconds"]);
    check(
        "memory: {backend_config: {queue_max_depth: -1}}\n",
        &["error: memory.backend_config.queue_max_depth"],
    );
    check("retention: {memory_facts_max_age_days: -1}\n", &["error: retention.memory_facts_max_age_days"]);
    check(
        "channels: {telegram: {bot_token: t, retention: {memory_facts_max_age_days: 3}}}\n",
        &["error: channels.telegram.retention.memory_facts_max_age_days"],
    );
}

#[test]
fn a_sandbox_that_cannot_be_made_so_is_refused_with_the_place() {
    let check = |text: &str, words: &[&str]| {
        let said = said(&format!("sandbox: {text}\n"), []);
        words.iter().for_each(|word| assert!(said.contains(word), "{text}: {said}"));
    };
    // CVE-2026-32038: the network of sandboxes is a choice of three, not a name handed on.
    check("{network: container:x}", &["error: sandbox.network", "one of none, proxy, full"]);
    check("{network: proxy}", &["warning: sandbox.network", "name them in allowed_domains"]);
    check("{allowed_domains: [a.org]}", &["warning: sandbox.allowed_domains", "set `network: proxy`"]);
    check(
        "{network: proxy, allowed_domains: [\"http://a.org\"]}",
        &["error: sandbox.allowed_domains", "is no domain"],
    );
    check("{network: proxy, allowed_domains: [10.0.0.1, 7]}", &["10.0.0.1", "not the number 7"]);
    check("{environment: {LD_PRELOAD: /x}}", &["error: sandbox.environment", "LD_PRELOAD"]);
    check("{environment: {\"a=b\": c}}", &["error: sandbox.environment", "letters, digits"]);
    check("{mounts: [{host_path: /srv}]}", &["error: sandbox.mounts[0].container_path", "missing"]);
    check("{mounts: [{host_path: /srv, container_path: /etc}]}", &["/etc is taken", "for example /mnt/data"]);
    check("{mounts: [{host_path: srv, container_path: /mnt/a}]}", &["srv is not an absolute path"]);
    check("{memory_limit: 1}", &["error: sandbox.memory_limit"]);
    for key in ["docker_host: \"unix:///a\"", "image: a", "provisioner_url: \"http://a\""] {
        check(&format!("{{{key}}}"), &["warning: sandbox.", "no effect", "AioSandboxProvider"]);
    }
    check(
        "{kubernetes: {home: claim a}}",
        &["warning: sandbox.kubernetes", "pudu.sandbox:KubernetesProvider"],
    );
    let aio = "use: \"deerflow.community.aio_sandbox:AioSandboxProvider\"";
    let with = |more: &str| format!("{{{aio}, {more}}}");
    check(&with("network: proxy"), &["error: sandbox.network", "set `network: none` or `network: full`"]);
    check(&with("network: none"), &["error: sandbox.network", "set `network: full`", "api: exec"]);
    check(&with("docker_host: ssh://box"), &["error: sandbox.docker_host", "unix:///path/of/the/socket"]);
    check(&with("container_prefix: /x"), &["error: sandbox.container_prefix", "letters, digits"]);
    check(&with("api: grpc"), &["error: sandbox.api", "one of aio, exec"]);
    check(&with("replicas: 0"), &["error: sandbox.replicas"]);
}

#[test]
fn sandboxes_elsewhere_that_cannot_be_made_so_are_refused_with_the_place() {
    let check = |text: &str, words: &[&str]| {
        let said = said(&format!("sandbox: {text}\n"), []);
        words.iter().for_each(|word| assert!(said.contains(word), "{text}: {said}"));
    };
    let aio = |rest: &str| format!("{{use: \"deerflow.community.aio_sandbox:AioSandboxProvider\"{rest}}}");
    check(&aio(", provisioner_url: nowhere"), &["error: sandbox.provisioner_url", "https://"]);
    check(&aio(", provisioner_url: \"http://a:b@c\""), &["ends up in logs", "provisioner_api_key"]);
    let gone = aio(", provisioner_url: \"http://c\", provisioner_api_key: $GONE");
    check(&gone, &["provisioner_api_key", "GONE"]);
    check(&aio(", provisioner_url: \"http://c\", network: none"), &["warning: sandbox.network", "decides"]);
    let pods = |rest: &str| format!("{{use: \"pudu.sandbox:KubernetesProvider\"{rest}}}");
    check(&pods(""), &["error: sandbox.kubernetes", "home: claim NAME", "home: host PATH"]);
    for home in ["a", "claim", "claim a/b", "host a", "pod a"] {
        check(
            &pods(&format!(", kubernetes: {{home: {home}}}")),
            &["error: sandbox.kubernetes.home", "neither"],
        );
    }
    check(&pods(", kubernetes: {home: claim a, run_as: 0}"), &["error: sandbox.kubernetes.run_as"]);
    check(
        &pods(", kubernetes: {home: claim a}, container_prefix: A_b"),
        &["sandbox.container_prefix", "small letters"],
    );
    let proxy = ", kubernetes: {home: claim a}, network: proxy, allowed_domains: [a.org]";
    if cfg!(feature = "kubernetes") {
        check(&pods(proxy), &["error: sandbox.network", "Pods have no proxy"]);
    }
}

#[test]
fn what_long_results_and_approvals_cannot_be_is_told() {
    check(
        "tools:\n  - {use: 'deerflow.sandbox.tools:ls_tool', approval: perhaps}\n\
         tool_output:\n  storage_subdir: ../out\n  tool_overrides: {bash: many, ls: -1}\n  \
         externalize_min_chars: 100\n",
        "
config.yaml:3:55: error: tools[0].approval: found \"perhaps\", expected one of required
config.yaml:5:19: error: tool_output.storage_subdir: this is no plain folder below the outputs
  help: name a folder below a thread's outputs, such as .tool-results
config.yaml:6:19: error: tool_output.tool_overrides: bash has text, expected whole number, 0 to 10000000
  help: write `tool: characters`; 0 keeps no result of it
config.yaml:6:19: error: tool_output.tool_overrides: ls has -1, expected whole number, 0 to 10000000
  help: write `tool: characters`; 0 keeps no result of it
config.yaml:7:26: warning: tool_output.externalize_min_chars: what is shown of a long result, 3000, is more than this
  help: make the head or the tail smaller, or this larger",
    );
}

/// DeerFlow's example with each protecting section switched on, one by one.
#[test]
fn what_protects_is_obeyed_or_stops_the_start_and_is_never_noted() {
    let refused = |text: &str, key: &str| {
        let said = said(text, []);
        assert!(said.contains(&format!("error: {key}: ")), "{text}: {said}");
        assert!(!said.contains("not used"), "{text}: {said}");
    };
    let provider =
        "provider: {use: 'deerflow.guardrails.builtin:AllowlistProvider', config: {denied_tools: [bash]}}";
    refused(&format!("guardrails: {{{provider}}}\n"), "guardrails");
    refused("guardrails: {denied_tools: [bash]}\n", "guardrails");
    refused("guardrails: {enabled: 'yes'}\n", "guardrails.provider.use");
    refused("guardrails: {enabled: [on]}\n", "guardrails.enabled");
    refused("authorization: {enabled: true, default_role: user}\n", "authorization.enabled");
    refused("authorization: {default_role: guest}\n", "authorization");
    refused("channel_connections: {enabled: true}\n", "channel_connections.enabled");
    let bound = "channel_connections.require_bound_identity";
    refused("channel_connections: {enabled: true, require_bound_identity: true}\n", bound);
    refused("channel_connections: {require_bound_identity: true}\n", bound);
    refused("auth: {oidc: {enabled: true, providers: {}}}\n", "auth.oidc.providers");
    refused("extensions: {middlewares: ['team.parts:Guard']}\n", "extensions.middlewares");
    refused(
        "safety_finish_reason: {detectors: [{use: 'team.parts:Own'}]}\n",
        "safety_finish_reason.detectors",
    );
    let obeyed = |text: &str| assert_eq!(said(text, []), "", "{text}");
    obeyed(
        "loop_detection: {enabled: true}\nread_before_write: {enabled: true}\nskill_scan: {enabled: true}\n",
    );
    obeyed("safety_finish_reason: {enabled: true, detectors: null}\nsubagents: {max_total_per_run: 6}\n");
    obeyed("uploads: {auto_convert_documents: false}\nagents_api: {enabled: false}\n");
    obeyed(
        "auth: {local: {allow_registration: false}}\nllm_call: {max_concurrent_calls: 4, retry_max_attempts: 2}\n",
    );
    obeyed("guardrails: {enabled: false, fail_closed: true}\nauthorization: {enabled: false}\n");
    obeyed(&format!("guardrails: {{enabled: true, {provider}}}\n"));
    obeyed(
        "channel_connections: {enabled: true, require_bound_identity: false, telegram: {enabled: false}}\n",
    );
    obeyed("channel_connections: {enabled: false, require_bound_identity: true}\n");
    obeyed("token_budget: {enabled: false, max_tokens: 1}\nsubagents: {token_budget: {enabled: false}}\n");
    obeyed("token_budget: {enabled: true, max_tokens: 200000}\nsubagents: {token_budget: {max_tokens: 1}}\n");
    let kept = said("read_before_write: {enabled: false}\n", []);
    assert!(
        kept.contains("warning: read_before_write.enabled: a file is read before it is changed"),
        "{kept}"
    );
}

#[test]
fn a_key_in_the_wrong_place_is_told_where_it_belongs_and_one_that_closes_a_door_is_an_error() {
    let told = |text: &str, expect: &str| {
        let said = said(text, []);
        assert!(said.contains(expect), "{text}: {said}");
    };
    told(
        "channels: {telegram: {token: x}}\n",
        "warning: channels.telegram.token: pudu does not know this key\n  help: did you mean `bot_token`?",
    );
    told(
        "channels: {telegram: {token: x}}\n",
        "2:12: warning: channels.telegram: this account is off: no `bot_token`",
    );
    told(
        "channels: {slack: }\n",
        "warning: channels.slack: this account is off: no `bot_token`, no `app_token`",
    );
    told("channels: {slack: {token: x}}\n", "did you mean `app_token` or `bot_token`?");
    told("bot_token: x\n", "did you mean `channels.telegram.bot_token` or `channels.slack.bot_token` or");
    told(
        "channels: {bot_token: x, telegram: {}}\n",
        "channels.bot_token: pudu does not know this key\n  help: did you mean `channels.telegram.bot_token`?",
    );
    told(
        "port: 80\n",
        "error: port: pudu does not know this key\n  help: did you mean `gateway.port` or `sandbox.port`?",
    );
    told(
        "channels: {allowed_users: [1], telegram: {bot_token: t}}\n",
        "error: channels.allowed_users: pudu does not know this key\n  help: did you mean `channels.telegram.allowed_users`?",
    );
    told(
        "allowed_users: [1]\n",
        "error: allowed_users: pudu does not know this key\n  help: did you mean `channels.ACCOUNT.allowed_users`?",
    );
    told(
        "channels: {allow_users: [1], telegram: {bot_token: t}}\n",
        "error: channels.allow_users: pudu does not know this key\n  help: did you mean `channels.telegram.allowed_users`?",
    );
    let accounts: String =
        ["a", "b", "c", "d"].map(|name| format!("{name}: {{type: telegram, bot_token: t}}, ")).concat();
    told(
        &format!("channels: {{allowed_users: [1], {accounts}}}\n"),
        "error: channels.allowed_users: pudu does not know this key\n  help: did you mean `channels.a.allowed_users` or",
    );
    told(
        "channels: {telegram: {bot_token: t, allow_users: [1]}}\n",
        "error: channels.telegram.allow_users: ",
    );
    for fine in [
        "channels: {telegram: {enabled: false}}\n",
        "channels: {telegram: {bot_token: t}}\n",
        "channels: {}\n",
    ] {
        assert_eq!(said(fine, []), "", "{fine}");
    }
}

#[test]
fn a_name_in_the_place_of_a_model_and_a_host_that_is_none_are_told_with_the_mend() {
    check(
        "models: [gpt-5]\n",
        "
config.yaml:2:10: error: models[0]: found text, expected a mapping
  help: write `- {name: gpt-5, model: gpt-5}`, and `use:` where it is not OpenAI's",
    );
    for host in ["bad host", "127.0.0.1:8001", "http://localhost", "[::1]"] {
        let said = said(&format!("gateway: {{host: \"{host}\"}}\n"), []);
        let expect = format!(
            "config.yaml:2:17: error: gateway.host: \"{host}\" is no name and no address of a machine"
        );
        assert!(said.starts_with(&expect) && !said.contains("warning"), "{said}");
    }
    assert_eq!(said("gateway: {host: \"::1\"}\n", []), "");
}

#[test]
fn a_summary_that_cannot_be_made_as_it_is_said_is_refused_with_its_place() {
    for (text, expect) in [
        ("{model_name: gpt}", "error: summarization.model_name: there is no model gpt"),
        ("{trigger: {type: tokens}}", "error: summarization.trigger: it says no `value`"),
        ("{trigger: [{value: 3}]}", "error: summarization.trigger[0]: it says no `type`"),
        (
            "{trigger: {type: fraction, value: 80}}",
            "error: summarization.trigger.value: 80 is no share of a window",
        ),
        ("{keep: {type: messages, value: 0.5}}", "error: summarization.keep.value: 0.5 is no count"),
        (
            "{trim_tokens_to_summarize: 4000}",
            "warning: summarization.trim_tokens_to_summarize: this has no effect",
        ),
        (
            "{trigger: {type: messages, value: 10}, keep: {type: messages, value: 10}}",
            "warning: summarization.keep: as much stays as triggers a summary",
        ),
    ] {
        let problems = said(&format!("summarization: {text}\n"), []);
        assert!(problems.contains(expect), "{text} says {problems}");
    }
    assert_eq!(
        said("summarization: {trim_tokens_to_summarize: null, model_name: null, trigger: null}\n", []),
        ""
    );
}

#[test]
fn the_one_file_of_memory_that_older_files_name_is_passed_over() {
    let old = said("memory: {storage_path: memory.json}\n", []);
    assert!(old.contains("passed over"), "{old}");
    good("memory: {storage_path: memory.json}\n", []);
    let elsewhere = said("memory: {storage_path: /srv/memory}\n", []);
    assert!(elsewhere.contains("nowhere else than in its home"), "{elsewhere}");
    assert!(read("memory: {storage_path: /srv/memory}\n", []).is_err());
}
