//! DeerFlow's API for shared settings: MCP servers, agents, skills.

use crate::{
    gateway::{Api, detail},
    house::House,
};
use pudu_sim::telegram::Options;
use reqwest::Method;
use serde_json::{Value, json};

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

    // Sending back the response changes nothing in the file.
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
        ("words as code", node(json!(["-e", "1"])), "runs text as code"),
        ("words as code, printed", node(json!(["-pe", "1"])), "runs text as code"),
        ("words as code, in one", node(json!(["--eval=1"])), "runs text as code"),
        ("a launcher's shell", add(json!({"command": "npx", "args": ["-c", "id"]})), "runs text as code"),
        (
            "a variable that loads code",
            add(json!({"command": "npx", "env": {"Node_Options": "x"}})),
            "Node_Options",
        ),
        (
            "another program of the same server",
            change("files", "command", json!("node")),
            "masked values again",
        ),
        ("another type", change("web", "type", json!("stdio")), "masked values again"),
        (
            "a secret to another place",
            change("web", "url", json!("http://127.0.0.1:10/mcp")),
            "masked values again",
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
        (
            "a secret for another provider of tokens",
            change(
                "web",
                "oauth",
                json!({"enabled": false, "token_url": "http://127.0.0.1:8/t", "client_id": "me", "client_secret": null}),
            ),
            "send its masked values again",
        ),
        ("no server", json!({"a": 1}), "must be a JSON object"),
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
    // Without an allowlist no program can be added, but the operator's can be switched.
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
