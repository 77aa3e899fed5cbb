//! Values that are read from a file.

use super::*;
use pudu_agent::{MemoryMode, MemoryRetention, egress::Domain};
use pudu_base::Network;
use pudu_containers::ExecMethod;
use pudu_harness::{CallFrequency, ContextRules, ContextSize, RestRules, ToolProgressRules};
use pudu_model::ModelSettings;
use pudu_sandbox::{CommandLimits, Mount};
use pudu_texts::Language;
use secrecy::ExposeSecret;
use serde_json::json;
use std::time::Duration;

#[test]
fn values_may_be_text_or_variables() {
    let text = "gateway: {host: \"${HOST}\", port: $PORT, token: $TOKEN}\n\
                sandbox: {allow_host_bash: $YES, bash_command_timeout: \"90.5\", ls_output_max_chars: 0}\n\
                uploads: {max_files: \"3\"}\nlog_level: WARNING\n";
    let env = [("HOST", "::1"), ("PORT", "9000"), ("TOKEN", "t"), ("YES", "on")];
    let Config { fixed, hot } = good(text, env).config;
    let GatewayConfig { host, port, token, .. } = fixed.gateway;
    assert_eq!((host.as_str(), port, token.unwrap().expose_secret()), ("::1", 9000, "t"));
    assert_eq!(fixed.log_level, LogLevel::Warn);
    assert_eq!(hot.uploads.max_files, 3);
    let expected = SandboxConfig {
        allow_host_bash: true,
        network: Network::None,
        allowed_domains: Vec::new(),
        environment: Vec::new(),
        mounts: Vec::new(),
        limits: CommandLimits::default(),
        keep: containers::Keep::default(),
        bash_output_max_chars: 20_000,
        read_file_output_max_chars: 50_000,
        ls_output_max_chars: 10_000_000,
        bash_command_timeout: Duration::from_millis(90_500),
    };
    assert_eq!(hot.sandbox, expected);
}

#[test]
fn containers_have_deerflows_settings_by_default() {
    let aio = "deerflow.community.aio_sandbox:AioSandboxProvider";
    let Config { fixed, hot } = good(&format!("sandbox: {{use: \"{aio}\"}}\n"), []).config;
    let expected = DockerConfig {
        host: "unix:///var/run/docker.sock".into(),
        certificates: None,
        image: "enterprise-public-cn-beijing.cr.volces.com/vefaas-public/all-in-one-sandbox:latest".into(),
        api: ExecMethod::Aio,
        port: None,
        bind: "127.0.0.1".into(),
        reach: "127.0.0.1".into(),
        prefix: "deer-flow-sandbox".into(),
        host_home: None,
    };
    assert_eq!(fixed.provider, SandboxBackend::Docker(expected));
    let sandbox = &hot.sandbox;
    assert_eq!(
        (sandbox.network, sandbox.limits.memory, sandbox.limits.processes),
        (Network::Full, 8 << 30, 4096)
    );
    let env = [
        ("DOCKER_HOST", "tcp://engine:2376"),
        ("DOCKER_TLS_VERIFY", "1"),
        ("DOCKER_CERT_PATH", "/certs"),
        ("DEER_FLOW_HOST_BASE_DIR", "/srv/deer"),
        ("DEER_FLOW_SANDBOX_HOST", "host.docker.internal"),
        ("IMAGE", "python:3.13"),
    ];
    let text = "sandbox: {use: \"src.community.aio_sandbox:AioSandboxProvider\", image: $IMAGE, port: 8080, cpus: 1.5, \
                idle_timeout: 0, replicas: 5, container_prefix: box}\n";
    let Config { fixed, hot } = good(text, env).config;
    let expected = DockerConfig {
        host: "tcp://engine:2376".into(),
        certificates: Some("/certs".into()),
        image: "python:3.13".into(),
        api: ExecMethod::Exec,
        port: Some(8080),
        bind: "0.0.0.0".into(),
        reach: "host.docker.internal".into(),
        prefix: "box".into(),
        host_home: Some("/srv/deer".into()),
    };
    assert_eq!(fixed.provider, SandboxBackend::Docker(expected));
    assert_eq!((hot.sandbox.network, hot.sandbox.limits), (Network::None, CommandLimits::default()));
    let keep = containers::Keep { idle_timeout: Duration::ZERO, replicas: 5, cpus: Some(1.5) };
    assert_eq!(hot.sandbox.keep, keep);
}

#[test]
fn network_folders_and_limits_of_a_sandbox_are_read() {
    let text = "sandbox:\n  network: proxy\n  allowed_domains: [pypi.org, \"*.example.org:8443\"]\n  \
                environment: {TZ: $ZONE, N: 5, EMPTY: null}\n  \
                mounts: [{host_path: /srv/a, container_path: /mnt/a/, read_only: true}, \
                {host_path: $PLACE, container_path: /opt/b}]\n  \
                memory_limit: 1073741824\n  process_limit: 64\n  disk_limit: 5000000\n";
    let sandbox = &good(text, [("ZONE", "UTC"), ("PLACE", "/srv/b")]).config.hot.sandbox;
    let pairs =
        [("EMPTY", ""), ("N", "5"), ("TZ", "UTC")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut environment = sandbox.environment.clone();
    environment.sort();
    assert_eq!((sandbox.network, environment), (Network::Proxy, pairs.to_vec()));
    let domains = ["pypi.org", "*.example.org:8443"].map(|name| Domain::parse(name).unwrap());
    assert_eq!(sandbox.allowed_domains, domains);
    let mounts = [
        Mount::configured("/srv/a".into(), "/mnt/a", true).unwrap(),
        Mount::configured("/srv/b".into(), "/opt/b", false).unwrap(),
    ];
    assert_eq!(sandbox.mounts, mounts);
    assert_eq!(sandbox.limits, CommandLimits { memory: 1 << 30, processes: 64, disk: 5_000_000 });
}

#[test]
fn the_bind_flag_overrides_the_environment_which_overrides_the_file() {
    let address = |bind: Option<&str>, env| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.yaml"), "gateway: {host: localhost, port: 1}\n").unwrap();
        let start = Start { bind: bind.map(str::to_owned), env, dir: dir.path().into(), config: None };
        let gateway = load(&start).unwrap().config.fixed.gateway;
        format!("{}:{}", gateway.host, gateway.port)
    };
    let env = || Env::from([("GATEWAY_HOST", "127.0.0.2"), ("GATEWAY_PORT", "2")]);
    assert_eq!(address(None, Env::default()), "localhost:1");
    assert_eq!(address(None, Env::from([("GATEWAY_PORT", "2")])), "localhost:2");
    assert_eq!(address(None, env()), "127.0.0.2:2");
    assert_eq!(address(Some(":3"), env()), "127.0.0.2:3");
    assert_eq!(address(Some("127.0.0.3:3"), env()), "127.0.0.3:3");
}

#[test]
fn a_dotenv_file_adds_variables() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".env"), "A=file\nB=file\nbroken\n").unwrap();
    std::fs::write(dir.path().join("c.yaml"), "config_version: 34\ngateway: {host: $A, token: $B}\n")
        .unwrap();
    let env = Env::from([("A", "real")]);
    let start = Start { config: Some("c.yaml".into()), env, dir: dir.path().into(), bind: None };
    let loaded = load(&start).unwrap();
    let gateway = loaded.config.fixed.gateway;
    assert_eq!((gateway.host.as_str(), gateway.token.unwrap().expose_secret()), ("real", "file"));
    let messages = loaded.report.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        messages,
        ["warning: .env: line 3: this line has no `=`\n  help: write NAME=value, each on its own line"]
    );
}

/// Returns the protocol of a model, the field for its thoughts, and its base URL.
fn wire(model: &ModelSettings) -> String {
    let thoughts = model.dialect.thoughts.unwrap_or("-");
    let needed = if model.dialect.needs_thoughts { "!" } else { "" };
    format!("{:?} {thoughts}{needed} {}", model.wire, model.base_url)
}

#[test]
fn a_model_has_the_dialect_and_settings_of_its_class() {
    let text = "
models:
  - name: thinker
    display_name: The thinker
    use: src.models.patched_deepseek:PatchedChatDeepSeek
    model: doubao
    api_base: https://ark.example.com/api/v3
    api_key: $KEY
    timeout: 30
    max_retries: 5
    max_tokens: 4096.0
    temperature: 1
    context_window: 1000
    supports_thinking: true
    top_p: 0.5
    reasoning_effort: high
    model_kwargs: {a: 1, b: 1}
    extra_body: {b: $KEY}
    default_headers: {X-Team: $KEY, X-N: 1}
    when_thinking_enabled: {extra_body: {x: 1}}
    thinking: {type: enabled}
    when_thinking_disabled: {thinking: {type: disabled}}
";
    let loaded = good(text, [("KEY", "k")]);
    let config = &loaded.config.hot.models[0];
    let model = &config.settings;
    let secrets: std::collections::BTreeMap<_, _> =
        model.headers.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(secrets, [("X-Team", "k"), ("X-N", "1")].into());
    assert_eq!(model.api_key.as_ref().unwrap().expose_secret(), "k");
    let shown = json!({
        "names": [&model.name, &config.display_name, &config.description, &model.model],
        "wire": wire(model),
        "supports": [model.thinking.supported, model.sees, model.thinking.takes_effort],
        "limits": [model.max_tokens.map(u64::from), Some(model.window), config.max_retries.map(u64::from)],
        "temperature": model.temperature,
        "times": [model.total.as_secs(), model.gap.as_secs()],
        "body": model.body,
        "on": model.thinking.enabled,
        "off": model.thinking.disabled,
    });
    let expected = json!({
        "names": ["thinker", "The thinker", "", "doubao"],
        "wire": "Chat reasoning_content! https://ark.example.com/api/v3",
        "supports": [true, false, false],
        "limits": [4096, 1000, 5],
        "temperature": 1.0,
        "times": [30, 240],
        "body": {"top_p": 0.5, "a": 1, "b": "k"},
        "on": {"extra_body": {"x": 1}, "thinking": {"type": "enabled"}},
        "off": {"thinking": {"type": "disabled"}},
    });
    assert_eq!(shown, expected);
}

#[test]
fn each_class_has_a_default_server_and_key_variable() {
    let cases = [
        ("langchain_openai:ChatOpenAI", "", "Chat - https://api.openai.com/v1 openai"),
        ("langchain_anthropic:ChatAnthropic", "", "Messages - https://api.anthropic.com/ anthropic"),
        ("langchain_anthropic:ChatAnthropic", "https://proxy.org", "Messages - https://proxy.org/ anthropic"),
        ("langchain_ollama:ChatOllama", "", "Ollama thinking http://127.0.0.1:11434/ -"),
        ("langchain_ollama:ChatOllama", "http://box:11434", "Ollama thinking http://box:11434/ -"),
        (
            "langchain_deepseek:ChatDeepSeek",
            "",
            "Chat reasoning_content! https://api.deepseek.com/v1 deepseek",
        ),
        (
            "langchain_google_genai:ChatGoogleGenerativeAI",
            "",
            "Gemini - https://generativelanguage.googleapis.com/ google",
        ),
        ("deerflow.models.vllm_provider:VllmChatModel", "", "Chat reasoning http://127.0.0.1:8000/v1 -"),
        (
            "deerflow.models.patched_openai:PatchedChatOpenAI",
            "https://g.org/v1",
            "Chat - https://g.org/v1 openai",
        ),
    ];
    let env = [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("DEEPSEEK_API_KEY", "deepseek"),
        ("GEMINI_API_KEY", ""),
        ("GOOGLE_API_KEY", "google"),
    ];
    for (class, base_url, expected) in cases {
        let text = format!("models: [{{name: a, model: m, use: {class}, base_url: '{base_url}'}}]\n");
        let loaded = good(&text, env);
        let model = &loaded.config.hot.models[0].settings;
        let key = model.api_key.as_ref().map_or("-", |key| key.expose_secret());
        assert_eq!(format!("{} {key}", wire(model)), expected, "{class}");
    }
}

#[test]
fn a_key_in_the_environment_replaces_a_configured_model() {
    let model = |env: Env| {
        let model = ModelConfig::from_env(&env)?.settings;
        Some(format!("{} {} {}", model.base_url, model.name, model.api_key.is_some()))
    };
    assert_eq!(model(Env::default()), None);
    assert_eq!(
        model(Env::from([("OPENAI_API_KEY", "k")])),
        Some("https://api.openai.com/v1 gpt-5-mini true".to_owned())
    );
    assert_eq!(
        model(Env::from([("ANTHROPIC_API_KEY", "k")])),
        Some("https://api.anthropic.com/ claude-sonnet-4-5 true".to_owned())
    );
    let ollama = ModelConfig::ollama("llama3").unwrap().settings;
    assert_eq!((ollama.name.as_str(), ollama.base_url.as_str()), ("llama3", "http://127.0.0.1:11434/"));
    assert_eq!(ollama.window, 32_768);
    let window = |keys: &str| {
        let text =
            format!("models:\n  - {{name: a, model: b, use: 'langchain_ollama:ChatOllama', {keys}}}\n");
        good(&text, []).config.hot.models[0].settings.window
    };
    assert_eq!(window("num_ctx: 8192"), 8_192);
    assert_eq!(window("num_ctx: 8192, context_window: 4096"), 4_096);
    assert_eq!(good("models:\n", [("OPENAI_API_KEY", "k")]).config.hot.models.len(), 1);
}

#[test]
fn either_section_selects_the_store() {
    let backend = |text: &str| {
        format!("{:?}", good(text, [("URL", "postgres://u:p@h/d")]).config.fixed.database.backend)
    };
    let cases = [
        ("", "Sqlite { dir: \"/d/.pudu/data\" }"),
        ("database: {sqlite_dir: deer/data}", "Sqlite { dir: \"/d/deer/data\" }"),
        ("database: {backend: memory}", "Memory"),
        ("database: {backend: postgres, postgres_url: $URL}", "Postgres { url: SecretBox<str>([REDACTED]) }"),
        ("checkpointer: {type: memory}", "Memory"),
        ("checkpointer: {type: sqlite, connection_string: /x/checkpoints.db}", "Sqlite { dir: \"/x\" }"),
        (
            "checkpointer: {type: sqlite, connection_string: checkpoints.db}",
            "Sqlite { dir: \"/d/.pudu/data\" }",
        ),
        (
            "checkpointer: {type: postgres, connection_string: $URL}",
            "Postgres { url: SecretBox<str>([REDACTED]) }",
        ),
        ("database: {backend: sqlite}\ncheckpointer: {type: memory}", "Sqlite { dir: \"/d/.pudu/data\" }"),
    ];
    for (text, expected) in cases {
        assert_eq!(backend(text), expected, "{text}");
    }
}

#[test]
fn all_tools_are_available_if_none_is_listed() {
    let tools = |text: &str| {
        let tools = &good(text, []).config.hot.tools;
        tools.iter().map(|tool| format!("{}:{}", tool.tool.name(), tool.group)).collect::<Vec<_>>().join(" ")
    };
    let all = "web_search:web web_fetch:web image_search:web ls:file:read read_file:file:read \
               write_file:file:write str_replace:file:write glob:file:read grep:file:read bash:bash \
               present_files: list_uploaded_files:";
    assert_eq!(tools(""), all);
    assert_eq!(tools("tools: []"), "present_files: list_uploaded_files:");
    assert_eq!(
        tools(
            "tools:\n  - {name: bash, group: shell, use: src.sandbox.tools:bash_tool}\n  \
             - {name: bash, use: deerflow.sandbox.tools:bash_tool}\n  \
             - {name: web_search, use: deerflow.community.ddg_search.tools:web_search_tool, max_results: 5}\n"
        ),
        "bash:shell web_search:web present_files: list_uploaded_files:"
    );
}

#[test]
fn a_bot_is_enabled_explicitly_or_by_its_credentials() {
    let names = |text: &str| {
        let Config { hot, .. } = good(text, [("T", "1:x")]).config;
        let names: Vec<_> = hot.accounts.iter().map(|account| account.name.clone()).collect();
        assert_eq!(
            names,
            hot.policies.keys().cloned().collect::<Vec<_>>(),
            "both halves know the same accounts"
        );
        names.join(" ")
    };
    let cases = [
        ("", ""),
        ("channels:\n  telegram:\n", ""),
        ("channels: {telegram: {allowed_users: [1]}}", ""),
        ("channels: {telegram: {bot_token: $T}}", "telegram"),
        ("channels: {telegram: {enabled: false, bot_token: $T}}", ""),
        (
            "channels: {telegram: {bot_token: $T}, second: {type: telegram, bot_token: other}}",
            "telegram second",
        ),
        ("channels: {wecom: {enabled: true, bot_id: $T}, telegram: {bot_token: $T}}", "telegram"),
        ("channels: {slack: {bot_token: $T, app_token: $T}}", "slack"),
    ];
    for (text, expected) in cases {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn deerflows_keys_restrict_a_discord_bot() {
    let rules = |guilds: &str, require_mention: bool, open_channels: &str, threads: bool| {
        format!(
            "ListenRules {{ guilds: {guilds}, require_mention: {require_mention}, open_channels: {open_channels}, threads: {threads} }}"
        )
    };
    let cases = [
        ("", rules("None", true, "{}", false)),
        ("mention_only: no", rules("None", false, "{}", false)),
        ("mention_only: yes", rules("None", true, "{}", true)),
        ("mention_only: yes, thread_mode: no", rules("None", true, "{}", false)),
        ("mention_only: no, require_mention: yes", rules("None", true, "{}", false)),
        ("thread_mode: yes", rules("None", true, "{}", true)),
        ("allowed_guilds: 1234567890123456789", rules("Some({\"1234567890123456789\"})", true, "{}", false)),
        ("allowed_guilds: null, allowed_channels: null", rules("None", true, "{}", false)),
        ("allowed_guilds: [], allowed_channels: '12, 13'", rules("None", true, "{\"12\", \"13\"}", false)),
        ("allowed_guilds: [1, '2']", rules("Some({\"1\", \"2\"})", true, "{}", false)),
    ];
    for (keys, expected) in cases {
        let text = format!("channels: {{discord: {{bot_token: $T, {keys}}}}}\n");
        let discord = good(&text, [("T", "d")]).config.hot.accounts[0].platform.clone();
        let url = Url::parse("https://discord.com/api").unwrap();
        assert_eq!(
            format!("{discord:?}"),
            format!(
                "DiscordAccountConfig(DiscordConfig {{ account: \"\", bot_token: SecretBox<str>([REDACTED]), api_url: {url:?}, \
                 rules: {expected}, commands: [] }})"
            ),
            "{keys}"
        );
    }
}

#[test]
fn a_slack_bot_is_read_for_each_event_delivery() {
    let socket = "channels: {slack: {bot_token: $T, app_token: $T, bot_user_id: U1, allowed_users: U1}}\n";
    let http =
        "channels: {slack: {bot_token: $T, event_delivery: http, signing_secret: $T, require_mention: no,
        api_url: 'http://127.0.0.1:9/api'}}\n";
    let cases = [
        (
            socket,
            "https://slack.com/api",
            "Socket { app_token: SecretBox<str>([REDACTED]) }",
            true,
            "Some(\"U1\")",
        ),
        (
            http,
            "http://127.0.0.1:9/api",
            "Http { signing_secret: SecretBox<str>([REDACTED]) }",
            false,
            "None",
        ),
    ];
    for (text, url, delivery, mention, own) in cases {
        let slack = good(text, [("T", "xoxb-1")]).config.hot.accounts[0].platform.clone();
        let url = Url::parse(url).unwrap();
        assert_eq!(
            format!("{slack:?}"),
            format!(
                "SlackAccountConfig(SlackConfig {{ account: \"\", bot_token: SecretBox<str>([REDACTED]), api_url: {url:?}, delivery: {delivery}, \
                 require_mention: {mention}, bot_user_id: {own}, commands: [] }})"
            )
        );
    }
}

#[test]
fn a_telegram_bot_is_read_completely() {
    let text = "channels: {bot: {type: telegram, bot_token: $T, api_url: 'http://127.0.0.1:9', mode: webhook,
        require_mention: no, webhook: {url: 'https://x.org/hook', secret_token: s-1_Ab2_C3-d4E_5}}}\n";
    let telegram = good(text, [("T", "1:x")]).config.hot.accounts[0].platform.clone();
    assert_eq!(
        format!("{telegram:?}"),
        format!(
            "TelegramAccountConfig(TelegramConfig {{ account: \"\", token: SecretBox<str>([REDACTED]), api_url: {:?}, mode: Webhook \
             {{ url: {:?}, secret_token: SecretBox<str>([REDACTED]) }}, require_mention: false, reads_groups: false, commands: [] }})",
            Url::parse("http://127.0.0.1:9").unwrap(),
            Url::parse("https://x.org/hook").unwrap(),
        )
    );
    let secrets: Vec<_> = telegram.secrets().into_iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(secrets, ["1:x", "s-1_Ab2_C3-d4E_5"]);
}

#[test]
fn a_dingtalk_bot_is_read_completely() {
    let read = |text: &str| {
        let platform = good(text, [("T", "hush")]).config.hot.accounts[0].platform.clone();
        let secrets: Vec<_> = platform.secrets().into_iter().map(ExposeSecret::expose_secret).collect();
        assert_eq!(secrets, ["hush"]);
        format!("{platform:?}")
    };
    let config = |robot: &str, card: &str, rest: &str| {
        format!(
            "DingTalkAccountConfig(DingTalkConfig {{ account: \"\", client_id: \"ding1\", client_secret: SecretBox<str>([REDACTED]), \
             robot_code: {robot:?}, api_url: {:?}, oapi_url: {:?}, card: {card}, {rest} }})",
            Url::parse("https://api.dingtalk.com").unwrap(),
            Url::parse("https://oapi.dingtalk.com").unwrap(),
        )
    };
    assert_eq!(
        read("channels: {dingtalk: {client_id: ding1, client_secret: $T, card_template_id: \"\"}}"),
        config("ding1", "None", "stream_interval: 800ms, group_conversations: Group, reads_groups: false")
    );
    assert_eq!(
        read(
            "channels: {bot: {type: dingtalk, client_id: ding1, client_secret: $T, robot_code: r1, card_template_id: t1,
            card_content_key: text, card_buttons_key: b, stream_interval_ms: 1500, group_conversations: user}}"
        ),
        config(
            "r1",
            "Some(CardStyle { template: \"t1\", content_key: \"text\", buttons_key: Some(\"b\") })",
            "stream_interval: 1.5s, group_conversations: User, reads_groups: false"
        )
    );
    let typed =
        "channels: {dingtalk: {client_id: ding1, client_secret: $T, allowed_users: [\"016a\", manager1, 7]}}";
    let hot = good(typed, [("T", "hush")]).config.hot;
    let only = ["016a", "7", "manager1"].map(str::to_owned);
    assert_eq!(hot.policies["dingtalk"].allowed_users, Allow::Only(only.into()));
}

#[test]
fn allowed_users_are_read_in_every_form() {
    let only = |ids: &[&str]| Allow::Only(ids.iter().map(|id| (*id).to_owned()).collect());
    let cases = [
        ("[]", Allow::Everyone),
        ("~", Allow::Everyone),
        ("12", only(&["12"])),
        ("\"12\"", only(&["12"])),
        ("[12, \"34\"]", only(&["12", "34"])),
        ("$IDS", only(&["5", "6"])),
        ("[$ID, 7]", only(&["5", "7"])),
    ];
    for (typed, expected) in cases {
        let text = format!(
            "channels: {{telegram: {{bot_token: t, allowed_users: {typed}, allowed_chats: {typed}}}}}\n"
        );
        let hot = good(&text, [("IDS", "5, 6"), ("ID", "5")]).config.hot;
        let policy = &hot.policies["telegram"];
        assert_eq!((&policy.allowed_users, &policy.allowed_chats), (&expected, &expected), "{typed}");
    }
    let group = "channels: {telegram: {bot_token: t, allowed_chats: [-1001234567890]}}\n";
    assert_eq!(good(group, []).config.hot.policies["telegram"].allowed_chats, only(&["-1001234567890"]));
    assert_eq!(
        (only(&["1"]).permits("1"), only(&["1"]).permits("2"), Allow::Everyone.permits("2")),
        (true, false, true)
    );
}

#[test]
fn settings_of_a_bot_override_the_common_ones() {
    let text = "channels:
  follow_ups: steer
  agent_choice: choose
  follow_up_window_ms: 0
  shutdown_grace_period_seconds: 1.5
  outbox_max_age_seconds: 60
  max_concurrency: 5
  session: {assistant_id: all, context: {a: 1, b: 1}}
  telegram: {bot_token: t, follow_ups: interrupt, agent_choice: create, session: {context: {b: 2}}}
  two: {type: telegram, bot_token: t2}
";
    let Config { fixed, hot } = good(text, []).config;
    assert_eq!(fixed.capacity, Capacity { inbound_queue_maxsize: 1000, max_concurrency: 5 });
    let timing = Timing {
        shutdown_grace_period: Duration::from_millis(1500),
        follow_up_window: Duration::ZERO,
        unpaired: UnpairedPeople::Own,
        outbox_max_age: Duration::from_secs(60),
        timezone: jiff::tz::TimeZone::system(),
        language: None,
    };
    assert_eq!(hot.timing, timing);
    let policy = |name: &str| {
        let AccountPolicy { follow_ups, agent_choice, session, .. } = &hot.policies[name];
        json!([format!("{follow_ups:?} {agent_choice:?}"), session.assistant_id, session.context])
    };
    assert_eq!(policy("telegram"), json!(["Interrupt Some(Create)", "all", {"a": 1, "b": 2}]));
    assert_eq!(policy("two"), json!(["Steer Some(Choose)", "all", {"a": 1, "b": 1}]));
}

#[test]
fn the_language_is_the_bots_or_the_common_one_or_each_users() {
    let text = |wide: &str| {
        format!(
            "channels:{wide}
  telegram: {{bot_token: t, language: zh}}
  two: {{type: telegram, bot_token: t2, language: en}}
  three: {{type: telegram, bot_token: t3}}
"
        )
    };
    let languages = |wide: &str| {
        let Config { hot, .. } = good(&text(wide), []).config;
        let accounts: Vec<_> = hot.accounts.iter().map(|account| account.language).collect();
        let policies: Vec<_> = hot.policies.values().map(|policy| policy.language).collect();
        assert_eq!(accounts, policies, "menus and answers");
        (hot.timing.language, accounts, hot.accounts[2].print)
    };
    let (english, chinese) = (Some(Language::English), Some(Language::Chinese));
    let (common, each, print) = languages("");
    assert_eq!((common, each), (None, vec![chinese, english, None]));
    let (common, each, other) = languages("\n  language: zh-CN");
    assert_eq!((common, each), (chinese, vec![chinese, english, chinese]));
    assert_ne!(print, other, "its menu is rebuilt");
}

#[test]
fn a_deerflow_file_works_unchanged() {
    let text = include_str!("deerflow.yaml");
    let env = [("TEST_KEY", "k"), ("TEST_BOT", "1:x")];
    let loaded = good(text, env);
    let Config { hot, .. } = &loaded.config;
    let models: Vec<_> = hot.models.iter().map(|model| model.settings.name.as_str()).collect();
    assert_eq!(models, ["plain", "deep", "local", "served"]);
    let accounts: Vec<_> = hot.accounts.iter().map(|account| account.name.as_str()).collect();
    assert_eq!(accounts, ["telegram", "dingtalk"]);
    let unknown = loaded.report.problems.iter().filter(|problem| problem.what.contains("does not know"));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&Problem>::new());
}

#[test]
fn long_results_follow_deerflows_settings() {
    let results = |text: &str| good(text, []).config.hot.results.clone();
    let usual =
        LongResults { rules: pudu_harness::ResultRules::default(), folder: ".tool-results".to_owned() };
    assert_eq!(results(""), usual);
    let own = results(
        "tool_output: {enabled: false, externalize_min_chars: 500, preview_head_chars: 20, preview_tail_chars: 10, \
         fallback_max_chars: 0, exempt_tools: [ls], storage_subdir: a/b, tool_overrides: {bash: 0, web_fetch: 7}}\n",
    );
    let rules = &own.rules;
    assert_eq!((rules.enabled, rules.longest, rules.shown, rules.uncut), (false, 500, (20, 10), 0));
    assert_eq!(rules.exempt, ["ls".to_owned()].into());
    assert_eq!(rules.tools, [("bash".to_owned(), 0), ("web_fetch".to_owned(), 7)].into());
    assert_eq!(own.folder, "a/b");
}

#[test]
fn the_entry_of_a_tool_can_require_approval() {
    let text = "tools:\n  - {use: 'deerflow.community.ddg_search.tools:web_search_tool', approval: required}\n  \
                - {use: 'deerflow.sandbox.tools:ls_tool'}\n\
                approvals: {tools: [mail_send]}\n";
    let hot = good(text, []).config.hot;
    assert_eq!(hot.approvals.tools, ["mail_send".to_owned(), "web_search".to_owned()].into());
}

#[test]
fn summarization_follows_deerflows_settings() {
    let read = |text: &str| good(text, []).config.hot.summarization.clone();
    assert_eq!(read(""), Summarization { rules: ContextRules::default(), model: None });
    let one = read("summarization: {enabled: false, trigger: {type: messages, value: 50}}\n").rules;
    assert_eq!((one.summaries, one.triggers), (false, vec![ContextSize::Messages(50)]));
    let own = read(
        "models: [{name: a, model: a, base_url: 'http://localhost/v1'}]\n\
         summarization: {model_name: a, keep: {type: fraction, value: 0.3}, trim_tokens_to_summarize: 15564, \
         summary_prompt: 'Sum up {messages}.', skill_file_read_tool_names: [cat], \
         trigger: [{type: tokens, value: 32000}, {type: fraction, value: 0.8}]}\n",
    );
    let rules = ContextRules {
        summaries: true,
        triggers: vec![ContextSize::Tokens(32_000), ContextSize::Fraction(0.8)],
        keep: ContextSize::Fraction(0.3),
        most_read: Some(15_564),
        prompt: Some("Sum up {messages}.".into()),
        skill_tools: ["cat".to_owned()].into(),
    };
    assert_eq!(own, Summarization { rules, model: Some("a".into()) });
}

#[test]
fn loop_detection_follows_deerflows_settings() {
    let rules = |text: &str| good(text, []).config.hot.loops.clone();
    assert_eq!(rules(""), Some(LoopRules::default()));
    assert_eq!(rules("loop_detection: {enabled: false}\n"), None);
    let own = rules(
        "loop_detection: {warn_threshold: 2, hard_limit: 4, window_size: 9, tool_freq_warn: 5, tool_freq_hard_limit: 6, \
         max_tracked_threads: 7, tool_freq_overrides: {bash: {warn: 150, hard_limit: 300}}}\n",
    );
    let tool = CallFrequency { warn: 5, stop: 6 };
    let tools = [("bash".to_owned(), CallFrequency { warn: 150, stop: 300 })].into();
    assert_eq!(own, Some(LoopRules { warn: 2, stop: 4, window: 9, tool, tools }));
    let progress = |text: &str| good(text, []).config.hot.progress.clone();
    assert_eq!(progress("tool_progress: {exempt_tools: [task]}\n"), None);
    assert_eq!(progress("tool_progress: {enabled: true}\n"), Some(ToolProgressRules::default()));
    let own = progress(
        "tool_progress: {enabled: true, stagnation_threshold: 4, warn_escalation_count: 1, inject_assessment: false, \
         jaccard_similarity_threshold: 0.5, min_word_count_for_similarity: 3, exempt_tools: [ls], max_tracked_threads: 9}\n",
    );
    let exempt = ["ls".to_owned()].into();
    let expect = ToolProgressRules {
        stagnation: 4,
        escalation: 1,
        hints: false,
        similarity: 0.5,
        min_words: 3,
        exempt,
    };
    assert_eq!(own, Some(expect));
    assert_eq!(good("subagents: {max_total_per_run: 2}\n", []).config.hot.runs.subagents, 2);
    let rest = good("circuit_breaker: {failure_threshold: 9, recovery_timeout_sec: 60}\n", [])
        .config
        .hot
        .model_calls
        .rest;
    assert_eq!(rest, RestRules { after: 9, time: Duration::from_secs(60) });
}

#[test]
fn memory_has_a_mode_and_a_retention() {
    let text = "memory:\n  mode: tool\n  shutdown_flush_timeout_seconds: 5\n  backend_config: {queue_max_depth: 0, debounce_seconds: 7}\n\
                retention: {memory_facts_max_age_days: 30, memory_turns_max_age_days: 0}\n";
    let hot = good(text, []).config.hot;
    let rules = hot.memory.rules.as_ref().unwrap();
    let seconds = Duration::from_secs;
    assert_eq!((rules.mode, rules.max_waiting), (MemoryMode::Tool, 0));
    assert_eq!((rules.debounce, rules.last_reading), (seconds(7), seconds(5)));
    let days = |days: u64| Some(seconds(days * 24 * 60 * 60));
    assert_eq!(hot.retention.memory, MemoryRetention { facts: days(30), turns: None });
    let usual = good("", []).config.hot;
    let rules = usual.memory.rules.as_ref().unwrap();
    assert_eq!(
        (rules.mode, rules.max_waiting, rules.last_reading),
        (MemoryMode::Middleware, 1_000, seconds(30))
    );
    assert_eq!(usual.retention.memory, MemoryRetention { facts: None, turns: days(365) });
    assert_eq!(good("memory: {manager_class: noop}", []).config.hot.memory.rules, None);
}
