//! Common mistakes in files, and the messages about them.

use super::*;
use pudu_sandbox::CommandLimits;
use std::time::Duration;

/// Checks that the messages about a file, whose text begins in line 2, contain each of these texts.
fn check(text: &str, expected: &[&str]) {
    let messages = messages(text, [("EMPTY", ""), ("PATIENT", "hush-hush"), ("LEFT", "your-openai-api-key")]);
    expected.iter().for_each(|words| assert!(messages.contains(words), "{text}: {messages}"));
}

#[test]
fn a_misspelt_top_level_key_prevents_the_start() {
    for (key, meant) in [
        ("modles", "`models`"),
        ("model", "`models`"),
        ("Models", "`models`"),
        ("channel", "`channels`"),
        ("CHANNELS", "`channels`"),
        ("tool", "`tools`"),
        ("sanbox", "`sandbox`"),
        ("log-level", "`log_level`"),
        ("logLevel", "`log_level`"),
        ("databse", "`database`"),
        ("telegram", "below `channels:`"),
        ("slack", "below `channels:`"),
        ("telegram_bot", "below `channels:`"),
        ("model_list", "`models:`"),
        ("lark", "`feishu:`"),
        ("bots", "`channels:`"),
        ("llm", "`models:`"),
        ("openai", "`models:`"),
        ("mcpServers", "extensions_config.json"),
        ("mcp_servers", "extensions_config.json"),
        ("agents", "pudu agent new"),
        ("server", "`gateway:`"),
        ("port", "`gateway.port`"),
        ("timezone", "`channels.timezone`"),
        ("env", "sandbox.environment"),
        ("bot_token", "`channels."),
    ] {
        let expected = format!("config.yaml:2:1: error: {key}: unknown key\n  help: ");
        check(&format!("{key}: {{}}\n"), &[&expected, meant]);
    }
}

#[test]
fn other_top_level_keys_are_reported_except_the_operators_own() {
    assert_eq!(messages("X-mine: {a: 1}\n", []), "");
    check("favourite: x\n", &["config.yaml:2:1: warning: favourite: unknown key"]);
    let text = "x-usual: &usual {temperature: 0.5, use: \"langchain_openai:ChatOpenAI\", base_url: \"http://10.0.0.1/v1\"}\n\
                x-other: {modles: $NONE}\n\
                models: [{<<: *usual, name: a, model: a}]\n";
    assert_eq!(messages(text, []), "");
    assert_eq!(good(text, []).config.hot.models[0].settings.temperature, Some(0.5));
    check("models: [{name: a, model: a, x-mine: 1, api_key: k}]\n", &["warning: models[0].x-mine: "]);
}

#[test]
fn quantities_may_have_units() {
    let text = "run_timeout_seconds: 10m\n\
                sandbox: {memory_limit: 2GB, disk_limit: 1GiB, bash_command_timeout: 1h30m}\n\
                uploads: {max_file_size: 20MB, max_total_size: 1_000_000_000}\n\
                models: [{name: a, model: a, base_url: http://localhost/v1, context_window: 128k, max_tokens: 8K}]\n\
                retention: {threads_max_age_days: 1y, audit_max_age_days: 2w, threads_max_bytes: 5GB}\n\
                token_budget: {enabled: true, max_tokens: 1.5M}\n\
                channels: {timezone: +02:00, follow_up_window_ms: 1s}\n\
                llm_call: {patience_seconds: 2m}\n";
    let loaded = good(text, []);
    assert_eq!(loaded.report.problems, []);
    let hot = &loaded.config.hot;
    assert_eq!(hot.runs.timeout, Duration::from_secs(600));
    let limits = CommandLimits { memory: 2_000_000_000, disk: 1 << 30, ..CommandLimits::default() };
    assert_eq!((hot.sandbox.limits, hot.sandbox.bash_command_timeout), (limits, Duration::from_secs(5_400)));
    assert_eq!((hot.uploads.max_file_size, hot.uploads.max_total_size), (20_000_000, 1_000_000_000));
    let model = &hot.models[0].settings;
    assert_eq!((model.window, model.max_tokens), (128_000, Some(8_000)));
    let rules = hot.retention.usual;
    let days = |days: u64| Some(Duration::from_secs(days * 86_400));
    assert_eq!(
        (rules.threads.age, rules.audit_age, rules.threads.bytes),
        (days(365), days(14), Some(5_000_000_000))
    );
    assert_eq!(hot.run_tokens.total.unwrap().stop, 1_500_000);
    let offset = hot.timing.timezone.to_fixed_offset().unwrap();
    assert_eq!((offset.seconds(), hot.timing.follow_up_window), (7_200, Duration::from_secs(1)));
    assert_eq!(hot.model_calls.retries.patience, Duration::from_secs(120));
}

#[test]
fn an_invalid_quantity_is_refused_with_the_valid_units() {
    for (text, expected) in [
        (
            "run_timeout_seconds: 10 apples\n",
            "found \"10 apples\", expected seconds from 1 to 31536000\n  help: write a number, or a time",
        ),
        ("run_timeout_seconds: 2y\n", "expected seconds from 1 to 31536000"),
        (
            "retention: {threads_max_age_days: soon}\n",
            "expected days from 0 to 36500\n  help: write whole days, such as 30d or 1y",
        ),
        (
            "sandbox: {memory_limit: 2XB}\n",
            "expected bytes from 67108864 to 1125899906842624\n  help: write bytes, or a size such as 500MB (decimal",
        ),
        (
            "models: [{name: a, model: a, api_key: k, max_tokens: 8kB}]\n",
            "expected tokens from 1 to 10000000\n  help: write a count",
        ),
        (
            "retention: {threads_max_age_days: 12h}\n",
            "expected days from 0 to 36500\n  help: write whole days",
        ),
        ("channels: {timezone: +25:00}\n", "or an offset: +02:00"),
        ("uploads: {max_files: 10k}\n", "expected a whole number from 0 to 1000"),
        ("run_timeout_seconds: $PATIENT\n", "found something else in the variable $PATIENT"),
    ] {
        check(text, &["error: ", expected]);
    }
    for out_of_range in ["run_timeout_seconds: 2y\n", "retention: {threads_max_age_days: 200y}\n"] {
        let messages = messages(out_of_range, []);
        assert!(messages.contains("expected") && !messages.contains("help:"), "{messages}");
    }
}

#[test]
fn placeholders_of_api_keys_have_their_own_errors() {
    let model = |key: &str| format!("models: [{{name: a, model: a, {key}}}]\n");
    for (key, expected) in [
        (
            "api_key: $EMPTY",
            "error: models[0].api_key: the environment variable EMPTY is empty\n  help: set EMPTY, or remove `api_key`",
        ),
        (
            "api_key: $NONE",
            "error: models[0].api_key: the environment variable NONE is not set\n  help: set NONE",
        ),
        (
            "api_key: YOUR_API_KEY",
            "error: models[0].api_key: this is a placeholder, not a key\n  help: write `api_key: $OPENAI_API_KEY` and set \
             the variable, or remove the line",
        ),
        ("api_key: <key>", "error: models[0].api_key: this is a placeholder"),
        ("api_key: sk-...", "error: models[0].api_key: this is a placeholder"),
        ("api_key: sk-xxxxxxxx", "error: models[0].api_key: this is a placeholder"),
        (
            "api_key: $LEFT",
            "error: models[0].api_key: the environment variable LEFT is a placeholder, not a key\n  help: set LEFT",
        ),
        (
            "api_key: \"%OPENAI_API_KEY%\"",
            "%OPENAI_API_KEY% is how Windows writes a variable\n  help: write $OPENAI_API_KEY",
        ),
        ("api_key: %OPENAI_API_KEY%", "% is how Windows writes"),
        (
            "api_key: your-key, base_url: http://10.0.0.1/v1",
            "warning: models[0].api_key: this is a placeholder",
        ),
        (
            "api_key: $EMPTY, base_url: http://10.0.0.1/v1",
            "error: models[0].api_key: the environment variable EMPTY is empty",
        ),
    ] {
        check(&model(key), &[expected]);
    }
    let left = messages("models: [{name: a, model: a}]\n", [("OPENAI_API_KEY", "your-openai-api-key")]);
    assert!(
        left.contains("error: models[0].api_key: the environment variable OPENAI_API_KEY is a placeholder"),
        "{left}"
    );
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        let left = messages("log_level: info\n", [(name, "your-api-key")]);
        let expected = format!("error: models: the environment variable {name} is a placeholder");
        assert!(left.contains(&expected), "{left}");
    }
    check("gateway: {token: changeme}\n", &["error: gateway.token: this is a placeholder, not a secret"]);
    check(
        "channels: {telegram: {bot_token: YOUR_BOT_TOKEN}}\n",
        &["error: channels.telegram.bot_token: this is a placeholder"],
    );
    assert_eq!(messages("channels: {telegram: {enabled: false, bot_token: YOUR_BOT_TOKEN}}\n", []), "");
    for key in ["EMPTY", "none", "ollama", "sk-no-key-required", "sk-proj-yourself4711", "x", "hereabouts"] {
        assert_eq!(messages(&model(&format!("api_key: {key}")), []), "", "{key}");
    }
}

#[test]
fn the_url_of_a_call_is_refused_with_the_base_url() {
    let model = |class: &str, url: &str| {
        format!("models: [{{name: a, model: a, api_key: k, use: \"{class}\", base_url: \"{url}\"}}]\n")
    };
    for (class, url, expected) in [
        (
            "langchain_openai:ChatOpenAI",
            "https://a.org/v1/chat/completions",
            "it ends with `/chat/completions`, which pudu adds to each call\n  help: write `base_url: \
             https://a.org/v1`",
        ),
        (
            "langchain_openai:ChatOpenAI",
            "https://a.org/v1/Chat/Completions",
            "it ends with `/Chat/Completions`, which pudu adds to each call\n  help: write `base_url: \
             https://a.org/v1`",
        ),
        ("langchain_openai:ChatOpenAI", "http://localhost:99999/v1", "help: write a port from 1 to 65535"),
        ("langchain_openai:ChatOpenAI", "http://", "help: write a host after the `//`"),
        (
            "langchain_openai:ChatOpenAI",
            "https://a.org/v1/responses/",
            "help: write `base_url: https://a.org/v1`",
        ),
        (
            "langchain_openai:ChatOpenAI",
            "https://a.org/v1/chat/completions?api-key=hush",
            "help: remove `/chat/completions` from it",
        ),
        (
            "langchain_openai:ChatOpenAI",
            "https://ada:hush@a.org/v1/responses",
            "help: remove `/responses` from it",
        ),
        (
            "langchain_anthropic:ChatAnthropic",
            "https://a.org/v1/messages",
            "help: write `base_url: https://a.org/v1`",
        ),
        (
            "langchain_ollama:ChatOllama",
            "http://a.org:11434/api/chat",
            "help: write `base_url: http://a.org:11434`",
        ),
        (
            "langchain_google_genai:ChatGoogleGenerativeAI",
            "https://a.org/v1beta/models/g:generateContent",
            "help: write `base_url: https://a.org/v1beta`",
        ),
    ] {
        check(&model(class, url), &["error: models[0].base_url: ", expected]);
    }
    let messages = messages(
        &model("langchain_openai:ChatOpenAI", "$URL"),
        [("URL", "https://hush.org/v1/chat/completions")],
    );
    assert!(
        messages.contains("help: remove `/chat/completions` from the end") && !messages.contains("hush"),
        "{messages}"
    );
}

#[test]
fn no_error_shows_the_value_of_a_variable() {
    let text = "sandbox: {mounts: [{host_path: $PATIENT, container_path: /mnt/a}, {host_path: /srv, container_path: $PATIENT}]}\n\
                models: [{name: $PATIENT, model: a, api_key: k}, {name: $PATIENT, model: a, api_key: k}]\n\
                approvals: {tools: [$PATIENT]}\n";
    let messages = messages(text, [("PATIENT", "hush-hush")]);
    assert!(
        messages.contains("$PATIENT is not an absolute path") && messages.contains("are named \"$PATIENT\""),
        "{messages}"
    );
    assert!(!messages.contains("hush"), "{messages}");
}

#[test]
fn only_capital_letters_between_percent_signs_are_a_windows_variable() {
    let key = |key: &str| format!("models: [{{name: a, model: a, api_key: \"{key}\"}}]\n");
    for literal in ["%hush7%", "%Hush_7%", "%HUSH%7", "%7HUSH%", "%%"] {
        let messages = messages(&key(literal), []);
        assert!(!messages.contains("how Windows writes"), "{literal}: {messages}");
    }
    check(&key("%HUSH_7%"), &["%HUSH_7% is how Windows writes", "set a variable to it"]);
}

#[test]
fn a_folder_is_refused_as_a_config_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("config.yaml")).unwrap();
    for config in [None, Some("config.yaml".into()), Some(".".into())] {
        let start = Start { config, dir: dir.path().into(), ..Start::default() };
        let error = load(&start).unwrap_err().to_string();
        assert!(error.contains("is a folder, not a file"), "{error}");
    }
}
