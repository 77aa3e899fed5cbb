pub(crate) mod scene;

use self::scene::{NOW, Scene, deerflow, exists, fact, new};
use crate::{
    Changes, DocumentDetail, EvictionPolicy, FactCategory, FactEdit, FactId, FactOrigin, FactSource,
    FactTime, MemoryError, MemoryOptions, MemoryRefusal, MemoryScope, MemoryStore, SummaryKey,
    SupersedeReason, Supersession, files::tests::facts_read,
};
use pudu_base::UserId;
use serde_json::json;
use std::{fs, time::Duration};

#[test]
fn a_missing_memory_is_empty_and_reading_it_creates_no_file() {
    let scene = Scene::new();
    let document = scene.read();
    assert!(document.facts.is_empty() && document.summaries.is_empty() && !document.stored);
    assert_eq!(document.to_json(DocumentDetail::Api)["version"], "1.0");
    assert!(!exists(scene.user()));
}

#[test]
fn added_facts_are_read_by_another_store_of_the_home() {
    let scene = Scene::new();
    let origin =
        FactOrigin { author: Some("U1".into()), quote: Some("I like tea".into()), ..FactOrigin::default() };
    let (id, committed) = scene
        .store
        .add(&scene.scope, crate::NewFact { origin: Some(origin.clone()), ..new(" Likes tea \n") }, NOW)
        .unwrap();
    assert_eq!(committed.document.revision, 1);
    let other = MemoryStore::new(scene.home.path().to_owned(), MemoryOptions::default());
    let document = other.read(&scene.scope, NOW).unwrap();
    assert_eq!(document, committed.document);
    let stored = document.fact(&id).unwrap();
    assert_eq!((stored.content.as_str(), stored.revision, &stored.origin), ("Likes tea", 1, &Some(origin)));
    let text = fs::read_to_string(scene.user().join(scene.file(id.as_str()))).unwrap();
    assert!(!text.contains("U1"), "DeerFlow's file has no key of pudu's: {text}");
    assert!(!exists(scene.user().join(".memory.journal.json")) && !exists(scene.user().join(".recovery")));
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(scene.user().join("memory.json")).unwrap()).unwrap();
    assert_eq!(
        manifest,
        json!({
            "version": "2.0", "revision": 1, "lastUpdated": "2026-07-01T00:00:00Z",
            "user": {"workContext": {"summary": "", "updatedAt": ""}, "personalContext": {"summary": "", "updatedAt": ""}, "topOfMind": {"summary": "", "updatedAt": ""}},
            "history": {"recentMonths": {"summary": "", "updatedAt": ""}, "earlierContext": {"summary": "", "updatedAt": ""}, "longTermBackground": {"summary": "", "updatedAt": ""}},
        })
    );
}

#[test]
fn invalid_requests_are_refused() {
    let scene =
        Scene::with(MemoryOptions { max_content_chars: 10, max_facts: 1, ..MemoryOptions::default() });
    let id = scene.add("Likes tea");
    let refused = |new| match scene.store.add(&scene.scope, new, NOW).unwrap_err() {
        MemoryError::Refused(refusal) => refusal,
        other => panic!("{other}"),
    };
    assert_eq!(refused(new(" \n ")), MemoryRefusal::EmptyContent);
    assert_eq!(refused(new("01234567890")), MemoryRefusal::TooLong { max: 10 });
    assert_eq!(refused(new("likes TEA")), MemoryRefusal::Duplicate { id: id.to_string() });
    assert_eq!(refused(crate::NewFact { confidence: 1.5, ..new("a") }), MemoryRefusal::BadConfidence);
    assert_eq!(refused(crate::NewFact { confidence: f64::NAN, ..new("a") }), MemoryRefusal::BadConfidence);
    assert_eq!(refused(crate::NewFact { confidence: 0.1, ..new("a") }), MemoryRefusal::NoRoom { max: 1 });
    assert_eq!(scene.contents(), ["Likes tea"]);
    assert_eq!(scene.read().revision, 1, "a refused request writes no file");
    let missing = FactId::new("fact_0").unwrap();
    assert!(matches!(
        scene.store.update(&scene.scope, &missing, FactEdit::default(), NOW),
        Err(MemoryError::UnknownFact(_))
    ));
    assert!(matches!(scene.store.forget(&scene.scope, &[missing], NOW), Err(MemoryError::UnknownFact(_))));
}

#[test]
fn a_change_counts_the_facts_revision_and_keeps_its_origin() {
    let scene = Scene::new();
    let id = scene.add("Likes tea");
    let edit = |edit| scene.store.update(&scene.scope, &id, edit, NOW + 1_000);
    let nothing = edit(FactEdit { confidence: Some(0.8), ..FactEdit::default() }).unwrap();
    assert_eq!((nothing.document.revision, nothing.changed.len()), (1, 0), "nothing changed");
    let category = Some(FactCategory::Other(Some("knowledge".into())));
    let done =
        edit(FactEdit { content: Some("Likes green tea".into()), category, ..FactEdit::default() }).unwrap();
    let now = done.document.fact(&id).unwrap();
    assert_eq!((now.revision, now.created_at.millis(), now.updated_at.millis()), (2, NOW, NOW + 1_000));
    assert!(matches!(
        edit(FactEdit { revision: Some(1), ..FactEdit::default() }),
        Err(MemoryError::Conflict { .. })
    ));
    let back =
        edit(FactEdit { category: Some(FactCategory::Goal), revision: Some(2), ..FactEdit::default() });
    let back = back.unwrap().document.to_json(DocumentDetail::Api);
    assert_eq!(back["facts"][0].get("categoryExtension"), None, "no extension is left over");
}

#[test]
fn deerflows_files_and_edits_by_hand_are_seen_and_kept() {
    let scene = Scene::new();
    scene.put("memory.json", r#"{"version": "2.0", "revision": 7, "lastUpdated": "2026-06-01T08:00:00Z", "user": {"workContext": {"summary": "Works at X", "updatedAt": "2026-06-01T08:00:00Z"}, "more": 1}, "history": {}, "note": "kept"}"#);
    let text = deerflow("fact_aa", "__default__", "Likes tea")
        .replace("revision: 1", "revision: 4\nmine: {a: [1, two]}");
    let path = scene.put(&scene.file("fact_aa"), &text);
    let document = scene.read();
    assert_eq!((document.revision, document.facts[0].revision), (7, 4));
    assert_eq!(document.summaries.get(SummaryKey::WorkContext).text, "Works at X");
    assert_eq!(document.facts[0].source.thread.as_deref(), Some("t1"));
    // Changed by hand; memory.json is unchanged.
    fs::write(&path, text.replace("Likes tea", "Likes coffee")).unwrap();
    assert_eq!(scene.contents(), ["Likes coffee"]);
    scene
        .store
        .update(
            &scene.scope,
            &FactId::new("fact_aa").unwrap(),
            FactEdit { confidence: Some(0.5), ..FactEdit::default() },
            NOW,
        )
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for kept in [
        "mine: {\"a\":[1,\"two\"]}",
        "createdAt: \"2026-06-01T08:00:00.123456Z\"",
        "revision: 5",
        "confidence: 0.5",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    let manifest = fs::read_to_string(scene.user().join("memory.json")).unwrap();
    for kept in ["\"note\": \"kept\"", "\"more\": 1", "\"revision\": 8", "Works at X"] {
        assert!(manifest.contains(kept), "{kept}: {manifest}");
    }
}

#[test]
fn a_broken_file_affects_nothing_else() {
    let scene = Scene::new();
    scene.add("Likes tea");
    let broken = fact("fact_bad", "x");
    let path = scene.put(&scene.file("fact_bad"), "---\nid: fact_bad\nconfidence: [");
    let stray = scene.put("agents/__default__/facts/zz/fact_cc.md", deerflow("fact_cc", "__default__", "x"));
    let document = scene.read();
    assert_eq!(document.facts.len(), 1);
    let mut reported: Vec<_> = document.broken.iter().map(|broken| broken.path.clone()).collect();
    reported.sort();
    let mut expect = vec![path.clone(), stray];
    expect.sort();
    assert_eq!(reported, expect);
    let changes = Changes { facts: vec![broken], ..Changes::default() };
    let error = scene.store.commit(&document, &changes, NOW).unwrap_err();
    assert!(matches!(&error, MemoryError::Broken { path: at, .. } if *at == path), "{error}");
    scene.add("Likes coffee");
    assert!(fs::read_to_string(&path).unwrap().ends_with("confidence: ["), "the file is unchanged");
    let gone = scene.forget(&FactId::new("fact_bad").unwrap());
    assert_eq!(gone.forgotten, [FactId::new("fact_bad").unwrap()]);
    assert!(!exists(path));
}

#[test]
fn a_broken_manifest_leaves_the_facts_readable_and_is_never_overwritten() {
    let scene = Scene::new();
    scene.add("Likes tea");
    let path = scene.put("memory.json", "{\"version\": \"2.");
    let document = scene.read();
    assert_eq!((document.facts.len(), document.broken.len()), (1, 1));
    assert!(matches!(scene.store.add(&scene.scope, new("b"), NOW), Err(MemoryError::Broken { .. })));
    assert_eq!(fs::read_to_string(path).unwrap(), "{\"version\": \"2.");
    scene.store.clear(scene.scope.user(), NOW).unwrap();
    assert!(scene.read().facts.is_empty(), "clearing works nevertheless");
}

#[test]
fn agents_and_users_share_only_summaries() {
    let scene = Scene::new();
    let user = scene.scope.user().clone();
    let research = MemoryScope::of_agent(user.clone(), "Research").unwrap();
    let bob = MemoryScope::for_user(UserId::from_raw("bob@example.com").unwrap());
    scene.add("Mine");
    scene.store.add(&research, new("Research's"), NOW).unwrap();
    scene.store.add(&bob, new("Bob's"), NOW).unwrap();
    let changes = Changes { summaries: vec![(SummaryKey::TopOfMind, "pudu".into())], ..Changes::default() };
    scene.store.change(&research, NOW, |_| Ok(changes)).unwrap();
    let facts = |scope: &MemoryScope| {
        let document = scene.store.read(scope, NOW).unwrap();
        let facts: Vec<String> = document.facts.iter().map(|fact| fact.content.clone()).collect();
        (facts, document.summaries.get(SummaryKey::TopOfMind).text.clone())
    };
    assert_eq!(facts(&scene.scope), (vec!["Mine".to_owned()], "pudu".to_owned()));
    assert_eq!(facts(&research), (vec!["Research's".to_owned()], "pudu".to_owned()));
    assert_eq!(facts(&bob), (vec!["Bob's".to_owned()], String::new()));
    assert_eq!(scene.store.agents(&user).unwrap(), ["__default__", "research"]);
    // A file that was copied from another user or agent is ignored.
    let (id, text) = (scene.read().facts[0].id.clone(), scene.files());
    let mine = text.iter().find(|(path, _)| path.ends_with(scene.file(id.as_str()))).unwrap();
    let theirs = scene.home.path().join(bob_file(bob.user(), &scene.file(id.as_str())));
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::write(&theirs, mine.1).unwrap();
    let document = scene.store.read(&bob, NOW).unwrap();
    assert_eq!(document.facts.len(), 1);
    assert!(document.broken[0].why.contains("another user's"));
}

fn bob_file(user: &UserId, file: &str) -> String {
    format!("users/{user}/{file}")
}

#[test]
fn no_link_leads_out_of_a_users_folder() {
    let scene = Scene::new();
    scene.add("Likes tea");
    let outside = scene.home.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret.md"), deerflow("fact_ee", "__default__", "secret")).unwrap();
    let path = scene.user().join(scene.file("fact_ee"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(outside.join("secret.md"), &path).unwrap();
    let document = scene.read();
    assert_eq!((document.facts.len(), document.broken.len()), (1, 1));
    // A folder of an agent that is a link.
    std::os::unix::fs::symlink(&outside, scene.user().join("agents/evil")).unwrap();
    let evil = MemoryScope::of_agent(scene.scope.user().clone(), "evil").unwrap();
    assert!(scene.store.add(&evil, new("x"), NOW).is_err());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "no file was written there");
    // A user's folder that is a link out of the home.
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), scene.home.path().join("users/carol")).unwrap();
    let carol = MemoryScope::for_user(UserId::from_raw("carol").unwrap());
    assert!(scene.store.add(&carol, new("x"), NOW).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn replaced_facts_are_set_aside_up_to_a_limit() {
    let scene = Scene::with(MemoryOptions { max_superseded: 3, ..MemoryOptions::default() });
    for n in 0..5 {
        let old = scene.add(&format!("Lives in city {n}"));
        let by = fact("fact_new", "x").id;
        let changes = Changes {
            superseded: vec![Supersession {
                id: old.clone(),
                by: Some(by),
                reason: SupersedeReason::Replaced,
            }],
            ..Changes::default()
        };
        let done = scene.store.change(&scene.scope, NOW + n, |_| Ok(changes)).unwrap();
        assert_eq!(done.superseded, [old]);
    }
    assert!(scene.contents().is_empty());
    let aside = scene.store.superseded(&scene.scope).unwrap();
    let texts: Vec<&str> = aside.iter().map(|old| old.fact.content.as_str()).collect();
    assert_eq!(texts, ["Lives in city 4", "Lives in city 3", "Lives in city 2"]);
    assert_eq!((aside[0].reason.as_str(), aside[0].at), ("replaced", Some(FactTime::from_millis(NOW + 4))));
}

#[test]
fn forgetting_leaves_no_trace() {
    let scene = Scene::new();
    scene.put(
        "memory.json",
        r#"{"version": "1.0", "facts": [{"id": "fact_old", "content": "Secret A"}, {"id": "fact_b", "content": "Other"}]}"#,
    );
    let first = FactId::new("fact_old").unwrap();
    scene.read();
    let origin = Some(FactOrigin { quote: Some("Secret quote".into()), ..FactOrigin::default() });
    let (second, _) =
        scene.store.add(&scene.scope, crate::NewFact { origin, ..new("Secret B") }, NOW).unwrap();
    scene.store.note_used(&scene.scope, &[first.clone(), second.clone()], NOW).unwrap();
    let changes = Changes {
        superseded: vec![Supersession {
            id: first.clone(),
            by: Some(second.clone()),
            reason: SupersedeReason::Replaced,
        }],
        ..Changes::default()
    };
    scene.store.change(&scene.scope, NOW, |_| Ok(changes)).unwrap();
    scene.put(
        "agents/__default__/.metadata/eviction-audit.json",
        format!(r#"[{{"evicted": [{{"factId": "{second}"}}]}}]"#),
    );
    assert!(scene.has_text("Secret A") && scene.has_text("Secret quote"));
    let mut gone = scene.forget(&second).forgotten;
    gone.sort();
    let mut expect = vec![first.clone(), second.clone()];
    expect.sort();
    assert_eq!(gone, expect);
    for trace in ["Secret", first.as_str(), second.as_str()] {
        assert!(!scene.has_text(trace), "{trace}: {:?}", scene.files());
    }
    assert_eq!(scene.contents(), ["Other"]);
    assert!(scene.user().join("memory.json.v1.bak").exists(), "the rest of the backup stays");
}

#[test]
fn clearing_removes_the_facts_of_all_agents_but_not_the_agents() {
    let scene = Scene::new();
    let user = scene.scope.user().clone();
    let research = MemoryScope::of_agent(user.clone(), "research").unwrap();
    scene.put("agents/research/config.yaml", "name: research\n");
    scene.put(
        "agents/old/memory.json",
        r#"{"facts": [{"content": "Secret old"}], "user": {"topOfMind": {"summary": "Secret sum"}}}"#,
    );
    let mine = scene.add("Secret mine");
    let (theirs, _) = scene.store.add(&research, new("Secret theirs"), NOW).unwrap();
    scene.put(&scene.file("fact_bad"), "Secret broken");
    let gone = scene.store.clear(&user, NOW).unwrap();
    for expect in [("__default__", &mine), ("research", &theirs)] {
        assert!(gone.contains(&(expect.0.to_owned(), expect.1.clone())), "{gone:?}");
    }
    assert!(!scene.has_text("Secret"), "{:?}", scene.files());
    assert!(exists(scene.user().join("agents/research/config.yaml")));
    assert!(scene.read().summaries.is_empty());
}

#[test]
fn an_export_can_be_imported_at_any_time() {
    let scene = Scene::new();
    let tea = scene.add("Likes tea");
    let changes =
        Changes { summaries: vec![(SummaryKey::WorkContext, "Works".into())], ..Changes::default() };
    scene.store.change(&scene.scope, NOW, |_| Ok(changes)).unwrap();
    let export = scene.store.export(&scene.scope, NOW).unwrap();
    let again = scene.store.import(&scene.scope, &export, NOW).unwrap();
    assert_eq!((again.changed.len(), again.document.revision), (0, 2), "a repetition changes nothing");
    scene
        .store
        .update(
            &scene.scope,
            &tea,
            FactEdit { content: Some("Likes coffee".into()), ..FactEdit::default() },
            NOW,
        )
        .unwrap();
    scene.add("Is tall");
    let back = scene.store.import(&scene.scope, &export, NOW).unwrap();
    assert_eq!(scene.contents(), ["Likes tea"]);
    assert_eq!((back.changed.len(), back.forgotten.len()), (1, 1));
    let one = json!({"version": "1.0", "facts": [{"content": "From 1.0", "category": "knowledge", "source": "t9"}]});
    scene.store.import(&scene.scope, &one, NOW).unwrap();
    assert_eq!(scene.contents(), ["From 1.0"]);
    for bad in [
        json!([]),
        json!({}),
        json!({"facts": {}}),
        json!({"facts": [1]}),
        json!({"facts": [{"content": ""}]}),
    ] {
        assert!(scene.store.import(&scene.scope, &bad, NOW).is_err(), "{bad}");
    }
    assert_eq!(scene.contents(), ["From 1.0"]);
}

#[test]
fn smaller_caps_delete_nothing() {
    let scene = Scene::new();
    for n in 0..10 {
        scene.add(&format!("Fact {n}"));
    }
    let aside: Vec<Supersession> = (0..4)
        .map(|n| Supersession {
            id: scene.add(&format!("Old fact {n}")),
            by: None,
            reason: SupersedeReason::Replaced,
        })
        .collect();
    let changes = Changes { superseded: aside, ..Changes::default() };
    scene.store.change(&scene.scope, NOW, |_| Ok(changes)).unwrap();
    let options = MemoryOptions { max_facts: 3, max_superseded: 1, ..MemoryOptions::default() };
    let small = MemoryStore::new(scene.home.path().to_owned(), options);
    let (_, done) = small.add(&scene.scope, new("A new fact"), NOW + 1).unwrap();
    assert_eq!((done.document.facts.len(), done.superseded.len()), (10, 1), "one for one");
    let aside = small.superseded(&scene.scope).unwrap();
    assert_eq!(aside.len(), 4, "one for one: {aside:?}");
    let is_there = |text: &str| {
        done.document.facts.iter().any(|fact| fact.content == text)
            || aside.iter().any(|old| old.fact.content == text)
    };
    assert!((0..10).all(|n| is_there(&format!("Fact {n}"))), "no fact is lost");
}

#[test]
fn evictions_from_a_full_memory_are_recorded() {
    for eviction in [EvictionPolicy::Confidence, EvictionPolicy::Hybrid] {
        let scene = Scene::with(MemoryOptions {
            max_facts: 3,
            max_audit_entries: 2,
            eviction,
            ..MemoryOptions::default()
        });
        let fix = crate::NewFact { category: FactCategory::Correction, confidence: 0.1, ..new("Never tabs") };
        scene.store.add(&scene.scope, fix, NOW).unwrap();
        for n in 0..6 {
            let at = NOW + n;
            scene.store.add(&scene.scope, new(&format!("Fact {n}")), at).unwrap();
        }
        let mut texts = scene.contents();
        texts.sort();
        assert_eq!(texts, ["Fact 4", "Fact 5", "Never tabs"], "{eviction:?}");
        let audit = fs::read(scene.user().join("agents/__default__/.metadata/eviction-audit.json")).unwrap();
        let audit: Vec<serde_json::Value> = serde_json::from_slice(&audit).unwrap();
        assert_eq!(audit.len(), 2, "bounded");
        assert_eq!(audit[1]["policyVersion"], eviction.name());
        assert_eq!(audit[1]["reservedCorrectionSlots"], 1);
        let aside = scene.store.superseded(&scene.scope).unwrap();
        assert_eq!(aside.len(), 4, "the evicted fact is set aside");
    }
}

#[test]
fn disjoint_changes_join_and_others_conflict() {
    let scene = Scene::new();
    let (tea, car) = (scene.add("Likes tea"), scene.add("Has a car"));
    let base = scene.read();
    let change = |id: &FactId, text: &str| {
        let fact = crate::Fact { content: text.to_owned(), ..base.fact(id).unwrap().clone() };
        scene.store.commit(&base, &Changes { facts: vec![fact], ..Changes::default() }, NOW)
    };
    let sum = |text: &str| {
        let changes = Changes { summaries: vec![(SummaryKey::TopOfMind, text.into())], ..Changes::default() };
        scene.store.commit(&base, &changes, NOW)
    };
    change(&tea, "Likes coffee").unwrap();
    change(&car, "Has a bike").unwrap();
    sum("one").unwrap();
    assert!(matches!(change(&tea, "Likes water"), Err(MemoryError::Conflict { .. })));
    assert!(matches!(sum("two"), Err(MemoryError::Conflict { .. })));
    let gone = Changes {
        superseded: vec![Supersession { id: tea, by: None, reason: SupersedeReason::Stale }],
        ..Changes::default()
    };
    assert!(matches!(scene.store.commit(&base, &gone, NOW), Err(MemoryError::Conflict { .. })));
    // The same new fact by two writers is stored once.
    let twice = |id: &str| {
        let changes = Changes { facts: vec![fact(id, "Is tall")], ..Changes::default() };
        scene.store.commit(&base, &changes, NOW).unwrap()
    };
    assert_eq!(twice("fact_1").added.len(), 1);
    assert_eq!(twice("fact_2").duplicates.len(), 1);
}

#[test]
fn two_writers_lose_nothing() {
    let scene = Scene::with(MemoryOptions { max_facts: 500, ..MemoryOptions::default() });
    std::thread::scope(|threads| {
        for writer in 0..4 {
            let store = MemoryStore::new(scene.home.path().to_owned(), scene.store.options().clone());
            let scope = scene.scope.clone();
            threads.spawn(move || {
                for n in 0..10 {
                    store.add(&scope, new(&format!("Writer {writer} says {n}")), NOW + n).unwrap();
                }
            });
        }
    });
    let document = scene.read();
    assert_eq!((document.facts.len(), document.revision), (40, 40));
}

#[test]
fn an_unavailable_lock_is_reported() {
    let scene =
        Scene::with(MemoryOptions { lock_timeout: Duration::from_millis(60), ..MemoryOptions::default() });
    scene.add("Likes tea");
    let lock = fs::File::open(scene.user().join(".memory.lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(scene.store.read(&scene.scope, NOW), Err(MemoryError::Busy { .. })));
    lock.unlock().unwrap();
    assert_eq!(scene.contents(), ["Likes tea"]);
}

#[test]
fn the_files_beside_facts_have_their_forms() {
    let scene = Scene::with(MemoryOptions { max_facts: 1, ..MemoryOptions::default() });
    let old = scene.add("Likes tea");
    let origin = FactOrigin {
        author: Some("U1".into()),
        author_name: Some("Ann".into()),
        message: Some("m1".into()),
        quote: Some("I like milk".into()),
    };
    let milk = crate::NewFact { origin: Some(origin), confidence: 0.9, ..new("Likes milk") };
    let (id, _) = scene.store.add(&scene.scope, milk, NOW).unwrap();
    scene.store.note_used(&scene.scope, std::slice::from_ref(&id), NOW).unwrap();
    let beside = |name: &str| {
        let text = fs::read_to_string(scene.user().join("agents/__default__/.metadata").join(name)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let origins = json!({"version": 1, "origins": {id.as_str(): {"author": "U1", "authorName": "Ann", "message": "m1", "quote": "I like milk"}}});
    assert_eq!(beside("pudu.json"), origins);
    let uses =
        json!({id.as_str(): {"accessHeat": 1.0, "accessCount": 1, "lastAccessedAt": "2026-07-01T00:00:00Z"}});
    assert_eq!(beside("fact-usage.json"), uses);
    let evicted = json!({"factId": old.as_str(), "category": "context", "score": 0.8, "components": {"confidence": 0.8}});
    let audit = json!([{"occurredAt": "2026-07-01T00:00:00Z", "reason": "capacity", "policyVersion": "confidence", "maxFacts": 1, "reservedCorrectionSlots": 0, "evicted": [evicted]}]);
    assert_eq!(beside("eviction-audit.json"), audit);
    let aside = scene.user().join(format!("agents/__default__/.metadata/superseded/{old}.md"));
    let aside = fs::read_to_string(aside).unwrap();
    for line in [
        "status: \"superseded\"",
        "supersededAt: \"2026-07-01T00:00:00Z\"",
        "supersededReason: \"evicted\"",
        "supersededBy: null",
    ] {
        assert!(aside.contains(line), "{line}: {aside}");
    }
}

#[test]
fn unreadable_facts_are_never_written() {
    let scene = Scene::new();
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let document = |item: serde_json::Value| json!({"facts": [item]});
    for item in [
        json!({"content": "x".repeat(300_000)}),
        json!({"content": "a", "note": "x".repeat(300_000)}),
        json!({"content": "a", "note": deep}),
    ] {
        assert!(matches!(
            scene.store.import(&scene.scope, &document(item.clone()), NOW),
            Err(MemoryError::Refused(MemoryRefusal::BadDocument(_)))
        ));
        let scene = Scene::new();
        scene.put(
            "memory.json",
            json!({"version": "1.0", "facts": [item, {"content": "good", "note": 1}]}).to_string(),
        );
        let document = scene.read();
        assert_eq!(
            (scene.contents(), document.broken.len()),
            (vec!["good".to_owned()], 0),
            "the backup contains the other summary"
        );
        assert_eq!(document.facts[0].extra["note"], 1);
    }
}

#[test]
fn a_conversation_becomes_facts_in_files() {
    use crate::extract::{
        Extraction, OfferedFacts, Person, Proposal, SaidBy, Transcript, TranscriptTurn, prompt,
    };
    let scene = Scene::new();
    let old = scene.add("Lives in Paris");
    let turn = |by: SaidBy, text: &str| TranscriptTurn {
        by,
        text: text.to_owned(),
        message: Some("m1".to_owned()),
        hidden: false,
        answers_question: false,
        forwarded: false,
    };
    let me = Person { id: "U1".to_owned(), name: Some("Ann".to_owned()), is_self: true };
    let turns =
        [turn(SaidBy::Person(me), "I moved to Rome last week"), turn(SaidBy::Assistant, "Enjoy <Rome>!")];
    let transcript = Transcript::from_turns(&turns).unwrap();
    let document = scene.read();
    let offered = OfferedFacts::from_document(&document, &transcript, scene.store.options(), NOW);
    let request = prompt(&document, &transcript, &offered);
    assert!(
        request.user.contains("[MANUAL] Lives in Paris")
            && request.user.contains("Assistant: Enjoy &lt;Rome&gt;!")
    );
    let answer = format!(
        r#"{{"user": {{}}, "history": {{}}, "newFacts": [{{"content": "Lives in Rome", "quote": "I moved to Rome", "category": "context", "confidence": 0.95, "scope": "user", "durability": "durable", "authority": "descriptive"}}], "factsToRemove": [{{"id": "{old}", "scope": "user", "reason": "moved", "replacementFactIndex": 0}}]}}"#
    );
    let proposal = Proposal::parse(&answer).unwrap();
    // Another writer changes the memory while the model works.
    scene.add("Has a car");
    let apply = |document: &crate::MemoryDocument| {
        let extraction = Extraction {
            document,
            transcript: &transcript,
            offered: &offered,
            recalled: &[],
            thread: "t1",
            options: scene.store.options(),
            now: NOW,
        };
        extraction.apply(&proposal).changes
    };
    let done = scene.store.change(&scene.scope, NOW, |document| Ok(apply(document))).unwrap();
    assert_eq!((done.added.len(), done.superseded), (1, vec![old.clone()]));
    let mut texts = scene.contents();
    texts.sort();
    assert_eq!(texts, ["Has a car", "Lives in Rome"]);
    assert_eq!(
        scene.read().fact(&done.added[0]).unwrap().origin.as_ref().unwrap().author.as_deref(),
        Some("U1")
    );
    // The same answer again, as after a crash before the caller recorded its completion.
    let again = scene.store.change(&scene.scope, NOW, |document| Ok(apply(document))).unwrap();
    assert_eq!((again.added.len(), again.document.revision), (0, done.document.revision));
    // The memory that the model saw has changed.
    scene.forget(&old);
    let (back, _) = scene.store.add(&scene.scope, new("Lives in Paris"), NOW + 1).unwrap();
    assert_ne!(back, old);
}

/// An older release stored reading positions next to the facts.
#[test]
fn reading_marks_of_an_older_home_are_ignored_and_removed_with_the_next_change() {
    let scene = Scene::new();
    let origin = FactOrigin { message: Some("m1".into()), ..FactOrigin::default() };
    let source = FactSource::conversation("t1");
    let tea = crate::NewFact { origin: Some(origin), source, ..new("Likes tea") };
    let (id, before) = scene.store.add(&scene.scope, tea, NOW).unwrap();
    let file = "agents/__default__/.metadata/pudu.json";
    let origins = json!({id.as_str(): {"message": "m1"}});
    let marks = json!([{"thread": "t1", "message": "m2"}]);
    scene.put(file, json!({"version": 1, "origins": origins, "learnt": marks}).to_string());
    assert_eq!(scene.read(), before.document);
    assert_eq!(scene.read().evidence("t1").collect::<Vec<_>>(), ["m1"]);
    assert_eq!(scene.read().evidence("t2").count(), 0);
    scene.store.add(&scene.scope, crate::NewFact { origin: Some(<_>::default()), ..new("b") }, NOW).unwrap();
    let text = fs::read_to_string(scene.user().join(file)).unwrap();
    assert!(text.contains("m1") && !text.contains("learnt"), "{text}");
}

#[test]
fn a_file_of_a_fact_is_read_once_until_it_changes() {
    let scene = Scene::new();
    let (tea, milk) = (scene.add("Likes tea"), scene.add("Likes milk"));
    // A file that was last changed long ago.
    let later = NOW + 100 * 365 * 24 * 3_600_000;
    let read = |now| {
        let before = facts_read();
        let document = scene.store.read(&scene.scope, now).unwrap();
        let mut contents: Vec<_> = document.facts.into_iter().map(|fact| fact.content).collect();
        contents.sort();
        (contents.join(", "), facts_read() - before)
    };
    let check = |now, contents: &str, count| assert_eq!(read(now), (contents.to_owned(), count));
    check(NOW, "Likes milk, Likes tea", 2);
    check(NOW, "Likes milk, Likes tea", 2);
    check(later, "Likes milk, Likes tea", 2);
    check(later, "Likes milk, Likes tea", 0);
    // Changed by hand, to a text of the same length.
    let path = scene.user().join(scene.file(tea.as_str()));
    let text = fs::read_to_string(&path).unwrap().replace("tea", "pie");
    fs::write(&path, text).unwrap();
    // File times are too coarse to distinguish two changes in a test.
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(3_600)).unwrap();
    check(later, "Likes milk, Likes pie", 1);
    check(later, "Likes milk, Likes pie", 0);
    fs::remove_file(scene.user().join(scene.file(milk.as_str()))).unwrap();
    check(later, "Likes pie", 0);
    fs::write(&path, "---").unwrap();
    check(later, "", 1);
    check(later, "", 1);
}
