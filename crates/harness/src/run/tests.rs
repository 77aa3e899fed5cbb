use super::*;
use crate::{
    ApprovalPolicy,
    fixture::{Bench, ScriptedReply, assistant, call, calls, human, text_reply},
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, FailureClass, Human, ModelError, Question, RetryReason,
    RunId, Seq, Tell, ThreadId, ThreadLog, ThreadState, ToolResult, Usage,
};
use serde_json::json;
use std::{
    sync::{Mutex, atomic::Ordering},
    time::Duration,
};

#[tokio::test]
async fn a_plain_answer_is_one_model_call() {
    let bench = Bench::new(vec![text_reply("42")]);
    let (outcome, seen) = bench.run(Some("6 x 7?")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "42"));
    assert_eq!(bench.asked(), [["human: 6 x 7?"]]);
    assert_eq!(bench.thread(), ["6 x 7?", "42"]);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_reply_run_concurrently_and_are_read_in_call_order() {
    let both = vec![
        call("1", "reads", json!({"do": "wait", "s": 9})),
        call("2", "reads", json!({"do": "wait", "s": 4})),
    ];
    let bench = Bench::new(vec![calls(both), text_reply("done")]);
    let start = tokio::time::Instant::now();
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, start.elapsed()), (Outcome::Success, Duration::from_secs(9)));
    assert_eq!(bench.asked()[1], ["human: go", "assistant: ", "tool: waited 9", "tool: waited 4"]);
}

#[tokio::test]
async fn errors_of_calls_are_reported_to_the_model_and_the_run_continues() {
    let garbled = ToolCall { garbled: Some("{oops".into()), ..call("1", "writes", json!({})) };
    let check = |bad: ToolCall, expect: &'static str| async move {
        let bench = Bench::new(vec![calls(vec![bad]), text_reply("sorry")]);
        let (outcome, _) = bench.run(Some("go")).await;
        assert_eq!(outcome, Outcome::Success);
        assert_eq!(bench.thread(), ["go", "", expect, "sorry"]);
    };
    check(garbled, "Error: the arguments are not a JSON object: {oops").await;
    check(call("1", "flies", json!({})), "Error: there is no tool flies. There are: writes, reads.").await;
    check(call("1", "writes", json!({"do": "fail"})), "Error: out of paper").await;
    check(call("1", "writes", json!({"do": "panic"})), "Error: writes failed with an internal error").await;
}

#[tokio::test]
async fn a_filtered_answer_calls_no_tool() {
    let cut = ScriptedReply::Says(vec![
        Ok(Delta::Text("I will".into())),
        Ok(Delta::Call(call("1", "writes", json!({})))),
        Ok(Delta::Finish(Finish::Filtered)),
    ]);
    let bench = Bench::new(vec![cut]);
    bench.run(Some("go")).await;
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
}

/// A reply in pieces with this finish reason.
fn ends(pieces: Vec<Delta>, finish: Finish) -> ScriptedReply {
    ScriptedReply::Says(pieces.into_iter().chain([Delta::Finish(finish)]).map(Ok).collect())
}

#[tokio::test]
async fn a_reply_truncated_by_the_output_limit_is_reported() {
    let text = || Delta::Text("One, two".into());
    let bench = Bench::new(vec![ends(vec![text()], Finish::Length)]);
    let replay = bench.events(Some("count")).await;
    let cut = RunEvent::Ended { outcome: Outcome::Success, finish: Finish::Length };
    assert_eq!(replay.last(), Some(&cut), "the outcome says that the reply is incomplete");
    let thought = vec![Delta::Reasoning("Hm.".into())];
    let bench = Bench::new(vec![ends(thought, Finish::Length)]);
    assert_eq!(bench.run(Some("think")).await.0, FailureCause::OnlyThought.into());
    let garbled = ToolCall { garbled: Some("{\"path\": \"/a".into()), ..call("1", "writes", json!({})) };
    let bench = Bench::new(vec![ends(vec![Delta::Call(garbled)], Finish::Length), text_reply("in parts")]);
    bench.run(Some("write")).await;
    assert!(
        bench.asked()[1][2].starts_with("tool: Error: the output limit truncated your reply"),
        "{:?}",
        bench.asked()
    );
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_paused_reply_is_sent_back_and_continues_within_the_steps() {
    let paused = |text: &str| ends(vec![Delta::Text(text.into())], Finish::Paused);
    let bench = Bench::new(vec![paused("One,"), text_reply("two.")]);
    let (outcome, seen) = bench.run(Some("count")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "One,\n\ntwo."));
    assert_eq!(bench.asked()[1], ["human: count", "assistant: One,"]);
    let bench = Bench::new(vec![paused("a"), paused("b"), paused("c")]);
    assert_eq!(bench.run(Some("count")).await.0, Outcome::Limit);
}

#[tokio::test]
async fn a_stop_keeps_the_partial_answer() {
    let bench = Bench::new(vec![ScriptedReply::Stalls("Once upon")]);
    let cancel = bench.cancel.clone();
    let ((outcome, seen), ()) = tokio::join!(bench.run(Some("tell")), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!((outcome.clone(), seen.text.as_str()), (Outcome::Stopped, "Once upon"));
    assert_eq!(seen.outcome, Some(outcome));
    let state = ThreadState::fold(bench.log.updates.lock().unwrap().clone());
    let Some(Message::Assistant(kept)) = state.last().map(AsRef::as_ref) else { panic!("nothing kept") };
    assert_eq!((kept.text.as_str(), kept.finish), ("Once upon", Finish::Partial));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_ends_and_its_open_call_is_answered() {
    let bench = Bench::new(vec![calls(vec![call("1", "writes", json!({"do": "hang"}))])]);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!(outcome, Outcome::Timeout);
    assert_eq!(bench.thread(), ["go", "", "Not finished: the run took too long."]);
}

#[tokio::test]
async fn model_calls_are_limited() {
    let replies = (0..3).map(|n| calls(vec![call(&n.to_string(), "reads", json!({}))])).collect();
    let (outcome, _) = Bench::new(replies).run(Some("go")).await;
    assert_eq!(outcome, Outcome::Limit);
}

#[tokio::test]
async fn a_failed_model_ends_the_run_with_a_class_and_a_hint() {
    let bench = Bench::new(vec![ScriptedReply::Says(vec![Err(ModelError::Auth("HTTP 401".into()))])]);
    let (outcome, _) = bench.run(Some("go")).await;
    let Outcome::Error(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.class, FailureClass::Auth);
    assert!(failure.hint.contains("rejected the API key (HTTP 401)"), "{}", failure.hint);
}

#[tokio::test]
async fn after_a_crash_no_finished_tool_is_repeated() {
    let result = |id: &str| {
        Update::Message(Arc::new(Message::Tool(ToolResult {
            id: format!("r{id}").into(),
            call: id.into(),
            tool: "writes".into(),
            text: "worked before".into(),
            error: false,
            question: None,
            images: Vec::new(),
            decision: None,
            decisions: Vec::new(),
            task: None,
        })))
    };
    let all = vec![
        call("1", "writes", json!({})),
        call("2", "writes", json!({})),
        call("3", "reads", json!({})),
        call("4", "writes", json!({})),
        call("5", "gone", json!({})),
        call("6", "gone", json!({})),
    ];
    let past = vec![
        human("h", "go"),
        assistant(all),
        Update::Begin("1".into()),
        Update::Begin("2".into()),
        Update::Begin("3".into()),
        Update::Begin("5".into()),
        result("1"),
    ];
    let bench = Bench::new(vec![text_reply("done")]).past(past);
    let (outcome, _) = bench.run(None).await;
    assert_eq!(outcome, Outcome::Success);
    // Call 1 had finished, 2 was interrupted and may have had its effect, 3 only reads, 4 had not begun; 5
    // and 6 have no tool any more, and 5 was interrupted.
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 1);
    assert_eq!(bench.reads.calls.load(Ordering::SeqCst), 1);
    let request = &bench.asked()[0];
    assert_eq!(request[2], "tool: worked before");
    assert!(request[3].starts_with("tool: Error: a restart interrupted this call."), "{request:?}");
    assert_eq!(request[4..6], ["tool: worked", "tool: worked"]);
    assert_eq!(request[6], request[3]);
    assert!(request[7].starts_with("tool: Error: there is no tool gone."), "{request:?}");
}

#[tokio::test]
async fn after_a_crash_following_the_answer_the_model_is_not_called_again() {
    let bench = Bench::new(vec![]).past(vec![human("h", "go"), assistant(vec![])]);
    let late = Human::new("n", "one more thing");
    bench.steering.reserve().unwrap().fill(late.clone());
    let (outcome, _) = bench.run(None).await;
    assert_eq!((outcome, bench.asked().len()), (Outcome::Success, 0));
    assert_eq!(bench.steering.close().await, [late], "the message waits for the next run");
}

#[tokio::test]
async fn a_steering_message_enters_before_the_next_model_call() {
    let bench = Bench::new(vec![calls(vec![call("1", "reads", json!({}))]), text_reply("ok")]);
    let nudge = Human::new("n", "in French");
    bench.steering.reserve().unwrap().fill(nudge);
    bench.run(Some("go")).await;
    assert_eq!(bench.asked()[0], ["human: go", "human: in French"]);
    assert!(bench.steering.close().await.is_empty());
}

#[tokio::test]
async fn a_run_whose_thread_moved_on_stops_with_an_error() {
    let bench = Bench::new(vec![text_reply("42")]);
    *bench.log.conflict.lock().unwrap() = true;
    let (outcome, seen) = bench.run(Some("go")).await;
    assert!(matches!(&outcome, Outcome::Error(failure) if failure.class == FailureClass::Internal));
    assert_eq!((seen.outcome, bench.asked().len()), (Some(outcome), 0));
}

#[tokio::test]
async fn call_ids_that_a_provider_uses_twice_are_made_unique() {
    let replies = vec![
        calls(vec![call("call-0", "writes", json!({}))]),
        calls(vec![call("call-0", "writes", json!({}))]),
        text_reply("done"),
    ];
    let bench = Bench::new(replies);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, bench.writes.calls.load(Ordering::SeqCst)), (Outcome::Success, 2));
}

#[tokio::test]
async fn a_question_to_users_ends_the_run_after_the_other_calls() {
    let both = vec![call("1", "writes", json!({"do": "ask"})), call("2", "reads", json!({}))];
    let bench = Bench::new(vec![calls(both)]);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, bench.reads.calls.load(Ordering::SeqCst)), (Outcome::Success, 1));
    // The answer continues from there, and so does a restart after the question.
    bench.model.replies.lock().unwrap().push_back(text_reply("a it is"));
    let update = human("h2", "a");
    bench.log.updates.lock().unwrap().push(update);
    let (outcome, seen) = bench.run(None).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "a it is"));
}

#[tokio::test]
async fn after_a_restart_a_question_is_not_asked_again() {
    let question = ToolResult {
        id: "r".into(),
        call: "1".into(),
        tool: "writes".into(),
        text: String::new(),
        error: false,
        question: Some(Question { text: "Which?".into(), ..Question::default() }),
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: None,
    };
    let question = Update::Message(Arc::new(Message::Tool(question)));
    let past = vec![human("h", "go"), assistant(vec![call("1", "writes", json!({}))]), question];
    let bench = Bench::new(vec![]).past(past);
    assert_eq!((bench.run(None).await.0, bench.asked().len()), (Outcome::Success, 0));
}

/// Returns the given decision when it is released.
struct Boss(Mutex<Option<tokio::sync::oneshot::Receiver<Decision>>>);

impl Approver for Boss {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision> {
        tell(RunEvent::ApprovalRequested {
            call: request.call.clone(),
            key: "k".into(),
            request: request.line.clone(),
            whole: None,
            deadline: 0,
        });
        let word = self.0.lock().unwrap().take().unwrap();
        Box::pin(async move { word.await.unwrap() })
    }

    fn refused<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        unreachable!()
    }
}

#[tokio::test]
async fn a_call_that_needs_approval_delays_no_other() {
    for approved in [true, false] {
        let both = vec![call("1", "writes", json!({})), call("2", "reads", json!({}))];
        let mut bench = Bench::new(vec![calls(both), text_reply("done")]);
        let (say, word) = tokio::sync::oneshot::channel();
        bench.agent.approver = Arc::new(Boss(Mutex::new(Some(word))));
        bench.agent.policy =
            Arc::new(ApprovalPolicy { tools: ["writes".to_owned()].into(), ..ApprovalPolicy::default() });
        let decision =
            Decision { request: "`writes {}`".into(), approved, by: Some("Ada".into()), not_asked: false };
        let (log, reads, writes) = (bench.log.clone(), bench.reads.clone(), bench.writes.clone());
        let deciding = async {
            while reads.calls.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(writes.calls.load(Ordering::SeqCst), 0);
            // After a restart now, the call must not count as one that may have had its effect.
            let state = ThreadState::fold(log.updates.lock().unwrap().clone());
            assert!(!state.begun.contains(&pudu_base::CallId::from("1")));
            say.send(decision.clone()).unwrap();
        };
        let ((outcome, seen), ()) = tokio::join!(bench.run(Some("go")), deciding);
        assert_eq!((outcome, seen.decided), (Outcome::Success, vec![decision.clone()]));
        assert_eq!(seen.asked, []);
        assert_eq!(bench.writes.calls.load(Ordering::SeqCst), u32::from(approved));
        let state = ThreadState::fold(bench.log.updates.lock().unwrap().clone());
        let of = |message: &Arc<Message>| match &**message {
            Message::Tool(result) => result.decision.clone(),
            _ => None,
        };
        assert_eq!(state.messages.values().filter_map(of).collect::<Vec<_>>(), [decision]);
    }
}

/// Writes immediately, but reports the commit of an answer late.
struct Late {
    log: Arc<dyn ThreadLog>,
    held: Seq,
    reached: tokio::sync::Notify,
    free: tokio::sync::Notify,
}

impl ThreadLog for Late {
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        self.log.load(thread)
    }

    fn append<'a>(
        &'a self,
        thread: &'a ThreadId,
        run: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>> {
        Box::pin(async move {
            let seq = self.log.append(thread, run, at, updates).await?;
            if at == self.held {
                self.reached.notify_one();
                self.free.notified().await;
            }
            Ok(seq)
        })
    }
}

#[tokio::test]
async fn a_stop_while_a_reply_is_stored_leaves_no_open_call() {
    let mut bench = Bench::new(vec![calls(vec![call("1", "writes", json!({}))])]);
    let late = Arc::new(Late {
        log: bench.log.clone(),
        held: 1,
        reached: tokio::sync::Notify::default(),
        free: tokio::sync::Notify::default(),
    });
    bench.agent.log = late.clone();
    let cancel = bench.cancel.clone();
    let stopping = async {
        late.reached.notified().await;
        cancel.cancel();
        tokio::task::yield_now().await;
        late.free.notify_one();
    };
    let ((outcome, _), ()) = tokio::join!(bench.run(Some("go")), stopping);
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(bench.thread(), ["go", "", "Not finished: the run was stopped."]);
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_model_is_informed_about_files_above_the_limit() {
    let present =
        |id: &str, files: Vec<u32>| calls(vec![call(id, "writes", json!({"do": "present", "files": files}))]);
    let bench = Bench::new(vec![
        present("1", (1..=18).collect()),
        present("2", vec![1, 19, 20, 21, 22]),
        text_reply("here"),
    ]);
    bench.run(Some("go")).await;
    let requests = bench.asked();
    assert_eq!(requests[1].last().unwrap(), "tool: presented.");
    let expected = "tool: presented. Not sent, because an answer can have at most 20 files: 21, 22. Say so: people may ask for them in their next message.";
    assert_eq!(requests[2].last().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ended_the_process_twice_is_not_made_again() {
    let args = json!({"do": "wait", "s": 4});
    let check =
        async |past: Vec<Update>, replies: Vec<ScriptedReply>, tool: &str, made: u32, refused: &[&str]| {
            let bench = Bench::new(replies).past(past);
            assert_eq!(bench.run(None).await.0, Outcome::Success);
            let probe = if tool == "reads" { &bench.reads } else { &bench.writes };
            assert_eq!(probe.calls.load(Ordering::SeqCst), made, "{tool} {refused:?}");
            let results = bench.asked().pop().unwrap();
            let results: Vec<String> =
                results.into_iter().filter(|line| line.starts_with("tool: ")).collect();
            assert_eq!(results.len(), refused.len(), "{results:?}");
            for (result, words) in results.iter().zip(refused) {
                assert!(result.contains(words), "{result:?} lacks {words:?}");
            }
        };
    let began = |id: &str| Update::Begin(id.into());
    let cut = |id: &str| Update::Interrupt(id.into());
    let both = || vec![call("1", "reads", args.clone()), call("2", "reads", json!({}))];
    let past = |more: &[Update]| [&[human("h", "go"), assistant(both())][..], more].concat();
    let (never, worked, waited) = ("is not made again", "worked", "waited 4");
    // After one interruption both calls are repeated; after two, only the one that was not in progress twice.
    check(past(&[began("1"), began("2")]), vec![text_reply("ok")], "reads", 2, &[waited, worked]).await;
    let twice = [began("1"), began("2"), cut("1"), cut("2"), began("1")];
    check(past(&twice), vec![text_reply("ok")], "reads", 1, &[never, worked]).await;
    // The model learns that a restart interrupted a call, and repeats it: it counts as the same call.
    let again = |id: &str| calls(vec![call(id, "writes", args.clone())]);
    let past = |more: &[Update]| {
        let first = assistant(vec![call("1", "writes", args.clone())]);
        [&[human("h", "go"), first][..], more].concat()
    };
    let restart = "a restart interrupted this call";
    check(past(&[began("1")]), vec![again("2"), text_reply("ok")], "writes", 1, &[restart, waited]).await;
    let twice = [began("1"), cut("1"), began("1"), cut("1")];
    check(past(&twice), vec![again("2"), text_reply("ok")], "writes", 0, &[never, never]).await;
    // After a new request, the call is tried again.
    let thread = [past(&twice), vec![human("h2", "again")]].concat();
    check(thread, vec![text_reply("ok")], "writes", 1, &[waited]).await;
}

#[tokio::test(start_paused = true)]
async fn interrupted_calls_run_one_by_one_and_concurrent_calls_are_limited() {
    let measure = async |calls: usize, cut: usize| {
        let all: Vec<_> = (0..calls)
            .map(|n| call(&n.to_string(), "reads", json!({"do": "wait", "s": 10, "n": n})))
            .collect();
        let begins = (0..cut).map(|n| Update::Begin(n.to_string().as_str().into()));
        let past = [human("h", "go"), assistant(all)].into_iter().chain(begins).collect();
        let bench = Bench::new(vec![text_reply("ok")]).past(past);
        let start = tokio::time::Instant::now();
        bench.run(None).await;
        (start.elapsed().as_secs(), bench.reads.calls.load(Ordering::SeqCst))
    };
    assert_eq!(measure(16, 0).await, (10, 16));
    assert_eq!(measure(17, 0).await, (20, 17));
    assert_eq!(measure(3, 3).await, (30, 3));
    assert_eq!(measure(4, 1).await, (20, 4));
}

#[test]
fn the_cost_of_a_failed_attempt_counts_for_the_called_model() {
    let replay = Arc::new(crate::Replay::default());
    let mut run_state = RunState::new("t".into(), "r".into(), 1, ThreadState::default(), replay);
    let Update::Message(message) = assistant(Vec::new()) else { unreachable!() };
    let Message::Assistant(mut reply) = Arc::unwrap_or_clone(message) else { unreachable!() };
    reply.model = Some("first".into());
    let again = Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::FellBack, free: true };
    let (failed, answered) = (Usage::plain(7, 2), Usage::plain(1, 1));
    for delta in [Delta::Usage(failed), again, Delta::Model("spare".into()), Delta::Usage(answered)] {
        apply_delta(delta, &mut run_state, &mut reply);
    }
    assert_eq!((reply.usage, reply.model.as_deref()), (Some(answered), Some("spare")));
    let [spent] = run_state.spending.parts() else { panic!("{:?}", run_state.spending) };
    assert_eq!((spent.model.as_str(), spent.usage), ("first", failed));
}

#[tokio::test]
async fn the_cost_of_a_permanently_failed_request_counts_once() {
    let failed = Usage::plain(7, 2);
    let fails = vec![Ok(Delta::Usage(failed)), Err(ModelError::Garbled("an empty answer".into()))];
    let cut = vec![Err(ModelError::Unreachable("x".into()))];
    let refused = vec![Err(ModelError::Auth("x".into()))];
    let again = || Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::Busy, free: true };
    let tried =
        vec![Ok(again()), Ok(Delta::Text("Hal".into())), Ok(again()), Err(ModelError::Auth("x".into()))];
    for (reply, known, unknown) in [
        (fails, Some(failed), 0),
        (cut, Some(Usage::default()), 1),
        (tried, Some(Usage::default()), 1),
        (refused, None, 0),
    ] {
        let bench = Bench::new(vec![ScriptedReply::Says(reply)]);
        let replay = Arc::new(crate::Replay::default());
        let mut run_state = RunState::new("t".into(), "r".into(), 0, ThreadState::default(), replay);
        run_state.apply(human("h", "go"));
        let mut chain = crate::lead_chain(&bench.agent, crate::SkillPolicy::default(), Vec::new());
        run(&bench.agent, &mut chain, &mut run_state, &bench.steering, &bench.cancel).await;
        let spent =
            run_state.spending.parts().iter().map(|spent| (spent.usage, spent.calls, spent.unreported));
        assert_eq!(
            spent.collect::<Vec<_>>(),
            known.map(|usage| (usage, 1, unknown)).into_iter().collect::<Vec<_>>()
        );
    }
}

#[test]
fn text_that_turns_out_to_be_thoughts_is_retracted() {
    let replay = Arc::new(crate::Replay::default());
    let mut run_state = RunState::new("t".into(), "r".into(), 1, ThreadState::default(), replay);
    let Update::Message(message) = assistant(Vec::new()) else { unreachable!() };
    let Message::Assistant(mut reply) = Arc::unwrap_or_clone(message) else { unreachable!() };
    run_state.begin_draft();
    for delta in [Delta::Text("Hm.".into()), Delta::Retract, Delta::Text("Hello".into())] {
        apply_delta(delta, &mut run_state, &mut reply);
    }
    assert_eq!(run_state.end_draft(), "Hello");
}
