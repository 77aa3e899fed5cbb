//! Settings of guardrails, and messages about those that cannot be enforced.

use super::messages;

#[test]
fn unenforceable_guardrails_prevent_the_start_with_a_fix() {
    let refused = |text: &str, words: &[&str]| {
        let messages = messages(&format!("guardrails: {{enabled: true, {text}}}\n"), []);
        for words in words {
            assert!(messages.contains(words), "{text}: {words}: {messages}");
        }
    };
    let choice =
        "help: write deerflow.guardrails.builtin:AllowlistProvider, http or passport (docs/guardrails.md).";
    refused("", &["error: guardrails.provider.use: this is missing or empty", choice]);
    refused("provider: {config: {denied_tools: [ls]}}", &["error: guardrails.provider.use: this is missing"]);
    let python = "provider: {use: 'aport_guardrails.providers:OAPProvider'}";
    let unknown =
        "config.yaml:2:45: error: guardrails.provider.use: unknown guardrail provider \"aport_guardrails";
    refused(python, &[unknown, choice]);
    refused("provider: {use: http}", &["error: guardrails.provider.config.url: this is missing or empty"]);
    refused("provider: {use: http, config: {url: 'ftp://a'}}", &["error: guardrails.provider.config.url: "]);
    refused("provider: {use: http, config: {url: $NOWHERE}}", &["NOWHERE is not set"]);
    let header = "provider: {use: http, config: {url: 'http://a', headers: {'a b': c}}}";
    refused(header, &["error: guardrails.provider.config.headers: the header \"a b\" cannot be sent"]);
    refused("provider: {use: passport}", &["error: guardrails.passport: this is missing or empty"]);
    refused("provider: {use: passport}, passport: agt_1", &["guardrails.passport: this is not a file"]);
    let near = "did you mean `bash`?";
    refused("provider: {use: allowlist, config: {denied_tools: [bahs]}}", &["config.denied_tools: ", near]);
    refused("provider: {use: allowlist, config: {allowed_tools: [bahs]}}", &["config.allowed_tools: ", near]);
    for (name, help) in [
        ("\"*\"", "there are no wildcards"),
        ("\"file_*\"", "\"file_*\" is not a valid tool name"),
        ("\"web search\"", "letters, digits, _ and -"),
        ("deerflow.sandbox.tools:bash_tool", "is not a valid tool name"),
        ("bash_tool", near),
        ("read_file_tool", "did you mean `read_file`?"),
        ("Web-Search-Tool", "did you mean `web_search`?"),
        ("LS", "did you mean `ls`?"),
        (&"x".repeat(65), "up to 64 letters"),
    ] {
        for key in ["allowed_tools", "denied_tools"] {
            let list = format!("provider: {{use: allowlist, config: {{{key}: [bash, {name}]}}}}");
            refused(&list, &[&format!("error: guardrails.provider.config.{key}: "), help]);
        }
    }
    for file in ["nofile.json", "passports/one"] {
        let words = format!("guardrails.passport: the file /d/{file} does not exist");
        for provider in ["use: passport", "use: allowlist", "use: http, config: {url: 'http://a'}"] {
            refused(&format!("passport: {file}, provider: {{{provider}}}"), &[&words]);
        }
    }
    refused(
        "provider: {use: allowlist, config: {deny: [bash]}}",
        &["error: guardrails.provider.config.deny: unknown key"],
    );
    refused(
        "provider: {use: allowlist, configuration: {}}",
        &["error: guardrails.provider.configuration: unknown key"],
    );
    refused("fail_close: true, provider: {use: allowlist}", &["error: guardrails.fail_close: unknown key"]);
    let list = |text: &str| messages(&format!("guardrails: {{{text}}}\n"), []);
    assert_eq!(list("enabled: true, provider: {use: http, config: {url: 'http://10.0.0.1/judge'}}"), "");
    let id = list("enabled: true, passport: agt_1, provider: {use: allowlist}");
    assert!(id.contains("warning: guardrails.passport: this has no effect"), "{id}");
    assert_eq!(list("enabled: false, passport: agt_1, provider: {use: 'a.b:C', config: {a: $NOWHERE}}"), "");
    assert_eq!(list("enabled: true, provider: {use: passport}, passport: {status: active}"), "");
    assert_eq!(list("enabled: false, passport: nofile.json, provider: {use: allowlist}"), "");
    assert_eq!(list("enabled: true, provider: {use: allowlist, config: {denied_tools: [bash, a-b_Do]}}"), "");
}
