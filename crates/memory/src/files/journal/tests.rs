use crate::{
    Changes, FactOrigin, MemoryError, MemoryOptions, SummaryKey, SupersedeReason, Supersession,
    files::tests::kill_after,
    store::tests::scene::{NOW, Scene, deerflow, exists, fact},
};
use serde_json::json;
use std::fs;

#[test]
fn a_writer_killed_at_any_step_leaves_all_or_nothing() {
    let mut outcomes = [0, 0];
    for steps in 0.. {
        let scene = Scene::with(MemoryOptions { max_facts: 2, ..MemoryOptions::default() });
        let (tea, car) = (scene.add("Likes tea"), scene.add("Has a car"));
        let before = (scene.read(), scene.files());
        let changes = Changes {
            summaries: vec![(SummaryKey::TopOfMind, "new".into())],
            facts: vec![
                crate::Fact { content: "Likes coffee".into(), ..before.0.fact(&tea).unwrap().clone() },
                crate::Fact {
                    origin: Some(FactOrigin { author: Some("U1".into()), ..FactOrigin::default() }),
                    ..fact("fact_new", "Is tall")
                },
            ],
            superseded: vec![Supersession { id: car, by: None, reason: SupersedeReason::Stale }],
            ..Changes::default()
        };
        kill_after(Some(steps));
        let done = scene.store.commit(&before.0, &changes, NOW);
        kill_after(None);
        let after = scene.read();
        let mut texts: Vec<String> = after.facts.iter().map(|fact| fact.content.clone()).collect();
        texts.sort();
        if after.revision == before.0.revision {
            assert!(done.is_err(), "{steps}");
            assert_eq!(after, before.0, "{steps}");
            assert_eq!(scene.files(), before.1, "{steps}: not even a temporary file is left");
            outcomes[0] += 1;
        } else {
            assert_eq!(texts, ["Is tall", "Likes coffee"], "{steps}");
            assert_eq!(after.summaries.get(SummaryKey::TopOfMind).text, "new");
            assert_eq!(scene.store.superseded(&scene.scope).unwrap().len(), 1);
            assert!(
                !exists(scene.user().join(".recovery")) && !exists(scene.user().join(".memory.journal.json"))
            );
            outcomes[1] += 1;
            if outcomes[1] > 6 {
                break;
            }
        }
    }
    assert!(outcomes[0] > 15, "{outcomes:?}");
}

#[test]
fn a_recovery_killed_at_any_step_is_resumed() {
    for steps in 0..14 {
        let scene = Scene::new();
        let tea = scene.add("Likes tea");
        let before = scene.files();
        let base = scene.read();
        let fact = crate::Fact { content: "Likes coffee".into(), ..base.fact(&tea).unwrap().clone() };
        kill_after(Some(8));
        let changes = Changes { facts: vec![fact], ..Changes::default() };
        scene.store.commit(&base, &changes, NOW).unwrap_err();
        assert!(exists(scene.user().join(".memory.journal.json")), "the test begins with a half-done change");
        kill_after(Some(steps));
        scene.store.read(&scene.scope, NOW).ok();
        kill_after(None);
        scene.read();
        assert_eq!(scene.files(), before, "{steps}");
    }
}

#[test]
fn unfinished_changes_of_deerflow_are_rolled_back() {
    let scene = Scene::new();
    let manifest = r#"{"version": "2.0", "revision": 3, "user": {}, "history": {}}"#;
    scene.put("memory.json", manifest.replace('3', "4"));
    let old = scene.file("fact_aa");
    scene.put(&old, "half writ");
    scene.put(&scene.file("fact_bb"), deerflow("fact_bb", "__default__", "New"));
    scene.put(".recovery/op1/memory.json", manifest);
    scene.put(".recovery/op1/fact_aa.md", deerflow("fact_aa", "__default__", "Old"));
    let journal = json!({
        "operationId": "op1", "state": "prepared", "agentName": "__default__", "expectedRevision": 3,
        "nextRevision": 4, "factIds": ["fact_aa", "fact_bb"], "oldEntries": {"fact_aa": {"path": old}},
    });
    scene.put(".memory.journal.json", journal.to_string());
    let document = scene.read();
    assert_eq!((document.revision, document.facts.len(), document.facts[0].content.as_str()), (3, 1, "Old"));
    assert!(!exists(scene.user().join(".recovery")));
    // A journal with foreign paths or unknown content prevents all changes and is kept.
    for bad in [
        journal.to_string().replace("op1", "../x"),
        journal.to_string().replace("agents/", "../agents/"),
        journal.to_string().replace("prepared", "unknown"),
        "{".to_owned(),
    ] {
        scene.put(".recovery/op1/fact_aa.md", deerflow("fact_aa", "__default__", "Old"));
        let path = scene.put(".memory.journal.json", &bad);
        assert!(matches!(scene.store.read(&scene.scope, NOW), Err(MemoryError::Broken { .. })), "{bad}");
        assert_eq!(fs::read_to_string(path).unwrap(), bad);
    }
}

#[test]
fn deerflow_can_roll_back_pudus_journal() {
    let scene = Scene::new();
    let tea = scene.add("Likes tea");
    let base = scene.read();
    let fact_now = crate::Fact { content: "Likes coffee".into(), ..base.fact(&tea).unwrap().clone() };
    kill_after(Some(12));
    let changes = Changes { facts: vec![fact_now, fact("fact_new", "Is tall")], ..Changes::default() };
    scene.store.commit(&base, &changes, NOW).unwrap_err();
    kill_after(None);
    let journal: serde_json::Value =
        serde_json::from_slice(&fs::read(scene.user().join(".memory.journal.json")).unwrap()).unwrap();
    let aside = scene.user().join(".recovery").join(journal["operationId"].as_str().unwrap());
    assert_eq!(journal["state"], "prepared");
    assert_eq!(journal["agentName"], "__default__");
    assert_eq!((&journal["expectedRevision"], &journal["nextRevision"]), (&json!(1), &json!(2)));
    let mut ids: Vec<&str> =
        journal["factIds"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    ids.sort_unstable();
    let mut expect = [tea.as_str(), "fact_new"];
    expect.sort_unstable();
    assert_eq!(ids, expect);
    assert_eq!(journal["oldEntries"], json!({tea.as_str(): {"path": scene.file(tea.as_str())}}));
    assert!(exists(aside.join("memory.json")) && exists(aside.join(format!("{tea}.md"))));
}

#[test]
fn a_deletion_killed_at_any_step_is_atomic() {
    let mut finished = 0;
    for steps in 0.. {
        let scene = Scene::new();
        let (tea, car) = (scene.add("Secret tea"), scene.add("Has a car"));
        let changes = Changes {
            superseded: vec![Supersession {
                id: tea.clone(),
                by: Some(car.clone()),
                reason: SupersedeReason::Replaced,
            }],
            ..Changes::default()
        };
        scene.store.change(&scene.scope, NOW, |_| Ok(changes)).unwrap();
        let before = scene.files();
        kill_after(Some(steps));
        scene.store.forget(&scene.scope, &[car], NOW).ok();
        kill_after(None);
        scene.read();
        if scene.contents().is_empty() {
            assert!(
                !scene.has_text("Secret") && !scene.has_text(tea.as_str()),
                "{steps}: {:?}",
                scene.files()
            );
            finished += 1;
        } else {
            assert_eq!(scene.files(), before, "{steps}");
        }
        if finished > 6 {
            break;
        }
    }
}
