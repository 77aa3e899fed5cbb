//! Messages about invalid files.

use super::*;
use proptest::prelude::*;

/// Compares the messages about a file whose text begins in line 2, because line 1 is the version.
fn check(text: &str, expected: &str) {
    assert_eq!(messages(text, []), expected.trim_start(), "{text}");
}

#[test]
fn an_unknown_time_zone_is_refused() {
    check(
        "channels: {timezone: Mars/Olympus}\n",
        "
config.yaml:2:22: error: channels.timezone: found \"Mars/Olympus\", expected time zone
  help: write a time zone of this machine, such as Europe/Berlin, or an offset: +02:00",
    );
}

#[test]
fn a_language_without_a_catalogue_is_refused() {
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
fn all_errors_are_reported_at_once_with_positions_and_fixes() {
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
config.yaml:4:9: error: gateway.port: found the number 70000, expected a whole number from 0 to 65535
config.yaml:8:17: error: database.postgres_url: the environment variable NO_SUCH is not set
  help: set NO_SUCH, or add NO_SUCH=… to the file .env beside this one
config.yaml:11:12: error: models[0].model: found the number 4, expected text
  help: put it in quotes
config.yaml:12:14: error: models[0].api_key: found a list, expected secret
config.yaml:13:15: error: models[0].base_url: found \"example.com\", expected URL
  help: begin it with https:// or http://
config.yaml:14:18: error: models[0].temperature: found \"hot\", expected a number from 0 to 2
config.yaml:15:10: error: sandbox: found text, expected a mapping
  help: write `key: value` lines with the same indentation
config.yaml:18:3: error: uploads.max_files: duplicate key; first used on line 17
  help: remove one of the two
config.yaml:5:3: warning: gateway.hots: unknown key
  help: did you mean `host`?",
    );
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_known_one() {
    check(
        "chanels: {}\nchannels:\n  telegram:\n    enabled: false\n    bot_tokn: x\n  webex: 1\nfavourite: x\n",
        "
config.yaml:2:1: error: chanels: unknown key
  help: did you mean `channels`?
config.yaml:6:5: warning: channels.telegram.bot_tokn: unknown key
  help: did you mean `bot_token`?
config.yaml:7:3: warning: channels.webex: unknown key
  help: remove it; docs/configuration.md lists the known keys
config.yaml:8:1: warning: favourite: unknown key
  help: remove it; docs/configuration.md lists the known keys",
    );
}

#[test]
fn keys_without_effect_are_reported_in_one_line() {
    check(
        "stream_bridge: {enabled: true, anything: [1]}\nmcp_tasks: {}\nscheduler: {lease_seconds: 9, multi_instance: true}\nsummarization:\nsandbox: {replicas: 3}\n\
         channels: {telegram: {enabled: false, rich_messages: true}}\n",
        "config.yaml: note: not used by this version: channels.telegram.rich_messages, mcp_tasks, scheduler.lease_seconds, scheduler.multi_instance, stream_bridge",
    );
}

#[test]
fn a_missing_variable_is_an_error_only_if_it_is_needed() {
    check(
        "channels:\n  telegram: {enabled: false, bot_token: $NONE}\n  slack: {enabled: false, bot_token: $NONE}\n\
         database: {backend: sqlite, postgres_url: $NONE}\nmcp_tasks: {key: $NONE}\n\
         tools: [{name: web_search, use: deerflow.community.infoquest.tools:web_search_tool, api_key: $NONE}]\n",
        "
config.yaml:7:33: warning: tools[0].use: this version does not have this tool; it is ignored
  help: no action is needed; the agent works without it
config.yaml: note: not used by this version: mcp_tasks",
    );
    check(
        "channels:\n  telegram: {bot_token: \"${NONE}\", session: {context: {deep: [{er: $NONE}]}}}\n",
        "
config.yaml:3:25: error: channels.telegram.bot_token: the environment variable NONE is not set
  help: set NONE, or add NONE=… to the file .env beside this one
config.yaml:3:68: error: channels.telegram.session.context.deep.er: the environment variable NONE is not set
  help: set NONE, or add NONE=… to the file .env beside this one
config.yaml: note: not used by this version: channels.telegram.session.context",
    );
}

#[test]
fn values_of_variables_are_never_shown() {
    let text = "gateway: {port: $PORT, token: $EMPTY}\nchannels: {telegram: {bot_token: $EMPTY, allowed_users: $USERS}}\n";
    let expected = "
config.yaml:2:17: error: gateway.port: found something else in the variable $PORT, expected a whole number from 0 to 65535
config.yaml:3:34: error: channels.telegram.bot_token: this is missing or empty
  help: get one from @BotFather, or set `enabled: false`
config.yaml:3:57: error: channels.telegram.allowed_users: found something else in the variable $USERS, expected a list of numeric ids
  help: write ids: a name can change hands, and its next owner would be admitted";
    assert_eq!(messages(text, [("PORT", "hush"), ("EMPTY", ""), ("USERS", "hush")]), expected.trim_start());
}

#[test]
fn possible_secrets_are_never_shown() {
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
  help: write `key: value` lines with the same indentation
config.yaml:6:45: error: database.postgres_url: found a list, expected secret",
    );
}

#[test]
fn a_dollar_sign_begins_a_variable_unless_it_is_doubled() {
    check(
        "models: [{name: a, model: $5 off, api_key: k}]\n",
        "
config.yaml:2:27: error: models[0].model: a text that begins with `$` must be the name of a variable
  help: write $NAME or ${NAME}; for a literal dollar sign at the beginning write `$$`",
    );
    let loaded = good("models: [{name: $$5 off, model: a, api_key: k}]\n", []);
    assert_eq!(loaded.config.hot.models[0].settings.name, "$5 off");
}

#[test]
fn only_numeric_ids_are_allowed_users() {
    let help = "write ids: a name can change hands, and its next owner would be admitted";
    let group = "put a group's id in `allowed_chats`";
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
        let messages =
            messages(&format!("channels: {{telegram: {{bot_token: t, allowed_users: {typed}}}}}\n"), []);
        assert!(messages.ends_with(&expected), "{typed}: {messages}");
    }
}

#[test]
fn bots_cannot_have_reserved_names() {
    let reserved = [("local", 10, "the page and the terminal"), ("api", 8, "clients of the HTTP API")];
    for (name, at, owner) in reserved {
        let expected =
            format!("config.yaml:3:{at}: error: channels.{name}: this name is reserved for {owner}");
        let help = "help: rename the account, and set its platform in `type:`";
        check(&format!("channels:\n  {name}: {{type: telegram}}\n"), &format!("{expected}\n  {help}"));
    }
}

#[test]
fn a_bot_cannot_be_configured_twice() {
    let same = "{type: slack, bot_token: b, app_token: a}";
    check(
        &format!(
            "channels:\n  one: {same}\n  two: {same}\n  off: {{enabled: false, type: slack, bot_token: b, app_token: a}}\n"
        ),
        "
config.yaml:4:3: error: channels.two: this bot is already configured as `channels.one`
  help: remove one of the two, or use a separate bot for each",
    );
    good("channels:\n  one: {type: telegram, bot_token: b}\n  two: {type: discord, bot_token: b}\n", []);
}

#[test]
fn an_unsupported_class_is_refused_with_an_alternative() {
    let messages = messages(
        "sandbox: {use: deerflow.community.boxlite:BoxliteProvider}\n\
         models:\n  - {name: a, use: deerflow.models.openai_codex_provider:CodexChatModel}\n\
         \x20 - {name: b, use: langchain_openai:ChatOpenAi, model: b}\n\
         tools:\n  - {use: my_company.tools:lookup}\n",
        [],
    );
    let lines: Vec<_> = messages.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "config.yaml:2:16: error: sandbox.use: invalid entry \"deerflow.community.boxlite:BoxliteProvider\"",
            "  help: this version does not support this sandbox; use \
             deerflow.community.aio_sandbox:AioSandboxProvider for containers, \
             deerflow.sandbox.local:LocalSandboxProvider for this machine, or omit `use`",
            "config.yaml:4:20: error: models[0].use: invalid entry \
             \"deerflow.models.openai_codex_provider:CodexChatModel\"",
            "  help: it uses the login of a command line program, which pudu does not support; use \
             langchain_anthropic:ChatAnthropic or langchain_openai:ChatOpenAI with an API key",
            "config.yaml:5:20: error: models[1].use: unknown path \"langchain_openai:ChatOpenAi\"",
        ]
    );
    let start = "  help: did you mean langchain_openai:ChatOpenAI? known, nearest first: langchain_openai:ChatOpenAI, ";
    assert!(lines[5].starts_with(start), "{}", lines[5]);
    assert_eq!(lines[6], "config.yaml:7:11: error: tools[0].use: unknown path \"my_company.tools:lookup\"");
    assert_eq!(lines.len(), 8);
}

#[test]
fn every_key_of_a_bot_is_checked() {
    check(
        "channels:\n  one: {type: telegrm, bot_token: t}\n  two: {enabled: true, bot_token: t}\n  slack: {bot_token: a}\n\
         \x20 three: {type: telegram, bot_token: t, mode: webhook, webhook: {url: 'http://x.org/', secret_token: 'no way'}}\n\
         \x20 four: {type: telegram, bot_token: t, mode: webhook}\n",
        "
config.yaml:3:8: error: channels.one: unknown platform \"telegrm\"
  help: did you mean `type: telegram`?
config.yaml:4:8: error: channels.two: unknown platform \"two\"
  help: write `type:` with one of telegram, feishu, dingtalk, slack, discord
config.yaml:5:3: error: channels.slack.app_token: this is missing or empty
  help: an app-level token (xapp-) with connections:write, created at https://api.slack.com/apps, \"Basic Information\"
config.yaml:6:71: error: channels.three.webhook.url: Telegram delivers only to https:// addresses
  help: write the public https:// address that leads to pudu's gateway
config.yaml:6:102: error: channels.three.webhook.secret_token: Telegram does not accept this secret
  help: use 16 to 256 letters, digits, `_` or `-`, for example from `openssl rand -hex 32`
config.yaml:7:3: error: channels.four.webhook.url: this is missing or empty
  help: write the public https:// address that leads to pudu's gateway
config.yaml:7:3: error: channels.four.webhook.secret_token: this is missing or empty
  help: use 16 to 256 letters, digits, `_` or `-`, for example from `openssl rand -hex 32`",
    );
    check(
        "channels:\n  telegram: {bot_token: t, mode: webhook, webhook: {url: 'https://x.org/', secret_token: fifteen-letters}}\n",
        "
config.yaml:3:90: error: channels.telegram.webhook.secret_token: this can be guessed and then used to send messages as any user
  help: use 16 to 256 letters, digits, `_` or `-`, for example from `openssl rand -hex 32`",
    );
}

#[test]
fn models_need_unique_names_and_any_required_key() {
    check(
        "models:\n  - {name: a, model: b}\n  - {name: a, model: c, base_url: 'http://10.0.0.1/v1'}\n  - {model: z, use: langchain_ollama:ChatOllama}\n",
        "
config.yaml:3:5: error: models[0].api_key: there is no `api_key`, and OPENAI_API_KEY is not set
  help: set OPENAI_API_KEY, or write `api_key: $NAME` with another variable
config.yaml:4:12: error: models[1].name: two models are named \"a\"
  help: rename one; users choose a model by its name
config.yaml:5:5: error: models[2].name: this is missing or empty
  help: set the name by which users choose the model",
    );
}

#[test]
fn an_invalid_header_is_refused_without_its_value() {
    check(
        "models:\n  - name: a\n    model: b\n    api_key: k\n    default_headers: {'X Team': t}\n  - name: c\n    model: d\n    api_key: k\n    default_headers: {X-Token: \"a\\nb\"}\n",
        "
config.yaml:6:22: error: models[0].default_headers: the header \"X Team\" cannot be sent
  help: use plain letters, digits and punctuation in the name and the value
config.yaml:10:22: error: models[1].default_headers: the header \"X-Token\" cannot be sent
  help: use plain letters, digits and punctuation in the name and the value",
    );
}

#[test]
fn older_and_newer_files_get_a_warning() {
    let messages = |text| good(text, []).report.to_string();
    assert_eq!(messages("config_version: 34\n"), "");
    let upgrade = "  help: `pudu config upgrade` raises it without changing any value";
    assert_eq!(
        messages("config_version: 12\n"),
        format!(
            "config.yaml:1:17: warning: config_version: the file has config_version 12; this pudu uses 34\n{upgrade}"
        )
    );
    assert_eq!(messages("log_level: info\n"), "", "a file without a version is current");
    assert_eq!(
        messages("config_version: 35\n"),
        "config.yaml:1:17: warning: config_version: the file has config_version 35; this pudu supports up to 34\n  \
         help: newer keys have no effect"
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
fn invalid_variables_and_flags_are_named() {
    let start = |bind: Option<&str>, env| Start {
        bind: bind.map(str::to_owned),
        env,
        dir: "/d".into(),
        config: None,
    };
    let messages = |bind, env| load(&start(bind, env)).unwrap_err().to_string();
    assert_eq!(
        messages(Some("a b"), Env::from([("GATEWAY_PORT", "http")])),
        "error: GATEWAY_PORT: the value is not a port\n  help: set it to 0 to 65535\n\
         error: --bind: \"a b\" is not an address\n  help: write HOST:PORT, HOST or :PORT"
    );
}

/// Any values and nested keys, known and unknown.
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
    fn no_file_causes_a_panic(text in yaml()) {
        let (root, _) = raw::parse(text.as_bytes());
        if let Some(root) = root {
            let start = Start { env: Env::from([("A", "1")]), ..Start::default() };
            let _ = understand(&root, &start);
        }
    }
}

#[test]
fn a_misspelt_bot_is_reported_with_a_suggestion() {
    let messages = messages("channels: {slak: {bot_token: x}}\n", []);
    println!("{messages}");
    assert!(messages.contains("did you mean `slack`? Or add `type: slack`"), "{messages}");
    assert_eq!(messages.matches("channels.slak").count(), 1, "{messages}");
}

#[test]
fn a_bot_without_a_platform_and_a_misspelt_tool_are_reported() {
    let support = messages("channels: {support: {bot_token: x}}\n", []);
    assert!(support.contains("error: channels.support") && support.contains("type: telegram"), "{support}");
    let check = |name: &str, near: &str| {
        let messages = messages(&format!("approvals: {{tools: [{name}]}}\n"), []);
        let is_reported = messages.contains("error: approvals.tools") && messages.contains("did you mean");
        assert_eq!(is_reported, !near.is_empty(), "{messages}");
        assert!(near.is_empty() || messages.contains(&format!("`{near}`")), "{messages}");
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
fn a_misspelt_key_of_retention_or_approvals_prevents_the_start() {
    let check = |text: &str, expect: &str| {
        let messages = messages(text, []);
        assert!(messages.contains(expect), "{text}: {messages}");
    };
    check(
        "retention: {threads_max_age_day: 1}\n",
        "error: retention.threads_max_age_day: unknown key\n  help: did you mean `threads_max_age_days`?",
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
    check("approval: {tools: [bash]}\n", "error: approval: unknown key\n  help: did you mean `approvals`?");
    check("approvals: {tool: [bash]}\n", "error: approvals.tool: ");
}

#[test]
fn unsupported_memory_settings_are_refused() {
    let check = |text: &str, words: &[&str]| {
        let messages = messages(text, []);
        words.iter().for_each(|word| assert!(messages.contains(word), "{text}: {messages}"));
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
fn invalid_sandbox_settings_are_refused_with_their_position() {
    let check = |text: &str, words: &[&str]| {
        let messages = messages(&format!("sandbox: {text}\n"), []);
        words.iter().for_each(|word| assert!(messages.contains(word), "{text}: {messages}"));
    };
    // CVE-2026-32038: the network of a sandbox is one of three modes, not a name that is passed on.
    check("{network: container:x}", &["error: sandbox.network", "one of none, proxy, full"]);
    check("{network: proxy}", &["warning: sandbox.network", "add them to allowed_domains"]);
    check("{allowed_domains: [a.org]}", &["warning: sandbox.allowed_domains", "set `network: proxy`"]);
    check(
        "{network: proxy, allowed_domains: [\"http://a.org\"]}",
        &["error: sandbox.allowed_domains", "is not a domain"],
    );
    check("{network: proxy, allowed_domains: [10.0.0.1, 7]}", &["10.0.0.1", "not the number 7"]);
    check("{environment: {LD_PRELOAD: /x}}", &["error: sandbox.environment", "LD_PRELOAD"]);
    check("{environment: {\"a=b\": c}}", &["error: sandbox.environment", "letters, digits"]);
    check("{mounts: [{host_path: /srv}]}", &["error: sandbox.mounts[0].container_path", "missing"]);
    check(
        "{mounts: [{host_path: /srv, container_path: /etc}]}",
        &["/etc is reserved", "for example /mnt/data"],
    );
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
fn invalid_remote_sandbox_settings_are_refused_with_their_position() {
    let check = |text: &str, words: &[&str]| {
        let messages = messages(&format!("sandbox: {text}\n"), []);
        words.iter().for_each(|word| assert!(messages.contains(word), "{text}: {messages}"));
    };
    let aio = |rest: &str| format!("{{use: \"deerflow.community.aio_sandbox:AioSandboxProvider\"{rest}}}");
    check(&aio(", provisioner_url: nowhere"), &["error: sandbox.provisioner_url", "https://"]);
    check(&aio(", provisioner_url: \"http://a:b@c\""), &["appears in logs", "provisioner_api_key"]);
    let gone = aio(", provisioner_url: \"http://c\", provisioner_api_key: $GONE");
    check(&gone, &["provisioner_api_key", "GONE"]);
    check(&aio(", provisioner_url: \"http://c\", network: none"), &["warning: sandbox.network", "controls"]);
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
        &["sandbox.container_prefix", "lower-case letters"],
    );
    let proxy = ", kubernetes: {home: claim a}, network: proxy, allowed_domains: [a.org]";
    if cfg!(feature = "kubernetes") {
        check(&pods(proxy), &["error: sandbox.network", "Pods do not support the proxy"]);
    }
}

#[test]
fn invalid_settings_of_results_and_approvals_are_reported() {
    check(
        "tools:\n  - {use: 'deerflow.sandbox.tools:ls_tool', approval: perhaps}\n\
         tool_output:\n  storage_subdir: ../out\n  tool_overrides: {bash: many, ls: -1}\n  \
         externalize_min_chars: 100\n",
        "
config.yaml:3:55: error: tools[0].approval: found \"perhaps\", expected one of required
config.yaml:5:19: error: tool_output.storage_subdir: this is not a plain folder below the outputs
  help: use a folder below a thread's outputs, such as .tool-results
config.yaml:6:19: error: tool_output.tool_overrides: found text for bash, expected a whole number from 0 to 10000000
  help: write `tool: characters`; 0 stores no result
config.yaml:6:19: error: tool_output.tool_overrides: found -1 for ls, expected a whole number from 0 to 10000000
  help: write `tool: characters`; 0 stores no result
config.yaml:7:26: warning: tool_output.externalize_min_chars: the shown part of a long result, 3000, is longer than this
  help: decrease the head or the tail, or increase this",
    );
}

/// The sections of DeerFlow that protect users, each in several settings.
#[test]
fn protecting_sections_are_enforced_or_prevent_the_start() {
    let check_refused = |text: &str, key: &str| {
        let messages = messages(text, []);
        assert!(messages.contains(&format!("error: {key}: ")), "{text}: {messages}");
        assert!(!messages.contains("not used"), "{text}: {messages}");
    };
    let provider =
        "provider: {use: 'deerflow.guardrails.builtin:AllowlistProvider', config: {denied_tools: [bash]}}";
    check_refused(&format!("guardrails: {{{provider}}}\n"), "guardrails");
    check_refused("guardrails: {denied_tools: [bash]}\n", "guardrails");
    check_refused("guardrails: {enabled: 'yes'}\n", "guardrails.provider.use");
    check_refused("guardrails: {enabled: [on]}\n", "guardrails.enabled");
    check_refused("authorization: {enabled: true, default_role: user}\n", "authorization.enabled");
    check_refused("authorization: {default_role: guest}\n", "authorization");
    check_refused("channel_connections: {enabled: true}\n", "channel_connections.enabled");
    let bound = "channel_connections.require_bound_identity";
    check_refused("channel_connections: {enabled: true, require_bound_identity: true}\n", bound);
    check_refused("channel_connections: {require_bound_identity: true}\n", bound);
    check_refused("auth: {oidc: {enabled: true, providers: {}}}\n", "auth.oidc.providers");
    check_refused("extensions: {middlewares: ['team.parts:Guard']}\n", "extensions.middlewares");
    check_refused(
        "safety_finish_reason: {detectors: [{use: 'team.parts:Own'}]}\n",
        "safety_finish_reason.detectors",
    );
    let check_accepted = |text: &str| assert_eq!(messages(text, []), "", "{text}");
    check_accepted(
        "loop_detection: {enabled: true}\nread_before_write: {enabled: true}\nskill_scan: {enabled: true}\n",
    );
    check_accepted(
        "safety_finish_reason: {enabled: true, detectors: null}\nsubagents: {max_total_per_run: 6}\n",
    );
    check_accepted("uploads: {auto_convert_documents: false}\nagents_api: {enabled: false}\n");
    check_accepted(
        "auth: {local: {allow_registration: false}}\nllm_call: {max_concurrent_calls: 4, retry_max_attempts: 2}\n",
    );
    check_accepted("guardrails: {enabled: false, fail_closed: true}\nauthorization: {enabled: false}\n");
    check_accepted(&format!("guardrails: {{enabled: true, {provider}}}\n"));
    check_accepted("channel_connections: {enabled: true, require_bound_identity: false}\n");
    check_accepted("channel_connections: {enabled: false, require_bound_identity: true}\n");
    check_accepted(
        "token_budget: {enabled: false, max_tokens: 1}\nsubagents: {token_budget: {enabled: false}}\n",
    );
    check_accepted(
        "token_budget: {enabled: true, max_tokens: 200000}\nsubagents: {token_budget: {max_tokens: 1}}\n",
    );
    let report = messages("read_before_write: {enabled: false}\n", []);
    assert!(
        report.contains("warning: read_before_write.enabled: pudu always reads a file before a change"),
        "{report}"
    );
}

#[test]
fn a_misplaced_key_is_reported_with_its_place_and_is_an_error_if_it_restricts_access() {
    let check_contains = |text: &str, expect: &str| {
        let messages = messages(text, []);
        assert!(messages.contains(expect), "{text}: {messages}");
    };
    check_contains(
        "channels: {telegram: {token: x}}\n",
        "warning: channels.telegram.token: unknown key\n  help: did you mean `bot_token`?",
    );
    check_contains(
        "channels: {telegram: {token: x}}\n",
        "2:12: warning: channels.telegram: this account is disabled: no `bot_token`",
    );
    check_contains(
        "channels: {slack: }\n",
        "warning: channels.slack: this account is disabled: no `bot_token`, no `app_token`",
    );
    check_contains("channels: {slack: {token: x}}\n", "did you mean `app_token` or `bot_token`?");
    check_contains(
        "bot_token: x\n",
        "did you mean `channels.telegram.bot_token` or `channels.slack.bot_token` or",
    );
    check_contains(
        "channels: {bot_token: x, telegram: {}}\n",
        "channels.bot_token: unknown key\n  help: did you mean `channels.telegram.bot_token`?",
    );
    check_contains(
        "port: 80\n",
        "error: port: unknown key\n  help: did you mean `gateway.port` or `sandbox.port`?",
    );
    check_contains(
        "channels: {allowed_users: [1], telegram: {bot_token: t}}\n",
        "error: channels.allowed_users: unknown key\n  help: did you mean `channels.telegram.allowed_users`?",
    );
    check_contains(
        "allowed_users: [1]\n",
        "error: allowed_users: unknown key\n  help: did you mean `channels.ACCOUNT.allowed_users`?",
    );
    check_contains(
        "channels: {allow_users: [1], telegram: {bot_token: t}}\n",
        "error: channels.allow_users: unknown key\n  help: did you mean `channels.telegram.allowed_users`?",
    );
    let accounts: String =
        ["a", "b", "c", "d"].map(|name| format!("{name}: {{type: telegram, bot_token: t}}, ")).concat();
    check_contains(
        &format!("channels: {{allowed_users: [1], {accounts}}}\n"),
        "error: channels.allowed_users: unknown key\n  help: did you mean `channels.a.allowed_users` or",
    );
    check_contains(
        "channels: {telegram: {bot_token: t, allow_users: [1]}}\n",
        "error: channels.telegram.allow_users: ",
    );
    for fine in [
        "channels: {telegram: {enabled: false}}\n",
        "channels: {telegram: {bot_token: t}}\n",
        "channels: {}\n",
    ] {
        assert_eq!(messages(fine, []), "", "{fine}");
    }
}

#[test]
fn a_bare_model_name_and_an_invalid_host_are_refused_with_a_fix() {
    check(
        "models: [gpt-5]\n",
        "
config.yaml:2:10: error: models[0]: found text, expected a mapping
  help: write `- {name: gpt-5, model: gpt-5}`, and `use:` for a provider other than OpenAI",
    );
    for host in ["bad host", "127.0.0.1:8001", "http://localhost", "[::1]"] {
        let messages = messages(&format!("gateway: {{host: \"{host}\"}}\n"), []);
        let expect =
            format!("config.yaml:2:17: error: gateway.host: \"{host}\" is not a host name or an address");
        assert!(messages.starts_with(&expect) && !messages.contains("warning"), "{messages}");
    }
    assert_eq!(messages("gateway: {host: \"::1\"}\n", []), "");
}

#[test]
fn the_memory_file_of_older_configurations_is_ignored() {
    let old = messages("memory: {storage_path: memory.json}\n", []);
    assert!(old.contains("no longer in one file"), "{old}");
    good("memory: {storage_path: memory.json}\n", []);
    let elsewhere = messages("memory: {storage_path: /srv/memory}\n", []);
    assert!(elsewhere.contains("only in its home folder"), "{elsewhere}");
    assert!(read("memory: {storage_path: /srv/memory}\n", []).is_err());
}
