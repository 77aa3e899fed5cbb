use crate::{
    FactCategory, FactSource, MemoryError, MemoryScope, SummaryKey,
    files::tests::kill_after,
    store::tests::scene::{NOW, Scene, deerflow, exists},
};
use serde_json::json;
use std::fs;

fn old_memory() -> String {
    json!({
        "version": "1.0",
        "lastUpdated": "2026-01-01T00:00:00Z",
        "user": {"workContext": {"summary": "Works at X", "updatedAt": "2026-01-01T00:00:00Z"}},
        "history": {},
        "facts": [
            {"id": "fact_aaaa1111", "content": "Likes tea", "category": "preference", "confidence": 0.9, "createdAt": "2026-01-01T00:00:00Z", "source": "thread-1"},
            {"id": "bad id/..", "content": "Knows Rust", "category": "knowledge", "confidence": 7, "createdAt": "never", "source": "manual", "sourceError": "said Go"},
            {"id": "fact_aaaa1111", "content": "The same name"},
            {"content": ""},
            "no fact",
        ],
    })
    .to_string()
}

#[test]
fn memory_of_version_1_moves_into_files_and_stays_as_a_backup() {
    let scene = Scene::new();
    scene.put("memory.json", old_memory());
    let document = scene.read();
    assert_eq!(document.summaries.get(SummaryKey::WorkContext).text, "Works at X");
    assert_eq!(document.revision, 1);
    let mut facts: Vec<_> = document
        .facts
        .iter()
        .map(|fact| (fact.content.as_str(), fact.category.clone(), fact.confidence, fact.source.clone()))
        .collect();
    facts.sort_by_key(|fact| fact.0);
    let unknown = FactSource::parse("unknown");
    assert_eq!(
        facts,
        [
            ("Knows Rust", FactCategory::Other(Some("knowledge".into())), 1.0, FactSource::manual()),
            ("Likes tea", FactCategory::Preference, 0.9, FactSource::conversation("thread-1")),
            ("The same name", FactCategory::Context, 0.5, unknown),
        ]
    );
    let backup = fs::read_to_string(scene.user().join("memory.json.v1.bak")).unwrap();
    assert_eq!(backup, old_memory());
    let manifest = fs::read_to_string(scene.user().join("memory.json")).unwrap();
    assert!(manifest.contains("\"2.0\"") && !manifest.contains("facts"), "{manifest}");
    assert_eq!(scene.read(), document, "one copy is enough");
}

#[test]
fn an_empty_or_unversioned_memory_becomes_one_of_version_2() {
    for text in
        ["{}", r#"{"version": "1.0", "facts": []}"#, r#"{"version": "2.0", "revision": 4, "facts": []}"#]
    {
        let scene = Scene::new();
        scene.put("memory.json", text);
        let document = scene.read();
        assert!(document.stored && document.facts.is_empty());
        assert!(fs::read_to_string(scene.user().join("memory.json")).unwrap().contains("\"2.0\""));
    }
}

#[test]
fn an_unrelated_backup_prevents_the_migration() {
    let scene = Scene::new();
    let path = scene.put("memory.json", old_memory());
    let backup = scene.put("memory.json.v1.bak", "{}");
    let error = scene.store.read(&scene.scope, NOW).unwrap_err();
    assert!(matches!(&error, MemoryError::Migration { path, .. } if *path == backup), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), old_memory());
    fs::write(&backup, old_memory()).unwrap();
    assert_eq!(scene.read().facts.len(), 3, "an identical backup does not");
}

#[test]
fn an_agents_own_memory_joins_the_users() {
    let agent = |summary: &str| {
        json!({"version": "1.0", "user": {"topOfMind": {"summary": summary, "updatedAt": ""}}, "facts": [{"content": "Agent's"}]}).to_string()
    };
    let scene = Scene::new();
    scene.put("memory.json", old_memory());
    let own = scene.put("agents/research/memory.json", agent("pudu"));
    let research = MemoryScope::of_agent(scene.scope.user().clone(), "research").unwrap();
    let document = scene.store.read(&research, NOW).unwrap();
    assert_eq!(document.facts.len(), 1);
    assert_eq!(document.summaries.get(SummaryKey::TopOfMind).text, "pudu");
    assert!(!exists(&own) && exists(own.with_file_name("memory.json.v1.bak")));
    assert_eq!(scene.read().facts.len(), 3);
    // Another memory that contradicts the user's summaries.
    let other = scene.put("agents/other/memory.json", agent("deer"));
    let error = scene.store.read(&scene.scope, NOW).unwrap_err();
    assert!(
        matches!(&error, MemoryError::Migration { path, why } if *path == other && why.contains("topOfMind"))
    );
    assert_eq!(fs::read_to_string(&other).unwrap(), agent("deer"));
    fs::write(&other, agent("pudu")).unwrap();
    scene.read();
    assert!(!exists(&other));
    // A broken file is reported, and the others are read.
    let broken = scene.put("agents/other/memory.json", "{");
    let document = scene.read();
    assert_eq!((document.facts.len(), document.broken[0].path.clone()), (3, broken));
}

#[test]
fn the_earlier_default_agent_becomes_the_one_without_a_name() {
    let id = "fact_aa";
    let old = |scene: &Scene| {
        let file = scene.file(id).replace("__default__", "lead-agent");
        scene.put(&file, deerflow(id, "lead-agent", "Likes tea"))
    };
    let scene = Scene::new();
    let path = old(&scene);
    assert_eq!(scene.contents(), ["Likes tea"]);
    assert!(!exists(path));
    let text = fs::read_to_string(scene.user().join(scene.file(id))).unwrap();
    assert!(text.contains("agent_name: \"__default__\""), "{text}");
    // A custom agent with that name is unchanged.
    let scene = Scene::new();
    let path = old(&scene);
    scene.put("agents/lead-agent/config.yaml", "name: lead-agent");
    assert!(scene.contents().is_empty());
    assert!(exists(path));
}

#[test]
fn a_migration_killed_at_any_step_is_restarted() {
    let expect = {
        let scene = Scene::new();
        scene.put("memory.json", old_memory());
        scene.read().facts
    };
    for steps in 0..30 {
        let scene = Scene::new();
        scene.put("memory.json", old_memory());
        kill_after(Some(steps));
        scene.store.read(&scene.scope, NOW).ok();
        kill_after(None);
        assert_eq!(scene.read().facts, expect, "{steps}");
        assert!(!exists(scene.user().join(".recovery")));
    }
}
