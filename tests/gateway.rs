//! DeerFlow's API besides threads and runs, as its web frontend and scripts use it: shapes, codes and details.

use crate::{
    house::{House, SOON, Talker, http},
    memory::learns,
};
use pudu_sim::{model::Reply, telegram::Options};
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, chown};

const THREAD: &str = "7d1f6c9e-0000-4000-8000-00000000000a";

/// A daemon and somebody who asks it, with or without the operator's token.
struct Api {
    house: House,
}

impl Api {
    async fn open(rest: &str) -> Self {
        let mut house = House::furnish(Options::default(), "", rest).await;
        house.start();
        Self { house }
    }

    async fn call(&self, method: Method, path: &str, admin: bool, body: Option<&Value>) -> (u16, Value) {
        let mut call = http().request(method, format!("http://{}{path}", self.house.address));
        if admin {
            let token = std::fs::read_to_string(self.house.path(".pudu/gateway-token")).unwrap();
            call = call.bearer_auth(token.trim());
        }
        if let Some(body) = body {
            call = call.json(body);
        }
        let answer = call.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() })
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, false, None).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.call(method, path, false, Some(body)).await
    }

    async fn operate(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.call(method, path, true, Some(body)).await
    }
}

fn detail(detail: &str) -> Value {
    json!({ "detail": detail })
}

#[tokio::test]
async fn models_and_features_have_deerflows_shapes_below_both_prefixes() {
    let api = Api::open("agents_api: {enabled: true}\nsuggestions: {max_suggestions: 2}\n").await;
    let model = json!({
        "name": "sim",
        "model": "sim-1",
        "display_name": "sim",
        "description": null,
        "supports_thinking": false,
        "supports_reasoning_effort": false,
    });
    let features = json!({
        "agents_api": {"enabled": true},
        "browser_control": {"enabled": false},
        "mcp_tasks": {"enabled": false},
    });
    for root in ["/api", "/api/langgraph"] {
        let of = |path: &str| format!("{root}{path}");
        let models = json!({"models": [model], "token_usage": {"enabled": true}});
        assert_eq!(api.get(&of("/models")).await, (200, models));
        assert_eq!(api.get(&of("/models/sim")).await, (200, model.clone()));
        assert_eq!(api.get(&of("/models/none")).await, (404, detail("Model 'none' not found")));
        assert_eq!(api.get(&of("/features")).await, (200, features.clone()));
        let config = json!({"enabled": true, "max_suggestions": 2});
        assert_eq!(api.get(&of("/suggestions/config")).await, (200, config));
    }
    let (status, health) = api.get("/health").await;
    assert_eq!((status, &health["status"], health["service"].is_string()), (200, &json!("healthy"), true));
}

#[tokio::test]
async fn no_route_is_open_to_another_site_or_without_the_token_where_one_is_asked_for() {
    let api = Api::open("gateway: {token: open-sesame-123}\n").await;
    let local = Api::open("").await;
    let paths = [
        "/models",
        "/features",
        "/suggestions/config",
        "/assistants/lead_agent",
        "/memory",
        "/memory/export",
        "/mcp/config",
        "/user-profile",
        "/channels/connections",
        "/scheduled-tasks",
        "/threads/t/artifacts/mnt/user-data/outputs/a",
    ];
    for (root, path) in ["/api", "/api/langgraph"].iter().flat_map(|root| paths.map(|path| (root, path))) {
        assert_eq!(api.get(&format!("{root}{path}")).await.0, 401, "{root}{path}");
        let url = format!("http://{}{root}{path}", local.house.address);
        let elsewhere = http().get(url).header("origin", "https://evil.example").send().await.unwrap();
        assert_eq!(elsewhere.status().as_u16(), 403, "{root}{path}");
    }
}

#[tokio::test]
async fn what_pudu_does_not_have_says_so() {
    let api = Api::open("").await;
    let paths = [
        "/integrations/lark/status",
        "/scheduled-tasks",
        "/scheduled-tasks/t/runs",
        "/threads/t/scheduled-tasks",
        "/threads/t/mcp-tasks",
        "/threads/t/browser/navigate",
        "/console/stats",
        "/runs/crons",
        "/store/items",
        "/channels/telegram/runtime-config",
    ];
    for path in paths {
        for (root, method) in [("/api", Method::GET), ("/api/langgraph", Method::POST)] {
            let (status, told) = api.send(method, &format!("{root}{path}"), &json!({})).await;
            assert_eq!(status, 404, "{path}");
            assert!(told["detail"].as_str().unwrap().starts_with("pudu "), "{path}: {told}");
        }
    }
}

#[tokio::test]
async fn the_lead_agent_is_the_first_assistant_and_custom_agents_follow() {
    let api = Api::open("agents_api: {enabled: true}\n").await;
    let poet = json!({"name": "Poet", "description": "Writes poems.", "soul": "You rhyme."});
    assert_eq!(api.operate(Method::POST, "/api/agents", &poet).await.0, 201);
    let search = "/api/langgraph/assistants/search";
    let (status, mut all) =
        api.send(Method::POST, search, &json!({"limit": 10, "graph_id": "lead_agent"})).await;
    assert_eq!(status, 200);
    for assistant in all.as_array_mut().unwrap() {
        let times = ["created_at", "updated_at"].map(|key| assistant[key].take());
        assert!(times.iter().all(|time| time.as_str().unwrap().contains('T')), "{times:?}");
    }
    let assistant = |id: &str, by: &str, description: &str| {
        json!({
            "assistant_id": id,
            "graph_id": "lead_agent",
            "name": id,
            "config": {},
            "metadata": {"created_by": by},
            "description": description,
            "created_at": null,
            "updated_at": null,
            "version": 1,
        })
    };
    let (lead, poet) =
        (assistant("lead_agent", "system", "The lead agent"), assistant("poet", "user", "Writes poems."));
    assert_eq!(all, json!([lead, poet]));
    assert_eq!(api.call(Method::POST, search, false, None).await.1.as_array().unwrap().len(), 2, "no body");
    for (body, count) in [
        (json!({"name": "POE"}), 1),
        (json!({"graph_id": "other"}), 0),
        (json!({"limit": 1}), 1),
        (json!({"offset": 9}), 0),
    ] {
        let found = api.send(Method::POST, search, &body).await.1;
        assert_eq!(found.as_array().unwrap().len(), count, "{body}");
    }
    assert_eq!(api.send(Method::POST, "/api/assistants/count", &json!({})).await, (200, json!(2)));
    assert_eq!(api.send(Method::POST, search, &json!([1])).await.0, 422);
    assert_eq!(api.get("/api/assistants/poet").await.1["assistant_id"], "poet");
    let graph = json!({"graph_id": "lead_agent", "nodes": [], "edges": []});
    assert_eq!(api.get("/api/assistants/lead_agent/graph?xray=false").await, (200, graph));
    let schemas = json!({
        "graph_id": "lead_agent", "input_schema": {}, "output_schema": {}, "state_schema": {}, "config_schema": {},
    });
    assert_eq!(api.get("/api/assistants/poet/schemas").await, (200, schemas));
    for path in ["none", "none/graph", "none/schemas"] {
        let told = detail("Assistant none not found");
        assert_eq!(api.get(&format!("/api/assistants/{path}")).await, (404, told));
    }
    let closed = Api::open("").await;
    assert_eq!(closed.send(Method::POST, "/api/assistants/count", &json!({})).await, (200, json!(1)));
}

#[tokio::test]
async fn questions_are_suggested_by_the_model_and_count_for_whoever_asks() {
    let api = Api::open("").await;
    let path = format!("/api/threads/{THREAD}/suggestions");
    let messages = json!([
        {"role": "user", "content": "What is a pudu?"},
        {"role": "assistant", "content": [{"type": "text", "text": "The smallest deer."}]},
        {"role": "system", "content": "hidden"},
    ]);
    api.house.model.next(Reply::text("Here: [\"How small?\", \"Where?\", \"Why?\"]").usage(1_000, 30));
    let ask = json!({"messages": messages, "n": 2});
    let expect = json!({"suggestions": ["How small?", "Where?"]});
    assert_eq!(api.send(Method::POST, &path, &ask).await, (200, expect));
    let asked = api.house.model.requests().pop().unwrap();
    let prompt = asked.last_user();
    assert!(prompt.contains("Person: What is a pudu?\n\nAssistant: The smallest deer."), "{prompt}");
    assert!(!prompt.contains("hidden"), "{prompt}");
    // It is written beside the answer.
    let spent = async {
        loop {
            let usage = api.call(Method::GET, "/api/usage", true, None).await.1;
            if let Some(model) = usage["models"].get(0) {
                break (model["input_tokens"].clone(), model["output_tokens"].clone());
            }
            tokio::task::yield_now().await;
        }
    };
    let spent = tokio::time::timeout(SOON, spent).await.unwrap();
    assert_eq!(spent, (json!(1_000), json!(30)));

    let nothing = json!({"suggestions": []});
    api.house.model.next(Reply::text("I would rather not."));
    assert_eq!(api.send(Method::POST, &path, &ask).await, (200, nothing.clone()));
    api.house.model.next(Reply::status(401));
    assert_eq!(api.send(Method::POST, &path, &ask).await, (200, nothing.clone()));
    let before = api.house.model.count();
    let silent = json!({"messages": [{"role": "user", "content": "  "}, {"role": "user", "content": 7}]});
    assert_eq!(api.send(Method::POST, &path, &silent).await, (200, nothing.clone()));
    for (body, status) in [
        (json!({"messages": messages, "n": 0}), 422),
        (json!({"messages": messages, "n": 6}), 422),
        (json!({"messages": "x"}), 422),
        (json!({}), 422),
    ] {
        assert_eq!(api.send(Method::POST, &path, &body).await.0, status);
    }
    assert_eq!(api.send(Method::POST, "/api/threads/a%20b/suggestions", &ask).await.0, 422);
    assert_eq!(api.house.model.count(), before, "nobody was asked for any of these");
    let off = Api::open("suggestions: {enabled: false}\n").await;
    assert_eq!(off.send(Method::POST, &path, &ask).await, (200, nothing));
    assert_eq!(off.house.model.count(), 0);
    let huge = json!({"messages": [{"role": "user", "content": "x".repeat(2 << 20)}]});
    assert_eq!(api.send(Method::POST, &path, &huge).await.0, 413);
}

#[tokio::test]
async fn suggestions_end_with_the_budget_of_whoever_asks() {
    let api = Api::open("budgets: {person: {tokens_per_day: 100}}\n").await;
    let path = format!("/api/threads/{THREAD}/suggestions");
    let ask = json!({"messages": [{"role": "user", "content": "hello"}]});
    let nothing = json!({"suggestions": []});
    assert_eq!(api.send(Method::POST, &path, &ask).await, (200, nothing));
    assert_eq!(api.send(Method::POST, "/api/input-polish", &json!({"text": "hello"})).await.0, 503);
    assert_eq!(api.house.model.count(), 0, "nothing is left to ask with");
}

#[tokio::test]
async fn a_text_is_worded_anew_and_nothing_of_it_is_kept() {
    let api = Api::open("input_polish: {max_chars: 20}\n").await;
    let path = "/api/input-polish";
    api.house.model.next(Reply::text("<request>\nFix the test, please.\n</request>"));
    let told = json!({"rewritten_text": "Fix the test, please.", "changed": true});
    assert_eq!(
        api.send(Method::POST, path, &json!({"text": " fix test pls ", "locale": "en-US"})).await,
        (200, told)
    );
    api.house.model.next(Reply::text("fix it"));
    let same = json!({"rewritten_text": "fix it", "changed": false});
    assert_eq!(
        api.send(Method::POST, path, &json!({"text": "fix it", "thread_id": THREAD})).await,
        (200, same)
    );
    assert_eq!(
        api.send(Method::POST, path, &json!({"text": " \n"})).await,
        (400, detail("the text is empty"))
    );
    let long = detail("the text has more than 20 characters");
    assert_eq!(api.send(Method::POST, path, &json!({"text": "x".repeat(21)})).await, (400, long));
    assert_eq!(api.send(Method::POST, path, &json!({"text": 1})).await.0, 422);
    api.house.model.next(Reply::status(401));
    assert_eq!(api.send(Method::POST, path, &json!({"text": "fix it"})).await.0, 503);
    let off = Api::open("input_polish: {enabled: false}\n").await;
    assert_eq!(off.send(Method::POST, path, &json!({"text": "fix it"})).await.0, 404);
}

#[tokio::test]
async fn memory_is_shown_changed_exported_and_forgotten() {
    let api = Api::open("memory: {debounce_seconds: 7}\n").await;
    let (status, empty) = api.get("/api/memory").await;
    let none = json!({"summary": "", "updatedAt": ""});
    let expect = json!({
        "version": "1.0",
        "revision": 0,
        "lastUpdated": "",
        "user": {"workContext": none, "personalContext": none, "topOfMind": none},
        "history": {"recentMonths": none, "earlierContext": none, "longTermBackground": none},
        "facts": [],
    });
    assert_eq!((status, empty), (200, expect));

    let tea = json!({"content": "Drinks tea", "category": "knowledge", "confidence": 0.9});
    let (status, mut document) = api.send(Method::POST, "/api/memory/facts", &tea).await;
    let fact = &mut document["facts"][0];
    let [id, created, updated] = ["id", "createdAt", "updatedAt"].map(|key| fact[key].take());
    assert_eq!((status, &created), (200, &updated));
    let id = id.as_str().unwrap().to_owned();
    let expect = json!({
        "id": null,
        "content": "Drinks tea",
        "category": "other",
        "categoryExtension": "knowledge",
        "topics": [],
        "confidence": 0.9,
        "createdAt": null,
        "updatedAt": null,
        "source": "manual",
        "schemaVersion": 2,
        "status": "active",
        "scope": {"userId": "default", "agentName": "__default__"},
        "revision": 1,
        "consolidatedFrom": [],
    });
    assert_eq!(document["facts"], json!([expect]));
    let again = api.send(Method::POST, "/api/memory/facts", &json!({"content": "drinks tea "})).await;
    assert_eq!(again, (409, detail(&format!("this is remembered already, as `{id}`"))));

    let at = format!("/api/memory/facts/{id}");
    let (status, document) =
        api.send(Method::PATCH, &at, &json!({"content": "Drinks green tea", "category": "preference"})).await;
    let fact = &document["facts"][0];
    let seen = (&fact["content"], &fact["category"], &fact["confidence"], fact.get("categoryExtension"));
    assert_eq!((status, seen), (200, (&json!("Drinks green tea"), &json!("preference"), &json!(0.9), None)));
    for (method, path, body, status) in [
        (Method::POST, "/api/memory/facts", json!({"content": " "}), 400),
        (Method::POST, "/api/memory/facts", json!({"content": "x", "confidence": 1.5}), 422),
        (Method::POST, "/api/memory/facts", json!({"content": "x".repeat(3_000)}), 422),
        (Method::POST, "/api/memory/facts", json!({}), 422),
        (Method::PATCH, "/api/memory/facts/none", json!({"content": "x"}), 404),
        (Method::PATCH, "/api/memory/facts/..%2Fx", json!({"content": "x"}), 404),
        (Method::DELETE, "/api/memory/facts/none", json!({}), 404),
        (Method::POST, "/api/memory/import", json!([1]), 422),
        (Method::POST, "/api/memory/import", json!({"facts": 7}), 422),
        (Method::GET, "/api/memory?agent=a_b", json!({}), 422),
    ] {
        assert_eq!(api.send(method, path, &body).await.0, status, "{path} {body}");
    }
    let missing = detail("Memory fact 'none' not found.");
    assert_eq!(api.call(Method::DELETE, "/api/memory/facts/none", false, None).await.1, missing);

    let exported = api.get("/api/memory/export").await.1;
    let (status, document) = api.call(Method::DELETE, &at, false, None).await;
    assert_eq!((status, &document["facts"]), (200, &json!([])));
    let (status, back) = api.send(Method::POST, "/api/memory/import", &exported).await;
    assert_eq!((status, &back["facts"][0]["content"]), (200, &json!("Drinks green tea")));
    assert_eq!(api.call(Method::POST, "/api/memory/reload", false, None).await.1, back);
    assert_eq!(api.get("/api/memory?agent=poet").await.1["facts"], json!([]), "another agent has its own");

    let (status, told) = api.get("/api/memory/status").await;
    assert_eq!(
        (status, &told["data"], &told["config"]),
        (200, &back, &api.get("/api/memory/config").await.1)
    );
    let config = &told["config"];
    let seed = ["enabled", "injection_enabled", "debounce_seconds", "max_facts", "manager_class", "mode"];
    let seed = seed.map(|key| config[key].clone());
    assert_eq!(json!(seed), json!([true, true, 7, 100, "deermem", "middleware"]));
    assert!(!told.to_string().contains("sk-simulated"), "{told}");
    let (status, cleared) = api.call(Method::DELETE, "/api/memory", false, None).await;
    assert_eq!((status, &cleared["facts"]), (200, &json!([])));
}

#[tokio::test]
async fn a_fact_that_is_written_down_is_told_with_the_next_question() {
    let api = Api::open("memory: {debounce_seconds: 300}\n").await;
    let tea = json!({"content": "Always drinks green tea", "category": "preference", "confidence": 1.0});
    assert_eq!(api.send(Method::POST, "/api/memory/facts", &tea).await.0, 200);
    let said = json!({"text": "What tea do I drink?"});
    assert_eq!(api.send(Method::POST, "/api/chat/x/messages", &said).await.0, 202);
    let told = |model: &pudu_sim::Model| {
        let asked = model.requests().into_iter().find(|ask| !learns(ask))?;
        Some(asked.body.to_string())
    };
    let asked = api.house.model.wait(SOON, |_| told(&api.house.model)).await.unwrap();
    assert!(asked.contains("Always drinks green tea"), "{asked}");
}

const SERVERS: &str = r#"{
  "other": {"kept":   1.50},
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files", "--api-key", "k3y"], "env": {"A": "s3cret-a"}, "enabled": false},
    "web": {
      "type": "http", "url": "http://127.0.0.1:9/mcp?token=qwertyuiop123456&page=2", "enabled": false,
      "headers": {"Authorization": "Bearer s3cret-h"}, "clientSecret": "s3cret-x", "team": "red",
      "oauth": {"enabled": false, "token_url": "http://127.0.0.1:9/t", "client_id": "me", "client_secret": "s3cret-o"}
    }
  }
}"#;

async fn with_servers(rest: &str) -> Api {
    let mut house = House::furnish(Options::default(), "", rest).await;
    std::fs::write(house.path("extensions_config.json"), SERVERS).unwrap();
    house.start();
    Api { house }
}

impl Api {
    fn stored(&self) -> (String, Value) {
        let text = std::fs::read_to_string(self.house.path("extensions_config.json")).unwrap();
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }
}

const MCP: &str = "/api/mcp/config";

#[tokio::test]
async fn only_an_admin_sees_the_mcp_servers_and_nobody_sees_their_secrets() {
    let api = with_servers("").await;
    let refused = (403, detail("Admin privileges required to manage MCP configuration."));
    for (method, path) in
        [(Method::GET, MCP), (Method::PUT, MCP), (Method::PATCH, MCP), (Method::POST, "/api/mcp/cache/reset")]
    {
        let body = json!({"mcp_servers": {}, "server_name": "web", "enabled": true});
        assert_eq!(api.send(method, path, &body).await, refused, "{path}");
    }
    let (status, told) = api.call(Method::GET, MCP, true, None).await;
    let routing = json!({"mode": "off", "priority": 0, "keywords": []});
    let files = json!({
        "enabled": false, "type": "stdio", "command": "npx", "args": ["-y", "files", "--api-key", "***"],
        "env": {"A": "***"}, "url": null, "headers": {}, "oauth": null, "description": "", "routing": routing,
        "tools": {}, "tool_name_prefix": true, "tool_call_timeout": null, "session_init_timeout": null,
        "task_toolsets": [],
    });
    let oauth = json!({
        "enabled": false, "token_url": "http://127.0.0.1:9/t", "client_id": "me", "client_secret": null,
    });
    let web = json!({
        "enabled": false, "type": "http", "command": null, "args": [], "env": {},
        "url": "http://127.0.0.1:9/mcp?token=***&page=2", "headers": {"Authorization": "***"}, "oauth": oauth,
        "description": "", "routing": routing, "tools": {}, "tool_name_prefix": true, "tool_call_timeout": null,
        "session_init_timeout": null, "task_toolsets": [], "clientSecret": "***", "team": "red",
    });
    assert_eq!((status, &told), (200, &json!({"mcp_servers": {"files": files, "web": web}})));

    // As it was shown it comes back, and nothing is another in the file.
    let before = api.stored().1;
    let (status, again) = api.operate(Method::PUT, MCP, &told).await;
    assert_eq!((status, again), (200, told));
    let (text, after) = api.stored();
    assert_eq!(after, before);
    assert!(text.contains("1.50"), "what is others' stays as it was typed: {text}");
}

#[tokio::test]
async fn an_admin_changes_servers_and_what_is_masked_stays() {
    let api = with_servers("").await;
    let servers = api.call(Method::GET, MCP, true, None).await.1["mcp_servers"].clone();
    let put = |edit: &dyn Fn(&mut Value)| {
        let mut edited = servers.clone();
        edit(&mut edited);
        json!({ "mcp_servers": edited })
    };
    let (status, told) = api
        .operate(
            Method::PUT,
            MCP,
            &put(&|servers| {
                servers["web"]["description"] = json!("The web");
                servers["web"]["headers"]["X-Team"] = json!("blue");
                servers["web"]["oauth"]["client_secret"] = json!("");
                servers["web"].as_object_mut().unwrap().remove("team");
                servers.as_object_mut().unwrap().remove("files");
            }),
        )
        .await;
    assert_eq!((status, &told["mcp_servers"]["web"]["headers"]["X-Team"]), (200, &json!("***")));
    let web = json!({
        "type": "http", "url": "http://127.0.0.1:9/mcp?token=qwertyuiop123456&page=2", "enabled": false,
        "headers": {"Authorization": "Bearer s3cret-h", "X-Team": "blue"}, "clientSecret": "s3cret-x", "team": "red",
        "oauth": {"enabled": false, "token_url": "http://127.0.0.1:9/t", "client_id": "me"}, "description": "The web",
    });
    assert_eq!(api.stored().1["mcpServers"], json!({"web": web}));
    let (status, told) =
        api.operate(Method::PATCH, MCP, &json!({"server_name": "web", "enabled": true})).await;
    assert_eq!((status, &told["mcp_servers"]["web"]["enabled"]), (200, &json!(true)));
    assert_eq!(api.stored().1["mcpServers"]["web"]["enabled"], json!(true));
    let missing = detail("MCP server 'none' not found");
    let switch = json!({"server_name": "none", "enabled": true});
    assert_eq!(api.operate(Method::PATCH, MCP, &switch).await, (404, missing));
}

#[tokio::test]
async fn nobody_starts_a_program_or_takes_a_secret_elsewhere_over_http() {
    let api = with_servers("gateway: {mcp_commands: [npx, node]}\n").await;
    let servers = api.call(Method::GET, MCP, true, None).await.1["mcp_servers"].clone();
    let before = api.stored().0;
    let add = |server: Value| {
        let mut edited = servers.clone();
        edited["new"] = server;
        edited
    };
    let change = |server: &str, key: &str, value: Value| {
        let mut edited = servers.clone();
        edited[server][key] = value;
        edited
    };
    let node = |args: Value| add(json!({"command": "node", "args": args}));
    let cases = [
        ("a program that nobody named", add(json!({"command": "sh", "args": ["-c", "id"]})), "mcp_commands"),
        ("a path to one that is", add(json!({"command": "/tmp/npx"})), "mcp_commands"),
        ("words as code", node(json!(["-e", "1"])), "runs words as code"),
        ("words as code, printed", node(json!(["-pe", "1"])), "runs words as code"),
        ("words as code, in one", node(json!(["--eval=1"])), "runs words as code"),
        ("a launcher's shell", add(json!({"command": "npx", "args": ["-c", "id"]})), "runs words as code"),
        (
            "a variable that loads code",
            add(json!({"command": "npx", "env": {"Node_Options": "x"}})),
            "Node_Options",
        ),
        (
            "another program of the same server",
            change("files", "command", json!("node")),
            "masked values anew",
        ),
        ("another type", change("web", "type", json!("stdio")), "masked values anew"),
        (
            "a secret to another place",
            change("web", "url", json!("http://127.0.0.1:10/mcp")),
            "masked values anew",
        ),
        (
            "a mask for nothing",
            add(json!({"type": "http", "url": "http://x", "headers": {"A": "***"}})),
            "'***'",
        ),
        (
            "a variable of the daemon",
            add(json!({"type": "http", "url": "http://x", "headers": {"A": "$HOME"}})),
            "variable",
        ),
        ("no name", json!({"a b": {"type": "http", "url": "http://x"}}), "name"),
        ("no server", json!({"a": 1}), "no JSON object"),
        ("a wrong type", json!({"a": {"type": "http", "url": "http://x", "args": "x"}}), "args"),
    ];
    for (what, edited, words) in cases {
        let (status, told) = api.operate(Method::PUT, MCP, &json!({ "mcp_servers": edited })).await;
        assert_eq!(status, 400, "{what}: {told}");
        assert!(told["detail"].as_str().unwrap().contains(words), "{what}: {told}");
    }
    assert_eq!(api.stored().0, before, "nothing of it is in the file");
    for body in [json!({}), json!({"mcp_servers": []}), json!([])] {
        assert_eq!(api.operate(Method::PUT, MCP, &body).await.0, 422, "{body}");
    }
    let allowed = add(json!({"command": "npx", "args": ["-y", "-p", "files", "files"], "enabled": false}));
    assert_eq!(api.operate(Method::PUT, MCP, &json!({ "mcp_servers": allowed })).await.0, 200);
    // Without a list there is no program at all, but those that the operator wrote can be switched.
    let closed = with_servers("").await;
    let added = json!({"mcp_servers": {"new": {"command": "npx", "args": ["x"]}}});
    assert_eq!(closed.operate(Method::PUT, MCP, &added).await.0, 400);
    let switch = json!({"server_name": "files", "enabled": false});
    assert_eq!(closed.operate(Method::PATCH, MCP, &switch).await.0, 200);
}

#[tokio::test]
async fn servers_that_are_reset_are_connected_anew() {
    let api = with_servers("").await;
    let (status, told) = api.call(Method::POST, "/api/mcp/cache/reset", true, None).await;
    assert_eq!((status, &told["success"], told["message"].is_string()), (200, &json!(true), true));
    api.house.logs("connected MCP servers").await;
}

#[tokio::test]
async fn agents_keep_how_they_think_and_answer() {
    let api = Api::open("agents_api: {enabled: true}\n").await;
    let poet = json!({
        "name": "poet", "model_settings": {"temperature": 0.5, "max_tokens": 900}, "thinking_enabled": true,
        "reasoning_effort": "low",
    });
    let (status, made) = api.operate(Method::POST, "/api/agents", &poet).await;
    let expect = json!({
        "name": "poet", "description": "", "model": null, "tool_groups": null, "skills": null, "soul": "",
        "model_settings": {"temperature": 0.5, "max_tokens": 900}, "thinking_enabled": true, "reasoning_effort": "low",
    });
    assert_eq!((status, &made), (201, &expect));
    assert_eq!(api.get("/api/agents/poet").await, (200, expect));
    let options = |told: &Value| {
        ["model_settings", "thinking_enabled", "reasoning_effort"].map(|key| told[key].clone())
    };
    for (edit, expect) in [
        (json!({"soul": "You rhyme."}), json!([{"temperature": 0.5, "max_tokens": 900}, true, "low"])),
        (
            json!({"model_settings": {"max_tokens": 7}}),
            json!([{"temperature": null, "max_tokens": 7}, true, "low"]),
        ),
        (json!({"thinking_enabled": false}), json!([{"temperature": null, "max_tokens": 7}, false, null])),
        (json!({"model_settings": null, "thinking_enabled": null}), json!([null, null, null])),
    ] {
        let (status, told) = api.operate(Method::PUT, "/api/agents/poet", &edit).await;
        assert_eq!((status, json!(options(&told))), (200, expect), "{edit}");
        assert_eq!(api.get("/api/agents/poet").await.1, told);
    }
    for wrong in [
        json!({"model_settings": {"temperature": 3}}),
        json!({"model_settings": {"top": 3}}),
        json!({"thinking_enabled": "yes"}),
        json!({"reasoning_effort": "huge"}),
    ] {
        assert_eq!(api.operate(Method::PUT, "/api/agents/poet", &wrong).await.0, 422, "{wrong}");
    }
}

#[tokio::test]
async fn a_profile_is_kept_for_whoever_wrote_it() {
    let api = Api::open("agents_api: {enabled: true}\n").await;
    let path = "/api/user-profile";
    assert_eq!(api.get(path).await, (200, json!({"content": null})));
    let content = json!({"content": "I am Ada."});
    assert_eq!(api.send(Method::PUT, path, &content).await, (200, content.clone()));
    assert_eq!(api.get(path).await, (200, content));
    let kept = std::fs::read_to_string(api.house.path(".pudu/users/default/USER.md")).unwrap();
    assert_eq!(kept, "I am Ada.");
    assert_eq!(api.send(Method::PUT, path, &json!({"content": "x".repeat(70_000)})).await.0, 413);
    assert_eq!(api.send(Method::PUT, path, &json!({"content": 1})).await.0, 422);
    assert_eq!(api.send(Method::PUT, path, &json!({"content": " "})).await, (200, json!({"content": null})));
    assert_eq!(api.get(path).await, (200, json!({"content": null})));
    assert_eq!(Api::open("").await.get(path).await.0, 403);
}

#[tokio::test]
async fn a_custom_skill_is_written_taken_away_and_brought_back() {
    let api = Api::open("").await;
    let text = |words: &str| format!("---\nname: offers\ndescription: Writes offers.\n---\n{words}\n");
    let folder = api.house.path(".pudu/users/default/skills/custom/offers");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), text("One.")).unwrap();
    let path = "/api/skills/custom/offers";
    let edit = json!({"content": text("Two.")});
    assert_eq!(api.send(Method::PUT, path, &edit).await.0, 403);
    assert_eq!(api.call(Method::DELETE, path, false, None).await.0, 403);
    let (status, skill) = api.operate(Method::PUT, path, &edit).await;
    let expect = json!({
        "name": "offers", "description": "Writes offers.", "license": null, "category": "custom", "enabled": true,
        "editable": true, "content": text("Two."),
    });
    assert_eq!((status, skill), (200, expect));
    for (path, body, status) in [
        (path, json!({"content": "no skill"}), 400),
        (path, json!({}), 422),
        ("/api/skills/custom/none", edit.clone(), 404),
        ("/api/skills/custom/code-review", edit, 404),
    ] {
        assert_eq!(api.operate(Method::PUT, path, &body).await.0, status, "{path}");
    }
    assert_eq!(api.call(Method::DELETE, path, true, None).await, (200, json!({"success": true})));
    assert_eq!(api.call(Method::DELETE, path, true, None).await.0, 404);
    let (status, back) = api.operate(Method::POST, &format!("{path}/rollback"), &json!({})).await;
    assert_eq!((status, &back["content"]), (200, &json!(text("Two."))));
    let (status, told) = api.call(Method::POST, "/api/skills/reload", true, None).await;
    assert_eq!((status, &told["success"], &told["scope"]), (200, &json!(true), &json!("process")));
    assert_eq!(api.call(Method::POST, "/api/skills/reload", false, None).await.0, 403);
    assert_eq!(api.send(Method::PUT, "/api/skills/code-review", &json!({"enabled": false})).await.0, 403);
}

#[tokio::test]
async fn whoever_shows_a_code_of_the_page_to_a_bot_is_one_person_with_it() {
    let api = Api::open("").await;
    let ada = Talker::new(&api.house, "Ada");
    ada.says("hello", "echo: hello").await;
    let (status, told) = api.get("/api/channels/providers").await;
    let provider = |status: &str| {
        json!({
            "provider": "telegram", "display_name": "Telegram", "enabled": true, "configured": true,
            "connectable": true, "unavailable_reason": null, "auth_mode": "deep_link", "connection_status": status,
            "credential_fields": [], "credential_values": {},
        })
    };
    assert_eq!((status, told), (200, json!({"enabled": true, "providers": [provider("not_connected")]})));
    assert_eq!(api.get("/api/channels/connections").await, (200, json!({"connections": []})));

    let connect = "/api/channels/telegram/connect";
    let former = api.send(Method::POST, connect, &json!({})).await.1["code"].as_str().unwrap().to_owned();
    let (status, offer) = api.send(Method::POST, connect, &json!({})).await;
    let code = offer["code"].as_str().unwrap().to_owned();
    let expect = json!({
        "provider": "telegram", "mode": "deep_link", "url": offer["url"], "code": code,
        "instruction": format!("Send /connect {code} to the bot in a private chat."), "expires_in": 600,
    });
    assert_eq!((status, &offer), (200, &expect));
    assert!(offer["url"].as_str().unwrap().ends_with(&code), "{offer}");
    ada.says(
        &format!("/connect {former} yes"),
        "This code is not valid, or not any more. Ask whoever runs this bot for a new one.",
    )
    .await;
    ada.say(&format!("/connect {code} yes"));
    ada.reads_so(|text| text.starts_with("Done: here you are ")).await;

    let (status, told) = api.get("/api/channels/connections").await;
    let connection = &told["connections"][0];
    let expect = json!({
        "id": connection["id"], "provider": "telegram", "status": "connected",
        "external_account_id": ada.person.0.to_string(), "external_account_name": "Ada", "workspace_id": null,
        "workspace_name": null, "scopes": [], "metadata": {"connected_at": connection["metadata"]["connected_at"]},
    });
    assert_eq!((status, &told), (200, &json!({"connections": [expect]})));
    let linked = api.get("/api/channels/providers").await.1;
    assert_eq!(linked["providers"], json!([provider("connected")]));

    let at = format!("/api/channels/connections/{}", connection["id"].as_str().unwrap());
    assert_eq!(api.call(Method::DELETE, &at, false, None).await, (204, Value::Null));
    let missing = (404, detail("Channel connection not found"));
    assert_eq!(api.call(Method::DELETE, &at, false, None).await, missing);
    assert_eq!(api.get("/api/channels/connections").await, (200, json!({"connections": []})));
    assert_eq!(api.send(Method::POST, "/api/channels/none/connect", &json!({})).await.0, 404);
    assert_eq!(api.send(Method::POST, "/api/channels/local/connect", &json!({})).await.0, 404);
    // The operator's token, which is nobody's own, still makes a code that admits a person.
    assert_eq!(
        api.call(Method::POST, connect, true, None).await.0,
        409,
        "this account admits nobody by a code"
    );
}

#[tokio::test]
async fn an_output_is_edited_if_nobody_changed_it_meanwhile() {
    let api = Api::open("").await;
    let uploads = format!("http://{}/api/threads/{THREAD}/uploads", api.house.address);
    let part = reqwest::multipart::Part::bytes(b"x".to_vec()).file_name("x.txt");
    let form = reqwest::multipart::Form::new().part("files", part);
    assert!(http().post(uploads).multipart(form).send().await.unwrap().status().is_success());
    let outputs = api.house.path(format!(".pudu/users/default/threads/{THREAD}/user-data/outputs"));
    std::fs::create_dir_all(&outputs).unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(outputs.join(name), bytes).unwrap();
    write("a.txt", b"one");
    write("b.bin", &[0xff, 0, 1]);
    write("big.txt", &vec![b'x'; (2 << 20) + 1]);
    std::os::unix::fs::symlink("a.txt", outputs.join("link.txt")).unwrap();
    // They are the agent's, as the uploads are.
    let own = std::fs::metadata(outputs.with_file_name("uploads")).unwrap();
    for path in [outputs.clone(), outputs.join("a.txt"), outputs.join("b.bin"), outputs.join("big.txt")] {
        chown(path, Some(own.uid()), Some(own.gid())).unwrap();
    }
    let sha = |bytes: &[u8]| pudu_client::base::digest(bytes);
    let at = |path: &str| format!("/api/threads/{THREAD}/artifacts/mnt/user-data/{path}");
    let edit = |content: &str, of: &[u8]| json!({"content": content, "expected_sha256": sha(of)});
    let (status, told) = api.send(Method::PUT, &at("outputs/a.txt"), &edit("zwei ü", b"one")).await;
    let expect =
        json!({"path": "/mnt/user-data/outputs/a.txt", "sha256": sha("zwei ü".as_bytes()), "size": 7});
    assert_eq!((status, told), (200, expect));
    assert_eq!(std::fs::read_to_string(outputs.join("a.txt")).unwrap(), "zwei ü");
    let cases = [
        ("outputs/a.txt", edit("three", b"one"), 412),
        ("outputs/a.txt", edit(&"x".repeat((2 << 20) + 1), "zwei ü".as_bytes()), 413),
        ("outputs/big.txt", edit("x", b""), 413),
        ("outputs/b.bin", edit("x", &[0xff, 0, 1]), 415),
        ("outputs/link.txt", edit("x", "zwei ü".as_bytes()), 400),
        ("outputs/none.txt", edit("x", b""), 404),
        ("uploads/x.txt", edit("y", b"x"), 403),
        ("workspace/x.txt", edit("y", b"x"), 403),
        ("outputs/%2e%2e/x.txt", edit("y", b"x"), 403),
        ("outputs/a.txt", json!({"content": "x"}), 422),
    ];
    for (path, body, status) in cases {
        assert_eq!(api.send(Method::PUT, &at(path), &body).await.0, status, "{path}");
    }
    let elsewhere = "/api/threads/nobody/artifacts/mnt/user-data/outputs/a.txt";
    assert_eq!(api.send(Method::PUT, elsewhere, &edit("x", b"x")).await.0, 404);
    assert_eq!(std::fs::read_to_string(outputs.join("a.txt")).unwrap(), "zwei ü");
}
