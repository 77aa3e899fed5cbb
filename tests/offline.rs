//! Commands about stored data answer alike with and without a daemon.

use crate::{
    house::{House, Talker},
    sign_in::add_user,
};
use pudu_sim::model::Reply;
use serde_json::{Value, json};

/// Commands that print JSON.
const LISTS: [&[&str]; 9] = [
    &["usage"],
    &["usage", "--days", "7"],
    &["audit"],
    &["audit", "--limit", "1"],
    &["storage", "show"],
    &["storage", "threads"],
    &["users"],
    &["user", "list"],
    &["token", "list"],
];
/// Commands that are refused.
const REFUSED: [&[&str]; 7] = [
    &["export", "--user", "nobody"],
    &["forget", "--user", "nobody", "--yes"],
    &["storage", "delete", "none"],
    &["user", "adopt", "nobody@example.org"],
    &["user", "remove", "nobody@example.org"],
    &["token", "add", "ci", "--user", "nobody@example.org"],
    &["token", "add", "ci", "--scope", "everything"],
];

/// Returns the outputs of all commands.
fn outputs(house: &House) -> Vec<(bool, String)> {
    let lists = LISTS.iter().map(|args| house.pudu(&[*args, &["--json"]].concat()));
    lists.chain(REFUSED.iter().map(|args| house.pudu(args))).collect()
}

#[tokio::test]
async fn each_command_answers_alike_with_and_without_a_daemon() {
    let rest = "budgets: {person: {tokens_per_month: 1000000}}\nsandbox: {allow_host_bash: true}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    assert!(add_user(&house, &["add", "ada@example.org", "--admin"], "correct horse").0);
    assert!(house.pudu(&["token", "add", "ci", "--user", "ada@example.org"]).0);
    house.start();
    let bo = Talker::new(&house, "Bo");
    house.model.next(Reply::tool("bash", &json!({"command": "echo hello"})));
    bo.says("work", "echo: work").await;
    house.stop().await;
    let without = outputs(&house);
    for (args, (well, text)) in LISTS.iter().zip(&without) {
        let facts: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"));
        let has_rows = |facts: &Value| facts.as_array().is_some_and(|rows| !rows.is_empty());
        let is_filled =
            has_rows(&facts) || ["people", "accounts", "threads"].iter().any(|key| has_rows(&facts[key]));
        assert!(*well && is_filled, "{args:?}: {text}");
    }
    for (args, (well, text)) in REFUSED.iter().zip(&without[LISTS.len()..]) {
        assert!(!well && text.starts_with("error: ") && text.lines().count() == 1, "{args:?}: {text}");
    }
    house.start();
    for (args, (with, without)) in LISTS.iter().chain(&REFUSED).zip(outputs(&house).iter().zip(&without)) {
        assert_eq!(with, without, "{args:?}");
    }
}

#[tokio::test]
async fn a_command_that_reads_takes_no_lock_and_makes_no_store() {
    let house = House::build("").await;
    for args in LISTS {
        assert!(house.pudu(args).0, "{args:?}");
    }
    assert!(!house.path(".pudu").exists());
    std::fs::create_dir(house.path(".pudu")).unwrap();
    let _home = pudu_kit::home::Home::lock(&house.path(".pudu")).unwrap();
    for args in LISTS {
        assert!(house.pudu(args).0, "{args:?}");
    }
    let (well, told) = house.pudu(&["user", "remove", "ada@example.org"]);
    assert!(!well && told.contains("is already using .pudu"), "{told}");
}
