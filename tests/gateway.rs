//! DeerFlow's API other than threads and runs, as used by its web frontend and scripts: shapes, codes and details.

use crate::house::{House, SOON, http};
use pudu_sim::{model::Reply, telegram::Options};
use reqwest::Method;
use serde_json::{Value, json};

pub const THREAD: &str = "7d1f6c9e-0000-4000-8000-00000000000a";

/// A daemon and its client, with or without the operator's token.
pub struct Api {
    pub house: House,
}

impl Api {
    pub async fn open(rest: &str) -> Self {
        let mut house = House::furnish(Options::default(), "", rest).await;
        house.start();
        Self { house }
    }

    pub async fn call(&self, method: Method, path: &str, admin: bool, body: Option<&Value>) -> (u16, Value) {
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

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, false, None).await
    }

    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.call(method, path, false, Some(body)).await
    }

    pub async fn operate(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.call(method, path, true, Some(body)).await
    }
}

pub fn detail(detail: &str) -> Value {
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
    // It is written concurrently with the answer.
    let spent = async {
        loop {
            let usage = api.call(Method::GET, "/api/usage", true, None).await.1;
            if let Some(model) = usage["models"].get(0) {
                let names = ["people", "accounts", "callers"].map(|part| &usage[part][0]["name"]);
                break json!([model["input_tokens"], model["output_tokens"], names]);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let spent = tokio::time::timeout(SOON, spent).await.unwrap();
    assert_eq!(spent, json!([1_000, 30, ["default", "api", "assistance"]]));
    let (_, table) = api.house.pudu(&["usage"]);
    assert!(table.contains("the operator (default): 1000 input tokens"), "{table}");
    assert!(!table.contains("forgotten"), "{table}");

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
