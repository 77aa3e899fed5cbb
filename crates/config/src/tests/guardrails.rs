//! Guardrails that can be obeyed, and those that stop the start.

use super::said;

#[test]
fn guardrails_that_cannot_be_obeyed_stop_the_start_with_the_remedy() {
    let refused = |text: &str, words: &[&str]| {
        let said = said(&format!("guardrails: {{enabled: true, {text}}}\n"), []);
        for words in words {
            assert!(said.contains(words), "{text}: {words}: {said}");
        }
    };
    let choice = "help: write deerflow.guardrails.builtin:AllowlistProvider, http or passport;";
    refused("", &["error: guardrails.provider.use: this is missing or empty", choice]);
    refused("provider: {config: {denied_tools: [ls]}}", &["error: guardrails.provider.use: this is missing"]);
    let python = "provider: {use: 'aport_guardrails.providers:OAPProvider'}";
    let unknown =
        "config.yaml:2:45: error: guardrails.provider.use: pudu has no guardrail provider \"aport_guardrails";
    refused(python, &[unknown, choice]);
    refused("provider: {use: http}", &["error: guardrails.provider.config.url: this is missing or empty"]);
    refused("provider: {use: http, config: {url: 'ftp://a'}}", &["error: guardrails.provider.config.url: "]);
    refused("provider: {use: http, config: {url: $NOWHERE}}", &["NOWHERE is not set"]);
    let header = "provider: {use: http, config: {url: 'http://a', headers: {'a b': c}}}";
    refused(header, &["error: guardrails.provider.config.headers: the header \"a b\" cannot be sent"]);
    refused("provider: {use: passport}", &["error: guardrails.passport: this is missing or empty"]);
    refused("provider: {use: passport}, passport: agt_1", &["guardrails.passport: this names no file"]);
    let near = "did you mean `bash`?";
    refused("provider: {use: allowlist, config: {denied_tools: [bahs]}}", &["config.denied_tools: ", near]);
    refused("provider: {use: allowlist, config: {allowed_tools: [bahs]}}", &["config.allowed_tools: ", near]);
    for (name, help) in [
        ("\"*\"", "there are no wildcards"),
        ("\"file_*\"", "no tool can be called \"file_*\""),
        ("\"web search\"", "letters, digits, _ and -"),
        ("deerflow.sandbox.tools:bash_tool", "no tool can be called"),
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
        let words = format!("guardrails.passport: there is no file /d/{file}");
        for provider in ["use: passport", "use: allowlist", "use: http, config: {url: 'http://a'}"] {
            refused(&format!("passport: {file}, provider: {{{provider}}}"), &[&words]);
        }
    }
    refused(
        "provider: {use: allowlist, config: {deny: [bash]}}",
        &["error: guardrails.provider.config.deny: pudu does not know"],
    );
    refused(
        "provider: {use: allowlist, configuration: {}}",
        &["error: guardrails.provider.configuration: pudu does not know"],
    );
    refused(
        "fail_close: true, provider: {use: allowlist}",
        &["error: guardrails.fail_close: pudu does not know"],
    );
    let list = |text: &str| said(&format!("guardrails: {{{text}}}\n"), []);
    assert_eq!(list("enabled: true, provider: {use: http, config: {url: 'http://10.0.0.1/judge'}}"), "");
    let id = list("enabled: true, passport: agt_1, provider: {use: allowlist}");
    assert!(id.contains("warning: guardrails.passport: nobody checks this"), "{id}");
    assert_eq!(list("enabled: false, passport: agt_1, provider: {use: 'a.b:C', config: {a: $NOWHERE}}"), "");
    assert_eq!(list("enabled: true, provider: {use: passport}, passport: {status: active}"), "");
    assert_eq!(list("enabled: false, passport: nofile.json, provider: {use: allowlist}"), "");
    assert_eq!(list("enabled: true, provider: {use: allowlist, config: {denied_tools: [bash, a-b_Do]}}"), "");
}
