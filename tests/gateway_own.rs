//! DeerFlow's API for the caller's own data: memory, profile, chats, files.

use crate::{
    gateway::{Api, THREAD, detail},
    house::{SOON, Talker, http},
    memory::learns,
};
use pudu_sim::model::At;
use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, chown};

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
    assert_eq!(again, (409, detail(&format!("this fact is already stored as `{id}`"))));

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

    // An export of more than 1 MiB can be imported, whatever `max_facts` is.
    let facts = (0..220).map(|n| json!({"content": format!("Fact {n}: {}", "喜欢绿茶".repeat(470))}));
    let large = json!({"version": "1.0", "facts": facts.collect::<Vec<_>>()});
    assert_eq!(api.send(Method::POST, "/api/memory/import", &large).await.0, 200);
    let exported = api.get("/api/memory/export").await.1;
    assert!(exported.to_string().len() > 1 << 20);
    assert_eq!(api.send(Method::POST, "/api/memory/import", &exported).await.0, 200);
    assert_eq!(api.get("/api/memory/export").await.1["facts"].as_array().unwrap().len(), 220);
    let (status, back) = api.send(Method::POST, "/api/memory/import", &back).await;
    assert_eq!(status, 200);
    let secret = json!({"content": "The PIN of my card is 4821"});
    assert_eq!(api.send(Method::POST, "/api/memory/facts", &secret).await.0, 422);

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
    assert_eq!(api.house.begin_run("x", "What tea do I drink?").await, 200);
    let told = |model: &pudu_sim::Model| {
        let asked = model.requests().into_iter().find(|ask| !learns(ask))?;
        Some(asked.body.to_string())
    };
    let asked = api.house.model.wait(SOON, |_| told(&api.house.model)).await.unwrap();
    assert!(asked.contains("Always drinks green tea"), "{asked}");
}

#[tokio::test]
async fn a_profile_is_kept_for_whoever_wrote_it_and_told_to_the_agent() {
    let api = Api::open("agents_api: {enabled: true}\n").await;
    let path = "/api/user-profile";
    assert_eq!(api.get(path).await, (200, json!({"content": null})));
    let content = json!({"content": "I am Ada."});
    assert_eq!(api.send(Method::PUT, path, &content).await, (200, content.clone()));
    assert_eq!(api.get(path).await, (200, content));
    let kept = std::fs::read_to_string(api.house.path(".pudu/users/default/USER.md")).unwrap();
    assert_eq!(kept, "I am Ada.");
    let said = json!({"input": {"messages": [{"type": "human", "content": "hello"}]}});
    assert_eq!(api.send(Method::POST, "/api/runs/wait", &said).await.0, 200);
    let asked = api.house.model.requests()[0].body.to_string();
    assert!(asked.contains("I am Ada."), "{asked}");
    assert_eq!(api.send(Method::PUT, path, &json!({"content": "x".repeat(70_000)})).await.0, 413);
    assert_eq!(api.send(Method::PUT, path, &json!({"content": 1})).await.0, 422);
    assert_eq!(api.send(Method::PUT, path, &json!({"content": " "})).await, (200, json!({"content": null})));
    assert_eq!(api.get(path).await, (200, json!({"content": null})));
    assert_eq!(Api::open("").await.get(path).await.0, 403);
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
            "connectable": true, "unavailable_reason": null, "auth_mode": "binding_code", "connection_status": status,
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
        "provider": "telegram", "mode": "binding_code", "url": null, "code": code,
        "instruction": format!("Send /connect {code} to the bot in a private chat."), "expires_in": 600,
    });
    assert_eq!((status, &offer), (200, &expect));
    ada.says(
        &format!("/connect {former} yes"),
        "This code is invalid or has expired. Ask your admin for a new one.",
    )
    .await;
    ada.say(&format!("/connect {code} yes"));
    ada.reads_so(|text| text.starts_with("Done: you are now ")).await;

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
    // The operator's token, which has no user, can still create a code.
    assert_eq!(
        api.call(Method::POST, connect, true, None).await.0,
        409,
        "this account admits nobody by a code"
    );
}

#[tokio::test]
async fn an_output_is_edited_if_nobody_changed_it_meanwhile() {
    let api = Api::open("").await;
    assert_eq!(api.send(Method::POST, "/api/threads", &json!({"thread_id": THREAD})).await.0, 200);
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
    // They belong to the agent's user, like the uploads.
    let own = std::fs::metadata(outputs.with_file_name("uploads")).unwrap();
    for path in [outputs.clone(), outputs.join("a.txt"), outputs.join("b.bin"), outputs.join("big.txt")] {
        chown(path, Some(own.uid()), Some(own.gid())).unwrap();
    }
    let sha = |bytes: &[u8]| pudu_base::digest(bytes);
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
    let mut hold = api.house.model.hold(1, At::Start);
    let run =
        json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": "hi"}]}});
    assert_eq!(api.send(Method::POST, &format!("/api/threads/{THREAD}/runs"), &run).await.0, 200);
    hold.reached().await.unwrap();
    let late = edit("three", "zwei ü".as_bytes());
    assert_eq!(api.send(Method::PUT, &at("outputs/a.txt"), &late).await.0, 409, "the agent works on it");
    hold.proceed();
    assert_eq!(std::fs::read_to_string(outputs.join("a.txt")).unwrap(), "zwei ü");
}
