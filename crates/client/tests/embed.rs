//! Tests of the agent as embedded in another program.
#![allow(clippy::unwrap_used, reason = "tests")]

use pudu_client::{
    Client,
    agent::{Agent, AgentSetup, MemoryMode, MemoryOf, MemoryRules, MemorySetup, ModelInfo},
    base::{Model, ThreadId, UserId},
    embed::UploadError,
    harness::RunBounds,
    memories::MemoryOptions,
    model::Offline,
    runs::RunManager,
    sandbox::{Folders, LocalSandboxes, Options},
    skills::{CatalogPaths, Skills},
    store::{Db, DbLocation},
    wire::memory::{AddedFact, FactChange},
};
use serde_json::{Value, json};
use std::{fs, path::Path, sync::Arc, time::Duration};

/// Opens an agent with skills and memory.
async fn client(home: &Path) -> Client {
    let db = Db::open(&DbLocation::Memory).await.unwrap();
    let folders = Folders::new(home.to_owned(), None);
    let places = LocalSandboxes::new(folders.clone(), None, Options::default());
    let model: Arc<dyn Model> = Arc::new(Offline);
    let models = [(ModelInfo::named("offline"), model)];
    let rules = MemoryRules {
        mode: MemoryMode::Tool,
        injection: false,
        debounce: Duration::from_secs(7),
        max_waiting: 0,
        last_reading: Duration::ZERO,
        shared_people: false,
        options: MemoryOptions::default(),
    };
    let setup = AgentSetup::new(models, [], RunBounds::default(), Arc::new(places));
    let at = |name: &str| home.join(name);
    let skills = Skills::new(CatalogPaths {
        shipped: at("shipped"),
        shelf: at("shelf"),
        own: at("own"),
        users: at("users"),
        state: at("extensions_config.json"),
        container: "/mnt/skills".to_owned(),
    });
    let memory = MemorySetup::new(rules, None, &setup.models);
    let agent = Agent::new(db, folders, AgentSetup { memory, ..setup }, skills);
    RunManager::new(agent, 1).into()
}

#[tokio::test]
async fn models_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let client = client(home.path()).await;
    let model = json!({
        "name": "offline", "model": "offline", "display_name": "offline", "description": null,
        "supports_thinking": false, "supports_reasoning_effort": false,
    });
    assert_eq!(json!(client.list_models()), json!({ "models": [model], "token_usage": { "enabled": true } }));
    assert_eq!(json!(client.get_model("offline")), model);
    assert_eq!(client.get_model("none"), None);
}

#[tokio::test]
async fn skills_are_installed_listed_and_switched() {
    let home = tempfile::tempdir().unwrap();
    let client = client(home.path()).await;
    let archive = home.path().join("tea.skill");
    let mut zip = zip::ZipWriter::new(fs::File::create(&archive).unwrap());
    zip.start_file("tea/SKILL.md", zip::write::SimpleFileOptions::default()).unwrap();
    let text = "---\nname: tea\ndescription: Makes tea.\n---\nBoil water.\n";
    std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
    zip.finish().unwrap();
    let installed = json!({
        "success": true, "skill_name": "tea", "message": "Skill 'tea' installed successfully", "findings": [],
        "notes": [],
    });
    assert_eq!(json!(client.install_skill(&archive).await.unwrap()), installed);
    assert!(client.install_skill(&archive).await.is_err(), "a skill with this name exists");
    let mut skill = json!({
        "name": "tea", "description": "Makes tea.", "license": null, "category": "custom", "enabled": true,
        "editable": true,
    });
    assert_eq!(json!(client.list_skills().await), json!({ "skills": [skill] }));
    skill["enabled"] = false.into();
    assert_eq!(json!(client.update_skill(&UserId::local(), "tea", false).await.unwrap()), skill);
    assert_eq!(json!(client.get_skill("tea").await.unwrap()), skill);
    assert!(client.get_skill("coffee").await.is_err());
}

#[tokio::test]
async fn memory_is_one_document() {
    let home = tempfile::tempdir().unwrap();
    let (client, me) = (client(home.path()).await, MemoryOf::default());
    let facts = |document: &Value| -> Vec<String> {
        let facts = document["facts"].as_array().unwrap();
        facts.iter().map(|fact| fact["content"].as_str().unwrap().to_owned()).collect()
    };
    let document = client.create_memory_fact(&me, AddedFact::new("Drinks tea")).await.unwrap();
    assert_eq!(facts(&document), ["Drinks tea"]);
    assert!(
        client.create_memory_fact(&me, AddedFact::new("Drinks tea")).await.is_err(),
        "the fact is already known"
    );
    let id = document["facts"][0]["id"].as_str().unwrap();
    let export = client.export_memory(&me).await.unwrap();
    let change = FactChange { content: Some("Drinks coffee".to_owned()), ..FactChange::default() };
    assert_eq!(facts(&client.update_memory_fact(&me, id, change).await.unwrap()), ["Drinks coffee"]);
    assert!(facts(&client.delete_memory_fact(&me, id).await.unwrap()).is_empty());
    assert_eq!(facts(&client.import_memory(&me, export).await.unwrap()), ["Drinks tea"]);
    assert_eq!(client.get_memory(&me).await.unwrap(), client.reload_memory(&me).await.unwrap());
    assert!(facts(&client.clear_memory(&me).await.unwrap()).is_empty());
    let status = client.get_memory_status(&me).await.unwrap();
    assert_eq!(status["config"], client.get_memory_config());
    assert_eq!(
        (&status["config"]["mode"], &status["config"]["debounce_seconds"]),
        (&json!("tool"), &json!(7))
    );
}

#[tokio::test]
async fn uploads_are_stored_all_or_none_and_can_be_deleted() {
    let home = tempfile::tempdir().unwrap();
    let (client, thread) = (client(home.path()).await, ThreadId::from("trip"));
    let (table, folder) = (home.path().join("a b.csv"), home.path().join("folder"));
    fs::write(&table, "x,y\n1,2\n").unwrap();
    fs::create_dir(&folder).unwrap();
    let refused = client.upload_files("trip", &[table.clone(), folder.clone()]).await;
    assert!(matches!(refused, Err(UploadError::NoFile(path)) if path == folder));
    assert_eq!(client.list_uploads(&thread).await.unwrap().count, 0, "no upload is stored in part");
    let taken = json!(client.upload_files("trip", std::slice::from_ref(&table)).await.unwrap());
    assert_eq!(
        (&taken["success"], &taken["message"]),
        (&json!(true), &json!("Successfully uploaded 1 file(s)"))
    );
    let file = &taken["files"][0];
    assert_eq!(file["markdown_file"], "a b.md", "{file}");
    assert_eq!(file["artifact_url"], "/api/threads/trip/artifacts/mnt/user-data/uploads/a%20b.csv", "{file}");
    assert!(table.exists(), "the file is copied");
    let path = file["path"].as_str().unwrap();
    let (bytes, kind) = client.get_artifact(&thread, path).await.unwrap();
    assert_eq!((bytes.as_slice(), kind), (&b"x,y\n1,2\n"[..], "text/csv"));
    for wrong in ["/etc/passwd", "mnt/user-data/workspace/a", "mnt/user-data/uploads/../a"] {
        assert!(client.get_artifact(&thread, wrong).await.is_err(), "{wrong}");
    }
    let gone = client.delete_upload(&thread, "a b.csv").await.unwrap();
    assert_eq!(json!(gone), json!({ "success": true, "message": "Deleted a b.csv" }));
    assert_eq!(client.list_uploads(&thread).await.unwrap().count, 0, "its extracted text is removed as well");
    assert!(client.delete_upload(&thread, "a b.csv").await.is_err());
    assert_eq!(fs::read_dir(home.path().join("tmp")).unwrap().count(), 0, "no temporary file is left");
}

#[tokio::test]
async fn threads_are_listed_and_have_goals() {
    let home = tempfile::tempdir().unwrap();
    let (client, thread) = (client(home.path()).await, ThreadId::from("trip"));
    assert_eq!(client.get_thread(&thread).await.unwrap(), None);
    client.chat("trip", "hello").await.unwrap();
    let listed = json!(client.list_threads(10).await.unwrap());
    assert_eq!((&listed[0]["thread_id"], &listed[0]["status"]), (&json!("trip"), &json!("idle")));
    assert_eq!(listed[0]["values"].get("messages"), None);
    let shown = json!(client.get_thread(&thread).await.unwrap());
    assert_eq!(shown["values"]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(client.get_goal(&thread).await.unwrap(), json!({ "goal": null }));
    assert!(client.set_goal(&thread, " ", None).await.is_err());
    let goal = client.set_goal(&thread, "be  ready", Some(3)).await.unwrap();
    assert_eq!(
        (&goal["goal"]["objective"], &goal["goal"]["max_continuations"]),
        (&json!("be ready"), &json!(3))
    );
    client.clear_goal(&thread).await.unwrap();
    assert_eq!(client.get_goal(&thread).await.unwrap(), json!({ "goal": null }));
}
