use super::*;
use pudu_base::{Assistant, Finish, ToolCall, Usage};
use serde_json::json;

fn human(id: &str) -> Human {
    Human::new(id, id)
}

fn task(input: Vec<Human>, again: Option<&str>) -> RunTask {
    RunTask { input, again: again.map(Into::into), ..RunTask::new("t".into(), "r".into()) }
}

/// Without its earlier spending, a run's token budget would restart from zero after each restart.
#[tokio::test]
async fn a_resumed_run_knows_its_spending_or_fails() {
    let home = tempfile::tempdir().unwrap();
    let folders = pudu_sandbox::Folders::new(home.path().to_owned(), None);
    let places = pudu_sandbox::LocalSandboxes::new(folders.clone(), None, pudu_sandbox::Options::default());
    let setup = pudu_agent::AgentSetup::new([], [], pudu_harness::RunBounds::default(), Arc::new(places));
    let db = pudu_store::Db::open(&pudu_store::DbLocation::Memory).await.unwrap();
    let agent = Agent::new(db.clone(), folders, setup, pudu_skills::Skills::none());
    let call = pudu_store::ModelCall {
        id: "1".into(),
        run: "r".into(),
        thread: "t".into(),
        spender: pudu_store::Spender::default(),
        caller: ModelCaller::Lead,
        at: now(),
    };
    let usage = Usage::plain(100, 10);
    let spent = pudu_store::CallSpending { model: "m".into(), usage, reported: true, cost: None };
    db.settle(pudu_store::Settlement { call, spent: Some(spent), reservation: None });
    db.save_position("telegram", "1", 1).await.unwrap();
    let turn = || RunState::new("t".into(), "r".into(), 0, ThreadState::default(), Arc::default());
    let mut known = turn();
    begin(&agent, &mut known, true).await.unwrap();
    assert_eq!(known.spending.usage().total(), 110);
    db.close().await;
    assert!(matches!(begin(&agent, &mut turn(), true).await, Err(LogError::Store(_))));
    assert!(begin(&agent, &mut turn(), false).await.is_ok(), "a new run has no spending");
}

/// A thread with an open call of a reply, and a message that arrived since.
fn left_open() -> ThreadState {
    let call = ToolCall { id: "c".into(), name: "bash".into(), args: json!({}), garbled: None };
    let reply = Assistant {
        id: "a".into(),
        text: "Let me look.".into(),
        reasoning: None,
        provider_parts: None,
        calls: vec![call],
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    };
    let messages = [Message::Human(human("h1")), Message::Assistant(reply), Message::Human(human("h2"))];
    ThreadState::fold(messages.map(|message| Update::Message(Arc::new(message))))
}

#[test]
fn only_the_same_run_makes_its_open_calls() {
    let refused = "Not finished: an earlier run ended before it.";
    let check = |task: RunTask, texts: &[&str], open: usize| {
        let mut turn = RunState::new("t".into(), "r".into(), 0, left_open(), Arc::default());
        add_input(&mut turn, &task);
        let texts_in_thread: Vec<&str> =
            turn.state().messages.values().map(|message| message.text()).collect();
        assert_eq!((texts_in_thread.as_slice(), turn.open_calls().len()), (texts, open), "{task:?}");
    };
    check(task(vec![human("h3")], None), &["h1", "Let me look.", "h2", refused, "h3"], 0);
    check(task(Vec::new(), Some("h3")), &["h1", "Let me look.", refused, "h2"], 0);
    check(task(vec![human("h1"), human("h3")], None), &["h1", "Let me look.", "h2", "h3"], 1);
    let known = RunTask { first: Some("h1".into()), ..task(vec![human("h3")], None) };
    check(known, &["h1", "Let me look.", "h2", "h3"], 1);
    check(task(vec![human("h2")], None), &["h1", "Let me look.", "h2"], 1);
}

/// Clients choose ids, and may send a message again.
#[test]
fn a_repeated_client_message_is_answered_again() {
    let check = |input: &[(&str, &str)], resumed: bool, texts: &[&str]| {
        let said = |(id, text): &(&str, &str)| Human { text: (*text).to_owned(), ..human(id) };
        let input = input.iter().map(said).collect();
        let task = RunTask { by_client: true, resumed, ..task(input, None) };
        let state = ["h1", "h2"].map(|id| Update::Message(Arc::new(Message::Human(human(id)))));
        let mut turn = RunState::new("t".into(), "r".into(), 0, ThreadState::fold(state), Arc::default());
        assert_eq!(add_input(&mut turn, &task), resumed);
        let texts_in_thread: Vec<&str> =
            turn.state().messages.values().map(|message| message.text()).collect();
        assert_eq!(texts_in_thread, texts, "{task:?}");
    };
    check(&[("h1", "new")], false, &["h2", "new"]);
    check(&[("h1", "h1"), ("h3", "h3")], false, &["h1", "h2", "h3"]);
    check(&[("h1", "new"), ("h3", "h3")], false, &["new", "h2", "h3"]);
    check(&[("h1", "new")], true, &["h1", "h2"]);
}
