//! Users: people and rooms have their own files and usage, and linking two platforms makes one user.

use crate::house::{House, Talker};
use pudu_sim::{
    model::{Answer, Reply},
    telegram::{Kind, Options},
};
use serde_json::{Value, json};
use std::path::PathBuf;

const NOTE: &str = "/mnt/user-data/workspace/note.txt";

async fn furnished(rest: &str) -> House {
    let mut house = House::furnish(Options::default(), "", rest).await;
    house.start();
    house
}

/// Returns the folders of users with a note, and its text.
fn notes(house: &House) -> Vec<(String, String)> {
    let users = std::fs::read_dir(house.path(".pudu/users")).into_iter().flatten().flatten();
    let mut notes = Vec::new();
    for user in users {
        let threads: PathBuf = user.path().join("threads");
        for thread in std::fs::read_dir(threads).into_iter().flatten().flatten() {
            let note = thread.path().join("user-data/workspace/note.txt");
            if let Ok(text) = std::fs::read_to_string(note) {
                notes.push((user.file_name().into_string().unwrap(), text));
            }
        }
    }
    notes.sort();
    notes
}

fn writes(text: &str) -> Answer {
    Reply::tool("write_file", &json!({ "description": "notes", "path": NOTE, "content": text }))
}

#[tokio::test]
async fn each_person_has_their_own_folder_and_the_page_has_the_local_one() {
    let house = furnished("").await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    house.model.next(writes("Ada's"));
    ada.says("note", "echo: note").await;
    house.model.next(writes("Bob's"));
    bob.says("note", "echo: note").await;
    let found = notes(&house);
    let [(one, first), (two, second)] = &found[..] else { panic!("{found:?}") };
    let mut texts = [first.as_str(), second.as_str()];
    texts.sort_unstable();
    assert_eq!(texts, ["Ada's", "Bob's"]);
    assert!(one != two && one.starts_with("telegram-") && two.starts_with("telegram-"), "{found:?}");

    house.model.next(writes("the page's"));
    assert_eq!(house.begin_run("main", "note").await, 200);
    house.model.wait(crate::house::SOON, |model| (model.count() == 6).then_some(())).await.unwrap();
    assert!(notes(&house).contains(&("default".to_owned(), "the page's".to_owned())));
}

#[tokio::test]
async fn where_the_operator_wants_it_all_share_one_folder() {
    let mut house = House::furnish(Options::default(), "", "  unpaired_people: shared\n").await;
    house.start();
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    house.model.next(writes("Ada's"));
    ada.says("note", "echo: note").await;
    house.model.next(writes("Bob's"));
    bob.says("note", "echo: note").await;
    let default = |text: &str| ("default".to_owned(), text.to_owned());
    assert_eq!(notes(&house), [default("Ada's"), default("Bob's")]);
}

#[tokio::test]
async fn commands_know_for_whom_they_run_by_the_platforms_id() {
    let house = furnished("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool(
        "bash",
        &json!({ "description": "asks", "command": "echo for=$DEERFLOW_CHANNEL_USER_ID" }),
    ));
    ada.says("who am I?", "echo: who am I?").await;
    let told = house.model.requests().pop().unwrap().body.to_string();
    let id = format!("for={}", ada.person.0);
    assert!(told.contains(&id), "{id} is not in {told}");
}

/// Returns the code in an offer.
pub fn code(offer: &str) -> String {
    let (_, rest) = offer.split_once("/connect ").unwrap();
    rest.split_once('.').unwrap().0.to_owned()
}

#[tokio::test]
async fn who_shows_a_persons_code_and_confirms_it_is_the_same_person() {
    let house = furnished("").await;
    let (ada, other) = (Talker::new(&house, "Ada"), Talker::new(&house, "Ada's other phone"));
    house.model.next(Reply::text("one").usage(100, 10));
    ada.says("hello", "one").await;
    ada.say("/connect");
    let offer = ada.reads_so(|text| text.contains("within ten minutes: /connect ")).await;
    let code = code(&offer);
    assert_eq!(code.len(), 22);

    let confirm = format!("/connect {code} yes");
    other.say(&format!("/connect {code}"));
    let asked = other.reads_so(|text| text.contains(&confirm)).await;
    assert!(asked.contains("links you with Ada on telegram"), "{asked}");
    other
        .says("/connect nonsense", "This code is invalid or has expired. Ask your admin for a new one.")
        .await;
    other.says(&confirm, "Done: you are now Ada on telegram. /connect off unlinks the accounts.").await;
    ada.reads_so(|text| text.starts_with("Ada's other phone on telegram is now linked with you")).await;
    other.says(&confirm, "This code is invalid or has expired. Ask your admin for a new one.").await;

    house.model.next(Reply::text("two").usage(1_000, 10));
    other.says("hello", "two").await;
    ada.say("/usage");
    let usage = ada.reads_so(|text| text.contains("Your usage today")).await;
    assert!(usage.contains("1120"), "both chats count: {usage}");
    house.model.next(writes("both"));
    other.says("/new", "New conversation started.").await;
    other.says("note", "echo: note").await;

    other
        .says(
            "/connect off",
            "Done: this account is separate again. The shared memory stays with the other account.",
        )
        .await;
    other.says("/connect off", "This account is not linked with another one.").await;
    let mut users: Vec<Value> = notes(&house).into_iter().map(|(user, _)| user.into()).collect();
    users.dedup();
    assert_eq!(users.len(), 1, "{users:?}");
}

#[tokio::test]
async fn a_joined_person_stays_so_over_a_restart_and_no_code_is_shown_in_a_group() {
    let mut house = furnished("").await;
    let (ada, other) = (Talker::new(&house, "Ada"), Talker::new(&house, "Other"));
    ada.say("/connect");
    let code = code(&ada.reads_so(|text| text.contains("within ten minutes: /connect ")).await);
    house.kill();
    house.start();
    other
        .says(
            &format!("/connect {code} yes"),
            "Done: you are now Ada on telegram. /connect off unlinks the accounts.",
        )
        .await;
    house.kill();
    house.start();
    ada.say("/connect");
    let again =
        ada.reads_so(|text| text.contains("within ten minutes: /connect ") && !text.contains(&code)).await;
    let again = self::code(&again);
    other.says(&format!("/connect {again} yes"), "These accounts are linked already.").await;
}

#[tokio::test]
async fn whose_code_was_used_by_somebody_else_gets_rid_of_them() {
    let house = furnished("memory: {debounce_seconds: 300}\n").await;
    let (ada, eve) = (Talker::new(&house, "Ada"), Talker::new(&house, "Eve"));
    ada.say("/connect");
    let code = code(&ada.reads_so(|text| text.contains("within ten minutes: /connect ")).await);
    let confirm = format!("/connect {code} yes");
    eve.says(&confirm, "Done: you are now Ada on telegram. /connect off unlinks the accounts.").await;
    ada.reads_so(|text| text.contains("If this is not you, send /connect off here.")).await;
    eve.say("/memory add My dog is called Bello.");
    eve.reads_so(|text| text.starts_with("Remembered as")).await;
    let others =
        "Done: the account that was linked by your code is separate again. The shared memory stays with you.";
    ada.says("/connect off", others).await;
    eve.reads_so(|text| text.starts_with("Ada ended the link: this account is separate again.")).await;
    eve.says("/memory", "My memory of this chat is empty.").await;
    ada.say("/memory");
    ada.reads_so(|text| text.contains("Bello")).await;
    let invalid = "This code is invalid or has expired. Ask your admin for a new one.";
    eve.says(&confirm, invalid).await;
}

#[tokio::test]
async fn in_a_group_nobody_reads_what_another_one_spent() {
    let budgets = "budgets: {person: {tokens_per_day: 100000}, room: {tokens_per_day: 7000000}}\n";
    let mut house = House::furnish(Options::default(), "require_mention: false", budgets).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.say("hello");
    ada.reads_so(|text| text.contains("hello")).await;
    let group = ada.at(house.telegram.add_group(Kind::Group, "team", &[ada.person]));
    group.say("/usage");
    let told = group.reads_so(|text| text.contains("in a private chat")).await;
    assert!(told.contains("The budget of this room for today") && told.contains("7000000"), "{told}");
    assert!(!told.contains("Your usage today") && !told.contains("100000 tokens"), "{told}");
    ada.say("/usage");
    let told = ada.reads_so(|text| text.contains("Your usage today")).await;
    assert!(told.contains("Your budget for today"), "{told}");
}
