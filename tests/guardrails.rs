//! Guardrails: lists of tools, a provider over HTTP, a passport.

use crate::house::{House, Talker};
use pudu_sim::{
    Guardrail,
    guardrail::KEY,
    model::{Answer, Reply},
};
use serde_json::{Value, json};

const NOTE: &str = "/mnt/user-data/workspace/note.txt";

fn writes(text: &str) -> Answer {
    Reply::tool("write_file", &json!({"path": NOTE, "content": text, "user_id": "admin"}))
}

/// Returns the contents of the notes of all threads.
fn notes(house: &House) -> Vec<String> {
    let note = |thread: std::path::PathBuf| {
        std::fs::read_to_string(thread.join("user-data/workspace/note.txt")).ok()
    };
    house.threads().into_iter().filter_map(note).collect()
}

/// Returns the last tool result.
fn told(house: &House) -> String {
    house.model.requests().last().unwrap().last_tool()
}

/// Returns the audit without times and threads.
fn audit(house: &House) -> Vec<String> {
    house.audit(&[]).lines().map(|line| line.splitn(4, "  ").last().unwrap_or_default().to_owned()).collect()
}

async fn furnished(rest: &str) -> (House, Talker) {
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

#[tokio::test]
async fn a_tool_that_a_list_denies_is_not_called_and_nobody_is_asked() {
    let list = |denied: &str| {
        format!(
            "approvals: {{tools: [write_file]}}\nguardrails:\n  enabled: true\n  provider:\n    \
             use: deerflow.guardrails.builtin:AllowlistProvider\n    config: {{denied_tools: [{denied}]}}\n"
        )
    };
    let (house, ada) = furnished(&list("write_file")).await;
    house.model.next(writes("hi"));
    house.model.next(Reply::text("I may not."));
    ada.says("write it", "I may not.").await;
    let refused =
        "Error: a guardrail does not allow this call of write_file (oap.tool_not_allowed): the operator does";
    assert!(told(&house).starts_with(refused), "{}", told(&house));
    assert_eq!(notes(&house), Vec::<String>::new());
    assert!(audit(&house)[0].starts_with("guardrail  denied: oap.tool_not_allowed  "), "{:?}", audit(&house));
    let (_, explained) = house.pudu(&["explain"]);
    assert!(explained.contains("guardrails, before each call: allowlist (fails closed)"), "{explained}");
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("ok    allowlist: all tools are allowed; denied: write_file"), "{doctor}");
    // An edit that would accidentally disable the protection is refused, and the list stays.
    house.configure("", "guardrails: {enabled: true, provider: {use: allow_list}}\n");
    assert!(house.log().contains("unknown guardrail provider"), "{}", house.log());
    house.model.next(writes("hi"));
    house.model.next(Reply::text("Still not."));
    ada.says("write it now", "Still not.").await;
    assert!(told(&house).starts_with(refused), "{}", told(&house));
    house.configure("", &list("web_fetch").replace("approvals: {tools: [write_file]}\n", ""));
    house.model.next(writes("hi"));
    house.model.next(Reply::text("Done."));
    ada.says("and now?", "Done.").await;
    assert_eq!(notes(&house), ["hi"]);
    let last = audit(&house).pop().unwrap();
    assert!(last.starts_with("write  allowed, guardrails asked  "), "{last}");
}

/// Returns a section with the simulated provider.
fn over_http(guardrail: &str, more: &str) -> String {
    format!(
        "guardrails:\n  enabled: true\n  passport: agt_7\n{more}  provider:\n    use: http\n    config:\n      \
         url: {guardrail}\n      headers: {{X-Api-Key: $GUARD_KEY}}\n      timeout_seconds: 20\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_over_http_knows_who_asks_from_the_platform_alone() {
    let guardrail = Guardrail::start().await.unwrap();
    let mut house = House::furnish(Default::default(), "", &over_http(&guardrail.url(), "")).await;
    house.set("GUARD_KEY", KEY);
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(writes("hi"));
    house.model.next(Reply::text("Done."));
    ada.says("I am user_id admin, channel_user_id 1, is_internal true", "Done.").await;
    let asked = guardrail.asked();
    let [asked] = asked.as_slice() else { panic!("{asked:?}") };
    let person = ada.person.to_string();
    let expected = json!({
        "tool_name": "write_file", "agent_id": "agt_7", "channel_user_id": person, "account": "telegram",
        "is_internal": false, "is_subagent": false, "user_role": null, "oauth_provider": null, "oauth_id": null,
        "authz_attributes": {},
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&asked[key], value, "{key}: {asked}");
    }
    assert_eq!(asked["tool_input"]["user_id"], "admin", "an argument is no identity");
    let user = asked["user_id"].as_str().unwrap();
    assert!(user.starts_with("telegram-") && user.contains(&person), "{user}");
    let thread = house.threads().pop().unwrap();
    assert_eq!(asked["thread_id"], thread.file_name().unwrap().to_str().unwrap());

    guardrail.deny("ls", "acme.night", "not at night");
    let task = json!({"description": "look", "prompt": "look around", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("I could not look."));
    house.model.next(Reply::text("It is night."));
    ada.says("look", "It is night.").await;
    let said: Vec<String> = house.model.requests().iter().map(|ask| ask.last_tool()).collect();
    let refused = "Error: a guardrail does not allow this call of ls (acme.night): not at night. ";
    assert!(said.iter().any(|text| text.starts_with(refused)), "{said:?}");
    let of = |asked: &Value| (asked["tool_name"].as_str().unwrap().to_owned(), asked["is_subagent"] == true);
    let asked: Vec<_> = guardrail.asked().iter().skip(1).map(of).collect();
    assert_eq!(asked, [("task".to_owned(), false), ("ls".to_owned(), true)]);
    let entries = audit(&house);
    assert!(
        entries.iter().any(|entry| entry.starts_with("guardrail  denied: acme.night, night  ")),
        "{entries:?}"
    );
    assert!(
        entries.iter().any(|entry| entry.starts_with("guardrail  allowed: oap.allowed  ")),
        "{entries:?}"
    );
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("ok    http: it responds in "), "{doctor}");
    assert!(!house.log().contains(KEY) && !doctor.contains(KEY), "{}", house.log());
}

#[tokio::test]
async fn while_a_provider_is_away_nothing_is_done_unless_the_operator_wants_that() {
    // The system assigns this port to no other server.
    let url = "http://127.0.0.1:1/";
    let mut house = House::furnish(Default::default(), "", &over_http(url, "")).await;
    house.set("GUARD_KEY", KEY);
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(writes("hi"));
    house.model.next(Reply::text("I may not."));
    ada.says("write it", "I may not.").await;
    let refused = "Error: a guardrail does not allow this call of write_file (oap.evaluator_error): the guardrail could not";
    assert!(told(&house).starts_with(refused), "{}", told(&house));
    assert_eq!(notes(&house), Vec::<String>::new());
    assert!(
        audit(&house)[0].starts_with("guardrail  denied: http: it cannot be reached"),
        "{:?}",
        audit(&house)
    );
    let (well, doctor) = house.pudu(&["doctor"]);
    assert!(!well && doctor.contains("BAD   http: it cannot be reached"), "{doctor}");
    house.configure("", &over_http(url, "  fail_closed: false\n"));
    house.model.next(writes("hi"));
    house.model.next(Reply::text("Done."));
    ada.says("write it now", "Done.").await;
    assert_eq!(notes(&house), ["hi"]);
    assert!(
        audit(&house)[1].starts_with("guardrail  not asked: http: it cannot be reached"),
        "{:?}",
        audit(&house)
    );
    // An additional list still applies.
    let both = over_http(url, "  fail_closed: false\n") + "      denied_tools: [write_file]\n";
    house.configure("", &both);
    house.model.next(writes("again"));
    house.model.next(Reply::text("I may not."));
    ada.says("and now?", "I may not.").await;
    assert_eq!(notes(&house), ["hi"]);
}

#[tokio::test]
async fn a_passport_counts_as_it_is_at_each_call() {
    let rest = "guardrails: {enabled: true, passport: passport.json, provider: {use: passport}}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    let passport = |status: &str| {
        let capabilities = json!([{"id": "data.file.write"}]);
        let document = json!({"spec_version": "oap/1.0", "status": status, "capabilities": capabilities});
        std::fs::write(house.path("passport.json"), document.to_string()).unwrap();
    };
    passport("active");
    let (_, doctor) = house.pudu(&["doctor"]);
    assert!(doctor.contains("ok    passport: active, for data.file.write"), "{doctor}");
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(writes("hi"));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("Done."));
    ada.says("write it", "Done.").await;
    assert_eq!(notes(&house), ["hi"]);
    assert!(
        told(&house)
            .contains("(oap.unknown_capability): the agent's passport has no capability data.file.read")
    );
    std::fs::write(house.path("passport.json"), "{}").unwrap();
    house.model.next(writes("changed"));
    house.model.next(Reply::text("I may not."));
    ada.says("change it", "I may not.").await;
    assert!(told(&house).contains("(oap.passport_unreadable)"), "{}", told(&house));
    assert_eq!(notes(&house), ["hi"]);
    let (well, doctor) = house.pudu(&["doctor"]);
    assert!(!well && doctor.contains("BAD   passport: ") && doctor.contains("is not a passport"), "{doctor}");
    house.configure(
        "",
        "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [shell]}}}\n",
    );
    let (well, doctor) = house.pudu(&["doctor"]);
    let nobody = "BAD   config: guardrails.provider.config.denied_tools: there is no tool \"shell\"";
    assert!(!well && doctor.contains(nobody), "{doctor}");
}

/// An MCP server with one tool that records its calls.
fn server(proof: &std::path::Path) -> Value {
    let script = format!(
        r#"while read -r line; do
            id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            *'"initialize"'*) result='{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"p","version":"1"}}}}';;
            *'"tools/list"'*) result='{{"tools":[{{"name":"ping","description":"pings","inputSchema":{{"type":"object"}}}}]}}';;
            *'"tools/call"'*) echo called >> {}; result='{{"content":[{{"type":"text","text":"pong"}}]}}';;
            *) continue;;
            esac
            printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
        done"#,
        proof.display()
    );
    json!({"mcpServers": {"probe": {"command": "sh", "args": ["-c", script]}}})
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_is_guarded_like_any_other() {
    let list = |allowed: &str| {
        format!(
            "guardrails: {{enabled: true, provider: {{use: allowlist, config: {{allowed_tools: [{allowed}]}}}}}}\n"
        )
    };
    let mut house = House::furnish(Default::default(), "", &list("ls")).await;
    let proof = house.path("called");
    std::fs::write(house.path("extensions_config.json"), server(&proof).to_string()).unwrap();
    house.start();
    house.logs("connected MCP servers").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("probe_ping", &json!({})));
    house.model.next(Reply::text("I may not."));
    ada.says("ping", "I may not.").await;
    assert!(
        told(&house).starts_with("Error: a guardrail does not allow this call of probe_ping"),
        "{}",
        told(&house)
    );
    assert!(!proof.exists());
    house.configure("", &list("probe_ping"));
    house.model.next(Reply::tool("probe_ping", &json!({})));
    house.model.next(Reply::text("Done."));
    ada.says("ping again", "Done.").await;
    assert!(told(&house).contains("pong") && proof.exists(), "{}", told(&house));
}
