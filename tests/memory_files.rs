//! Memory moves: merged when two users join, exported and imported, and deleted permanently.

use crate::{
    house::{House, SOON, Talker},
    memory::{QUICK, learns, proposes, walk},
    users::code,
};
use pudu_sim::{model::Reply, telegram::Options};
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant},
};

async fn furnished() -> House {
    let mut house = House::furnish(Options::default(), "", QUICK).await;
    let answer = proposes("Prefers green tea", "I always drink green tea");
    house.model.when(learns, move |_| Reply::text(&answer).into());
    house.start();
    house
}

async fn adds(person: &Talker, fact: &str) -> String {
    let before = person.answers().len();
    person.say(&format!("/memory add {fact}"));
    let added = loop {
        let added = person.reads_so(|text| text.starts_with("Remembered as")).await;
        if person.answers().len() > before {
            break added;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    added.trim_start_matches("Remembered as ").trim_end_matches('.').to_owned()
}

/// Links two users: the second enters the code of the first.
async fn join(first: &Talker, second: &Talker) {
    first.say("/connect");
    let code = code(&first.reads_so(|text| text.contains("within ten minutes: /connect ")).await);
    second.say(&format!("/connect {code} yes"));
}

#[tokio::test]
async fn who_joins_another_brings_what_is_remembered_and_it_is_there_once() {
    let mut house = furnished().await;
    let (ada, phone) = (Talker::new(&house, "Ada"), Talker::new(&house, "Ada's phone"));
    adds(&ada, "I ride a red bicycle.").await;
    adds(&phone, "i ride a RED bicycle").await;
    adds(&phone, "My dog is called Bello.").await;
    phone.say("I always drink green tea.");
    phone.reads_so(|text| text.starts_with("echo: I always drink green tea.")).await;
    house.logs("learned from conversation").await;
    // Memory that is off for one of them is off for both.
    phone.say("/memory off");
    phone.reads_so(|text| text.starts_with("Memory is off: I no longer learn")).await;

    // The process dies when the files are merged but the index is not.
    house.kill();
    house.set("PUDU_CRASH_AT", "memory.merged_files");
    house.start();
    join(&ada, &phone).await;
    assert!(house.ended(SOON).await.is_some(), "it died");
    house.set("PUDU_CRASH_AT", "");
    house.start();
    house.logs("merged two memories").await;

    ada.say("/memory");
    let listed = ada.reads_so(|text| text.contains("My memory of this chat")).await;
    for (words, count) in
        [("bicycle", 1), ("Bello", 1), ("green tea", 1), ("3 facts", 1), ("Memory is off", 1)]
    {
        assert_eq!(listed.matches(words).count(), count, "{words}: {listed}");
    }
    ada.says("/memory on", "Memory is on.").await;
    ada.says("/new", "New conversation started.").await;
    ada.say("what is my dog called, and what do I always drink?");
    ada.reads_so(|text| text.starts_with("echo: what is my dog called")).await;
    let told = crate::memory::told(&house);
    assert!(told.contains("Bello") && told.contains("Prefers green tea"), "{told}");
    // Her earlier messages are also found: they moved with her.
    assert!(told.contains("I always drink green tea."), "{told}");

    phone.say("/connect off");
    phone.reads_so(|text| text.contains("stays with the other")).await;
    phone.say("/memory");
    phone.reads_so(|text| text.starts_with("My memory of this chat is empty.")).await;
}

#[tokio::test]
async fn what_several_people_share_is_nobodys_to_bring() {
    let shared = format!("  unpaired_people: shared\n{QUICK}");
    let mut house = House::furnish(Options::default(), "", &shared).await;
    house.start();
    let (ada, bob, phone) =
        (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"), Talker::new(&house, "Ada's phone"));
    adds(&bob, "I ride a red bicycle.").await;
    join(&ada, &phone).await;
    phone.reads_so(|text| text.starts_with("Done: you are now Ada")).await;
    for person in [&ada, &phone] {
        person.says("/memory", "My memory of this chat is empty.").await;
    }
    bob.say("/memory");
    bob.reads_so(|text| text.contains("I ride a red bicycle.")).await;
}

#[tokio::test]
async fn what_is_remembered_goes_out_as_a_file_and_comes_back() {
    let mut house = furnished().await;
    let ada = Talker::new(&house, "Ada");
    adds(&ada, "I ride a red bicycle.").await;
    ada.say("/memory export");
    ada.reads_so(|text| text.contains("Here are the facts that I remember.")).await;
    let user = user(&house);
    let (well, text) = house.pudu(&["memory", "export", "--user", &user]);
    assert!(well, "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["version"], &document["facts"][0]["content"]),
        (&json!("2.0"), &json!("I ride a red bicycle."))
    );
    let sent = walk(&house.path(".pudu/sent"));
    assert_eq!(serde_json::from_str::<Value>(&sent[0]).unwrap(), document, "the same for both");

    std::fs::write(house.path("old.json"), json!({ "facts": [{ "content": "Speaks Welsh" }] }).to_string())
        .unwrap();
    let import = |house: &House, more: &[&str]| {
        house.pudu(&[&["memory", "import", "old.json", "--user", &user], more].concat())
    };
    let (well, said) = import(&house, &["--yes"]);
    assert!(!well && said.contains("is already using"), "a daemon has it: {said}");
    house.stop().await;
    let (well, said) = import(&house, &[]);
    assert!(!well && said.contains("--yes"), "{said}");
    let (well, said) = import(&house, &["--yes"]);
    assert!(well && said.contains("Stored 1 facts of"), "{said}");
    let (_, listed) = house.pudu(&["memory", "list", "--user", &user]);
    assert!(listed.contains("Speaks Welsh") && !listed.contains("bicycle"), "{listed}");
    let (_, users) = house.pudu(&["memory", "list"]);
    assert!(users.contains(&user), "{users}");
    for (args, expect) in [
        (&["memory", "list", "--user", "nobody"][..], "nothing is stored about a user \"nobody\""),
        (&["memory", "export", "--user", &user, "--output", "old.json"], "cannot write old.json"),
        (&["memory", "import", "log", "--user", &user, "--yes"], "is not valid JSON"),
        (&["memory", "import", "none", "--user", &user, "--yes"], "cannot read none"),
    ] {
        let (well, said) = house.pudu(args);
        assert!(!well && said.contains(expect), "{args:?}: {said}");
    }
}

/// Returns the only user with memory.
fn user(house: &House) -> String {
    let folders = std::fs::read_dir(house.path(".pudu/users")).unwrap().flatten();
    let mut names = folders.map(|entry| entry.file_name().into_string().unwrap());
    names.find(|name| name.starts_with("telegram-")).unwrap()
}

/// Returns the files of a folder that contain a text, as bytes.
fn with_words(folder: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(with_words(&entry.path(), words));
        } else {
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            let is_there = bytes.windows(words.len()).any(|window| window == words.as_bytes());
            found.extend(is_there.then(|| entry.path().display().to_string()));
        }
    }
    found
}

/// Waits until no file of the home has these words. SQLite's write-ahead log contains a deleted row until it is
/// truncated.
async fn are_gone(house: &House, words: &str) {
    let late = Instant::now() + SOON;
    loop {
        let left = with_words(&house.path(".pudu"), words);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < late, "{words}: {left:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_is_forgotten_is_nowhere_in_the_home_any_more() {
    let mut house = furnished().await;
    let ada = Talker::new(&house, "Ada");
    adds(&ada, "I ride a red bicycle.").await;
    let user = user(&house);
    house.stop().await;
    // Memory of version 1.0, with a summary that mentions the fact; a correction replaces an older fact.
    let fact =
        |id: &str, text: &str| json!({ "id": id, "content": text, "category": "context", "confidence": 0.9 });
    let old = json!({
        "version": "1.0",
        "user": {
            "personalContext": { "summary": "Rides to work. Keeps a falcon named Quillon. Drinks tea.", "updatedAt": "" },
        },
        "facts": [fact("fact_bird", "Keeps a falcon, Quillon"), fact("fact_car", "Has an old car")],
    });
    std::fs::write(house.path(format!(".pudu/users/{user}/memory.json")), old.to_string()).unwrap();
    house.start();
    ada.say("/memory search car");
    ada.reads_so(|text| text.contains("Has an old car")).await;
    // Everything is indexed, including facts that were added by DeerFlow.
    adds(&ada, "I collect stamps.").await;
    ada.say("/memory export");
    ada.reads_so(|text| text.contains("Here are the facts that I remember.")).await;
    assert!(with_words(&house.path(".pudu"), "Quillon").len() > 3);
    ada.says("/memory forget fact_bird", "Forgotten.").await;
    for words in ["Quillon", "falcon"] {
        are_gone(&house, words).await;
    }
    let (_, left) = house.pudu(&["memory", "export", "--user", &user]);
    let left: Value = serde_json::from_str(&left).unwrap();
    assert_eq!(left["user"]["personalContext"]["summary"], "Rides to work. Drinks tea.");
    assert_eq!(left["facts"].as_array().unwrap().len(), 3, "{left}");
}

#[tokio::test]
async fn a_deleted_thread_is_gone_from_every_file() {
    let house = furnished().await;
    let ada = Talker::new(&house, "Ada");
    ada.says("Where is the quillonvane?", "echo: Where is the quillonvane?").await;
    assert!(!with_words(&house.path(".pudu"), "quillonvane").is_empty());
    let threads = house.database().await.threads("telegram").await.unwrap();
    let thread = threads[0].id.to_string();
    let late = Instant::now() + 2 * SOON;
    while !house.pudu(&["storage", "delete", &thread]).0 {
        assert!(Instant::now() < late, "something works on it still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    are_gone(&house, "quillonvane").await;
}

#[tokio::test]
async fn what_waits_to_be_read_is_forgotten_too_and_read_when_the_daemon_stops() {
    let mut house = House::furnish(Options::default(), "", "memory: {debounce_seconds: 300}\n").await;
    let answer = proposes("Prefers green tea", "I always drink green tea");
    house.model.when(learns, move |_| Reply::text(&answer).into());
    house.start();
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    for person in [&ada, &bob] {
        person.says("I always drink green tea.", "echo: I always drink green tea.").await;
    }
    ada.says("/memory forget all", "I forgot everything.").await;
    house.stop().await;
    let read = house.model.requests().iter().filter(|ask| learns(ask)).count();
    assert_eq!(read, 1, "Bob's alone");
    house.start();
    ada.says("/memory", "My memory of this chat is empty.").await;
    bob.say("/memory");
    bob.reads_so(|text| text.contains("Prefers green tea")).await;
    // Her later messages are remembered.
    ada.says("I always drink green tea, still.", "echo: I always drink green tea, still.").await;
    house.stop().await;
    house.start();
    ada.say("/memory");
    ada.reads_so(|text| text.contains("Prefers green tea")).await;
}
