use crate::fixture::{Bench, ScriptedReply, call, calls, human, text_reply};
use pudu_base::{Outcome, Todo, TodoStatus, Tool, ToolCall, ToolCx, ToolError, ToolOutput, ToolSpec, Update};
use serde_json::{Value, json};
use std::sync::Arc;

/// The name and schema of the tool that writes the list.
struct Writes(Arc<ToolSpec>);

impl Tool for Writes {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn call<'a>(
        &'a self,
        args: Value,
        _: &'a ToolCx,
    ) -> pudu_base::BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let todos: Vec<Todo> = serde_json::from_value(args["todos"].clone()).unwrap();
        let updates = vec![Update::Todos(todos)];
        Box::pin(std::future::ready(Ok(ToolOutput { text: "ok".into(), updates, ..ToolOutput::default() })))
    }
}

fn bench(replies: Vec<ScriptedReply>) -> Bench {
    let mut bench = Bench::new(replies);
    let spec = ToolSpec {
        name: "write_todos".into(),
        description: String::new(),
        parameters: json!({}),
        idempotent: true,
    };
    bench.agent.tools = bench.agent.tools.with(Arc::new(Writes(Arc::new(spec))));
    bench.agent.bounds.steps = 20;
    bench
}

fn writes(id: &str, statuses: &[&str]) -> ToolCall {
    let todos: Vec<Value> = statuses
        .iter()
        .enumerate()
        .map(|(at, status)| json!({"content": format!("step {at}"), "status": status}))
        .collect();
    call(id, "write_todos", json!({ "todos": todos }))
}

#[tokio::test]
async fn an_answer_with_open_entries_is_sent_back_twice_and_then_accepted() {
    let open = writes("1", &["completed", "in_progress"]);
    let bench = bench(vec![
        calls(vec![open]),
        text_reply("Half."),
        text_reply("Still half."),
        text_reply("That is all."),
    ]);
    let (outcome, seen) = bench.run(Some("do it")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "Half.\n\nStill half.\n\nThat is all."));
    let requests = bench.asked();
    let reminded = |at: usize| requests[at].last().unwrap().starts_with("reminder: You have answered");
    assert_eq!((0..4).filter(|at| reminded(*at)).collect::<Vec<_>>(), [2, 3], "{requests:?}");
    assert!(
        requests[2].last().unwrap().contains("- [in progress] step 1\n"),
        "only the open entries: {requests:?}"
    );
    assert!(
        requests.windows(2).all(|pair| pair[1].starts_with(&pair[0])),
        "a request begins like the previous one"
    );
}

#[tokio::test]
async fn a_finished_or_earlier_list_delays_no_answer() {
    let done = bench(vec![calls(vec![writes("1", &["completed"])]), text_reply("Done.")]);
    assert_eq!(done.run(Some("do it")).await.1.text, "Done.");
    let left = Update::Todos(vec![Todo { content: "old".into(), status: TodoStatus::Pending }]);
    let (steps, answer) = (human("q", "before"), text_reply("Hello."));
    let later = bench(vec![answer]).past(vec![steps, left]);
    assert_eq!(later.run(Some("hi")).await.1.text, "Hello.");
    let requests = later.asked();
    assert!(
        requests[0].last().unwrap().contains("no longer visible above. Its current state:\n- [pending] old")
    );
}

#[tokio::test]
async fn a_list_out_of_sight_is_shown_once() {
    let left = Update::Todos(vec![Todo { content: "old".into(), status: TodoStatus::Pending }]);
    let looks = || calls(vec![call("1", "reads", json!({}))]);
    let bench = bench(vec![looks(), looks(), text_reply("Hello.")]).past(vec![human("q", "before"), left]);
    bench.run(Some("hi")).await;
    let shown = bench.asked()[2].iter().filter(|line| line.contains("Its current state")).count();
    assert_eq!(shown, 1, "{:?}", bench.asked());
}

#[tokio::test]
async fn two_lists_in_one_reply_are_refused_and_readers_see_complete_lists() {
    let both = vec![writes("1", &["pending"]), writes("2", &["completed"])];
    let replies = vec![
        calls(both),
        calls(vec![writes("3", &["in_progress", "pending"])]),
        text_reply("a"),
        text_reply("b"),
        text_reply("c"),
    ];
    let bench = bench(replies);
    let (_, seen) = bench.run(Some("do it")).await;
    assert_eq!(bench.thread().iter().filter(|text| text.contains("None of these calls was made")).count(), 2);
    let statuses: Vec<TodoStatus> = seen.todos.iter().map(|todo| todo.status).collect();
    assert_eq!(statuses, [TodoStatus::InProgress, TodoStatus::Pending]);
}
