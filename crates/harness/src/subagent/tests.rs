use super::*;
use crate::{
    ApprovalPolicy, LoopRules, SkillPolicy,
    fixture::{Bench, ScriptedReply, call, calls, human, text_reply},
    lead_chain,
};
use pudu_base::{Delta, Finish, StepCall, StepKind, TaskEnd, TaskStatus, TaskStep, Usage};
use serde_json::json;
use std::{sync::atomic::Ordering, time::Duration};

fn kind(name: &str) -> SubagentKind {
    SubagentKind {
        name: name.to_owned(),
        about: "does all sorts of things".to_owned(),
        system: "You work alone.".into(),
        tools: None,
        without: vec!["writes".to_owned()],
        skills: Some(Vec::new()),
        model: None,
        bounds: RunBounds { steps: 2, time: Duration::from_secs(60), ..RunBounds::default() },
    }
}

/// A thread whose agent has sub-agents, which call the same model.
fn bench(replies: Vec<ScriptedReply>) -> Bench {
    let mut bench = Bench::new(replies);
    bench.agent.tools = bench
        .agent
        .tools
        .with(Kinds::new(vec![kind("helper")], 3).unwrap().task(&bench.agent, Arc::default()).unwrap());
    bench
}

/// Stops sub-agents that repeat themselves.
fn looping(mut bench: Bench, rules: LoopRules) -> Bench {
    bench.agent.loops = Some(Arc::new(rules));
    let kinds = Kinds::new(vec![kind("helper")], 3).unwrap();
    let parent = RunAgent { tools: bench.agent.tools.only(|name| name != TASK), ..bench.agent.clone() };
    bench.agent.tools = parent.tools.with(kinds.task(&parent, Arc::default()).unwrap());
    bench
}

/// Returns the task records of the log.
fn stages(bench: &Bench) -> Vec<TaskStage> {
    let updates = bench.log.updates.lock().unwrap().clone();
    let stage = |update| match update {
        Update::Task { stage, .. } => Some(stage),
        _ => None,
    };
    updates.into_iter().filter_map(stage).collect()
}

fn hand(id: &str, prompt: &str) -> pudu_base::ToolCall {
    call(id, TASK, json!({"description": "look around", "prompt": prompt, "subagent_type": "helper"}))
}

#[tokio::test]
async fn a_sub_agent_works_alone_and_its_parent_reads_the_report() {
    let spends = ScriptedReply::Says(vec![
        Ok(Delta::Text("Three files.".into())),
        Ok(Delta::Usage(Usage::plain(7, 2))),
        Ok(Delta::Finish(Finish::Complete)),
    ]);
    let bench = bench(vec![
        calls(vec![hand("1", "count the files")]),
        calls(vec![call("1", "reads", json!({}))]),
        spends,
        text_reply("There are three."),
    ]);
    let (outcome, seen) = bench.run(Some("how many?")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "There are three."));
    assert_eq!((seen.usage, seen.tasks.len()), (Usage::plain(7, 2), 0));
    let requests = bench.asked();
    assert_eq!(requests[1], ["human: count the files"], "it does not see the conversation");
    assert_eq!(requests[2][2], "tool: worked");
    assert_eq!(requests[3].last().unwrap(), "tool: Task Succeeded. Result: Three files.");
    assert_eq!(bench.thread(), ["how many?", "", "Task Succeeded. Result: Three files.", "There are three."]);
}

#[tokio::test]
async fn a_sub_agent_has_no_forbidden_tools_and_no_sub_agents() {
    let bench = bench(vec![
        calls(vec![hand("1", "go")]),
        calls(vec![call("2", "writes", json!({})), hand("3", "deeper")]),
        text_reply("I could not."),
        text_reply("done"),
    ]);
    bench.run(Some("go")).await;
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
    let refused = &bench.asked()[2];
    assert_eq!(refused[2], "tool: Error: there is no tool writes. There are: reads.");
    assert_eq!(refused[3], "tool: Error: there is no tool task. There are: reads.");
}

#[tokio::test]
async fn a_sub_agent_searches_for_tools_unless_they_are_named() {
    let check = async |tools: Option<Vec<String>>, without: &[&str], expect: &str| {
        let mut bench = Bench::new(vec![calls(vec![hand("1", "go")]), text_reply("ok"), text_reply("done")]);
        let deferred = Arc::new(crate::ToolCatalog::new([bench.reads.spec().clone()]));
        bench.agent = searching(RunAgent { deferred, ..bench.agent });
        let without = without.iter().map(|name| (*name).to_owned()).collect();
        let kind = SubagentKind { tools, without, ..kind("helper") };
        bench.agent.tools = bench
            .agent
            .tools
            .with(Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, Arc::default()).unwrap());
        bench.run(Some("go")).await;
        assert_eq!(bench.model.tools.lock().unwrap()[1], expect);
    };
    check(None, &[], "writes tool_search").await;
    check(Some(vec!["reads".to_owned()]), &[], "reads").await;
    check(None, &["tool_search"], "writes reads").await;
    check(None, &["reads"], "writes").await;
}

#[tokio::test]
async fn only_the_first_three_sub_agents_of_a_reply_run() {
    let many = (0..5).map(|n| hand(&n.to_string(), "go")).collect();
    let mut replies = vec![calls(many)];
    replies.extend((0..3).map(|_| text_reply("ok")));
    replies.push(text_reply("done"));
    let bench = bench(replies);
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!((outcome, bench.thread().len()), (Outcome::Success, 6));
}

#[tokio::test]
async fn sub_agents_above_the_limit_of_a_run_are_refused_with_a_reason() {
    let replies = vec![
        calls(vec![hand("1", "go")]),
        text_reply("ok"),
        calls(vec![hand("2", "go"), hand("3", "go")]),
        text_reply("ok"),
        text_reply("done"),
    ];
    let mut bench = bench(replies);
    bench.agent.bounds.subagents = 2;
    bench.agent.bounds.steps = 9;
    let (outcome, seen) = bench.run(Some("go")).await;
    assert_eq!((outcome, seen.text.as_str()), (Outcome::Success, "done"));
    let refused = "Error: this run has already used its maximum of 2 sub-agents. Do the rest yourself, or say \
                   what is left to do";
    assert!(bench.thread().iter().any(|text| text.starts_with(refused)), "{:?}", bench.thread());
}

#[tokio::test(start_paused = true)]
async fn the_parent_gets_every_kind_of_ending() {
    let fail = || ScriptedReply::Says(vec![Err(pudu_base::ModelError::Auth("HTTP 401".into()))]);
    let look = || calls(vec![call("9", "reads", json!({}))]);
    let words = ScriptedReply::Says(vec![
        Ok(Delta::Text("So far: two.".into())),
        Ok(Delta::Call(call("8", "reads", json!({})))),
        Ok(Delta::Finish(Finish::Complete)),
    ]);
    let same = || calls(vec![call("7", "reads", json!({"path": "/a"}))]);
    for (replies, expect) in [
        (vec![ScriptedReply::Stalls("Once")], "Task timed out. Error: no end after 60 s\nSo far: Once"),
        (vec![look(), look()], "Task failed. Error: Reached max_turns=2"),
        (vec![words, look()], "Task Succeeded (capped: turn budget). Result: So far: two."),
        (
            vec![same(), same()],
            "Task Succeeded (capped: repeated tool-call loop). Result: I made the same calls 2 times",
        ),
        (vec![fail()], "Task failed. Error: "),
        (vec![text_reply(" "), text_reply(" ")], "Task failed. Error: "),
    ] {
        let mut all = vec![calls(vec![hand("1", "go")])];
        all.extend(replies);
        all.push(text_reply("done"));
        let mut bench = bench(all);
        if expect.contains("loop") {
            let rules = LoopRules { warn: 2, stop: 2, ..LoopRules::default() };
            bench = looping(bench, rules);
        }
        let (outcome, seen) = bench.run(Some("go")).await;
        assert_eq!((outcome, seen.tasks.len()), (Outcome::Success, 0));
        assert!(bench.thread()[2].starts_with(expect), "{:?}", bench.thread());
    }
    let bench = bench(vec![
        calls(vec![call("1", TASK, json!({"description": "a", "prompt": "b", "subagent_type": "c"}))]),
        text_reply("done"),
    ]);
    bench.run(Some("go")).await;
    assert_eq!(bench.thread()[2], "Error: there is no sub-agent c; there are: helper");
}

#[tokio::test]
async fn a_stop_of_the_parent_stops_the_sub_agent_and_its_activity_is_shown() {
    let bench =
        bench(vec![calls(vec![hand("1", "go")]), calls(vec![call("2", "reads", json!({"do": "hang"}))])]);
    let cancel = bench.cancel.clone();
    let reads = bench.reads.clone();
    let stopping = async {
        while reads.calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let ((outcome, seen), ()) = tokio::join!(bench.run(Some("go")), stopping);
    assert_eq!(outcome, Outcome::Stopped);
    assert_eq!(seen.tasks, [], "no sub-agent is running");
    assert_eq!(bench.thread().last().unwrap(), "Task cancelled by user.");
    let TaskStage::Ended(end) = stages(&bench).pop().unwrap() else { panic!("{:?}", stages(&bench)) };
    assert_eq!((end.status, end.stop_reason, end.model.as_str()), (TaskStatus::Cancelled, None, "scripted"));
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_sub_agent_ends_like_its_parent_in_the_log_and_for_the_model() {
    let mut bench =
        bench(vec![calls(vec![hand("1", "go")]), calls(vec![call("2", "reads", json!({"do": "hang"}))])]);
    bench.agent.bounds.time = Duration::from_secs(5);
    let (outcome, seen) = bench.run(Some("go")).await;
    assert_eq!((outcome, seen.tasks), (Outcome::Timeout, vec![]));
    let words = "the run that started it took too long";
    assert_eq!(bench.thread().last().unwrap(), &format!("Task timed out. Error: {words}"));
    let TaskStage::Ended(end) = stages(&bench).pop().unwrap() else { panic!("{:?}", stages(&bench)) };
    assert_eq!(
        (end.status, end.text.as_str(), end.model.as_str()),
        (TaskStatus::TimedOut, words, "scripted")
    );
}

/// Approves in Ada's name when it is released.
struct Ada(tokio::sync::watch::Sender<bool>);

impl Approver for Ada {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, tell: &'a Tell) -> BoxFuture<'a, Decision> {
        let (call, key) = (request.call.clone(), request.run.to_string());
        let line = request.line.clone();
        tell(RunEvent::ApprovalRequested { call, key, request: line, whole: None, deadline: 0 });
        Box::pin(async move {
            self.0.subscribe().wait_for(|word| *word).await.unwrap();
            yes(&request.line)
        })
    }

    fn refused<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        unreachable!()
    }
}

fn yes(request: &str) -> Decision {
    Decision { request: request.to_owned(), approved: true, by: Some("Ada".into()), not_asked: false }
}

/// A thread whose sub-agents need approval to read.
fn careful(replies: Vec<ScriptedReply>) -> (Bench, Arc<Ada>) {
    let mut bench = Bench::new(replies);
    let ada = Arc::new(Ada(tokio::sync::watch::Sender::new(false)));
    bench.agent.approver = ada.clone();
    bench.agent.policy =
        Arc::new(ApprovalPolicy { tools: ["reads".to_owned()].into(), ..ApprovalPolicy::default() });
    bench.agent.tools = bench
        .agent
        .tools
        .with(Kinds::new(vec![kind("helper")], 3).unwrap().task(&bench.agent, Arc::default()).unwrap());
    (bench, ada)
}

#[tokio::test]
async fn concurrent_approvals_of_sub_agents_are_shown_and_their_decisions_kept() {
    let reads = || calls(vec![call("call-0", "reads", json!({}))]);
    let both = calls(vec![hand("1", "go"), hand("2", "go")]);
    let (bench, ada) =
        careful(vec![both, reads(), reads(), text_reply("ok"), text_reply("ok"), text_reply("done")]);
    let replay = Arc::new(Replay::default());
    let mut run_state = RunState::new("t".into(), "r".into(), 0, ThreadState::default(), replay.clone());
    run_state.apply(human("h", "go"));
    let mut chain = lead_chain(&bench.agent, SkillPolicy::default(), Vec::new());
    let run = crate::run(&bench.agent, &mut chain, &mut run_state, &bench.steering, &bench.cancel);
    let deciding = async {
        while bench.asked().len() < 3 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        let keys: Vec<String> = replay.progress().asked.iter().map(|asked| asked.key.clone()).collect();
        assert_eq!(keys, ["r.1", "r.2"]);
        ada.0.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(run, deciding);
    let seen = replay.progress();
    let decided = vec![yes("`reads {}`"), yes("`reads {}`")];
    assert_eq!((outcome, seen.asked, seen.decided), (Outcome::Success, vec![], decided));
    let of = |message: &Arc<Message>| match &**message {
        Message::Tool(result) => Some(result.decisions.clone()),
        _ => None,
    };
    let decisions: Vec<_> = run_state.state().messages.values().filter_map(of).collect();
    assert_eq!(decisions, [[yes("`reads {}`")], [yes("`reads {}`")]]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_withdrawn_when_its_sub_agent_times_out() {
    let reads = calls(vec![call("call-0", "reads", json!({}))]);
    let (mut bench, _ada) = careful(vec![calls(vec![hand("1", "go")]), reads, text_reply("done")]);
    bench.agent.bounds.time = Duration::from_secs(600);
    let (outcome, seen) = bench.run(Some("go")).await;
    assert_eq!((outcome, seen.asked), (Outcome::Success, vec![]));
    assert!(bench.thread()[2].starts_with("Task timed out. Error: "), "{:?}", bench.thread());
}

fn skill(tools: Option<&[&str]>) -> Skill {
    Skill {
        name: "look".into(),
        about: "looks".into(),
        path: "/mnt/skills/public/look/SKILL.md".into(),
        tools: tools.map(|tools| tools.iter().map(|&name| name.to_owned()).collect()),
        text: "Look.".into(),
        ..Skill::default()
    }
}

#[tokio::test]
async fn a_skill_that_a_sub_agent_reads_itself_binds_it() {
    let path = "/mnt/skills/public/./look//SKILL.md";
    let mut bench = Bench::new(vec![
        calls(vec![hand("1", "go")]),
        calls(vec![call("2", "read_file", json!({"path": path}))]),
        calls(vec![call("3", "writes", json!({}))]),
        text_reply("I could not."),
        text_reply("done"),
    ]);
    bench.agent.tools = bench.agent.tools.with(crate::fixture::ProbeTool::new("read_file", true));
    let kind = SubagentKind {
        without: Vec::new(),
        bounds: RunBounds { steps: 5, ..kind("").bounds },
        ..kind("helper")
    };
    let task = Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, [skill(Some(&["reads"]))].into());
    bench.agent.tools = bench.agent.tools.with(task.unwrap());
    bench.run(Some("go")).await;
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
    let last_request = &bench.asked()[3];
    let refused = "tool: Error: writes may not be used while the skill look is active.";
    assert!(last_request.last().unwrap().starts_with(refused), "{last_request:?}");
}

#[tokio::test]
async fn a_sub_agent_sees_its_parents_skills_unless_its_kind_names_some() {
    let only = |names: &[&str]| Some(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    for (skills, expect) in
        [(None, true), (only(&[]), false), (only(&["other"]), false), (only(&["look", "other"]), true)]
    {
        let mut bench = Bench::new(vec![calls(vec![hand("1", "go")]), text_reply("ok"), text_reply("done")]);
        let kind = SubagentKind { skills, ..kind("helper") };
        let task = Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, [skill(None)].into());
        bench.agent.tools = bench.agent.tools.with(task.unwrap());
        bench.run(Some("go")).await;
        let system = bench.model.systems.lock().unwrap()[1].clone();
        assert!(system.starts_with("You work alone."), "{system}");
        assert_eq!(system.contains("- look: looks (/mnt/skills/public/look/SKILL.md)"), expect, "{system}");
    }
}

#[test]
fn the_built_in_kinds_have_deerflows_numbers() {
    let summary = |kind: SubagentKind| {
        (kind.name, kind.tools, kind.skills, kind.bounds.steps, kind.bounds.time.as_secs())
    };
    let hands = ["bash", "ls", "read_file", "write_file", "str_replace"].map(str::to_owned).to_vec();
    let kinds: Vec<_> = builtin().into_iter().map(summary).collect();
    let general = ("general-purpose".to_owned(), None, None, 150, 1800);
    assert_eq!(kinds, [general, ("bash".to_owned(), Some(hands), None, 60, 1800)]);
}

#[tokio::test]
async fn only_the_parent_has_the_to_do_list() {
    for tools in [None, Some(vec!["write_todos".to_owned(), "reads".to_owned()])] {
        let mut bench = Bench::new(vec![calls(vec![hand("1", "go")]), text_reply("ok"), text_reply("done")]);
        bench.agent.tools = bench.agent.tools.with(crate::fixture::ProbeTool::new("write_todos", false));
        let kind = SubagentKind { tools, ..kind("helper") };
        let task = Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, Arc::default()).unwrap();
        bench.agent.tools = bench.agent.tools.with(task);
        bench.run(Some("go")).await;
        assert_eq!(bench.model.tools.lock().unwrap()[1], "reads");
    }
}

#[tokio::test]
async fn each_step_is_in_the_parents_log_but_not_in_requests() {
    let bench = bench(vec![
        calls(vec![hand("1", "count the files")]),
        calls(vec![call("9", "reads", json!({"path": "/a"}))]),
        text_reply("Three files."),
        text_reply("There are three."),
    ]);
    bench.run(Some("how many?")).await;
    let step = |index, kind, text: &str| {
        TaskStage::Step(TaskStep { index, kind, text: text.into(), truncated: false })
    };
    let reads = StepCall { name: "reads".into(), args: json!({"path": "/a"}) };
    let ended = TaskEnd {
        status: TaskStatus::Completed,
        stop_reason: None,
        model: "scripted".into(),
        usage: Usage::default(),
        text: "Three files.".into(),
        truncated: false,
        omitted: 0,
    };
    let expected = [
        TaskStage::Started { about: "look around".into(), agent: "helper".into(), model: "scripted".into() },
        step(1, StepKind::Reply { calls: vec![reads] }, ""),
        step(2, StepKind::Result { tool: "reads".into(), error: false }, "worked"),
        step(3, StepKind::Reply { calls: Vec::new() }, "Three files."),
        TaskStage::Ended(ended),
    ];
    assert_eq!(stages(&bench), expected);
    let updates = bench.log.updates.lock().unwrap().clone();
    let without = updates.iter().filter(|update| !matches!(update, Update::Task { .. })).cloned();
    assert_eq!(ThreadState::fold(without), ThreadState::fold(updates.clone()));
}

#[tokio::test]
async fn steps_beyond_the_limit_are_counted() {
    let large = "x".repeat(100_000);
    let replies = (0..200).map(|n| {
        let args = json!({"path": n, "content": large});
        calls(vec![call(&n.to_string(), "reads", args)])
    });
    let mut all = vec![calls(vec![hand("1", "go")])];
    all.extend(replies.chain([text_reply("Enough."), text_reply("done")]));
    let mut bench = Bench::new(all);
    let kind = SubagentKind { bounds: RunBounds { steps: 300, ..kind("").bounds }, ..kind("helper") };
    let task = Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, Arc::default()).unwrap();
    bench.agent.tools = bench.agent.tools.with(task);
    bench.run(Some("go")).await;
    let stored = stages(&bench);
    let bytes = serde_json::to_string(&stored).unwrap().len();
    assert!((900_000..1_300_000).contains(&bytes), "{bytes}");
    let Some(TaskStage::Ended(end)) = stored.last() else { panic!("no end") };
    // Some of its replies are summaries of its own conversation.
    assert!((380..=401).contains(&(stored.len() - 2 + end.omitted as usize)) && end.omitted > 100, "{end:?}");
    assert_eq!(end.text, "Enough.");
}

#[tokio::test]
async fn steps_of_an_interrupted_task_are_kept_and_it_is_not_repeated() {
    let past = [human("h", "go"), crate::fixture::assistant(vec![hand("1", "count")])];
    let started = TaskStage::Started { about: "count".into(), agent: "helper".into(), model: "m".into() };
    let past = past
        .into_iter()
        .chain([Update::Begin("1".into()), Update::Task { call: "1".into(), stage: started.clone() }]);
    let bench = bench(vec![text_reply("I shall look.")]).past(past.collect());
    let (outcome, _) = bench.run(None).await;
    assert_eq!(outcome, Outcome::Success);
    let lost = "Task failed. Error: a restart interrupted it. Some of its work may be done: check before you delegate it again";
    assert_eq!(bench.thread()[2], lost);
    let stored = stages(&bench);
    let TaskStage::Ended(end) = &stored[1] else { panic!("{stored:?}") };
    assert_eq!((&stored[0], end.status, stored.len()), (&started, TaskStatus::Failed, 2));
}

#[tokio::test]
async fn without_a_shell_there_is_no_kind_for_shell_commands() {
    let mut bench = Bench::new(Vec::new());
    let kinds = Kinds::new(builtin(), 3).unwrap();
    let about = |agent: &RunAgent| kinds.task(agent, Arc::default()).unwrap().spec().description.clone();
    assert!(
        !about(&bench.agent).contains("\n- bash: ") && about(&bench.agent).contains("\n- general-purpose: ")
    );
    let only = Kinds::new(vec![kind("bash")], 3).unwrap();
    assert!(only.task(&bench.agent, Arc::default()).is_none(), "a tool without kinds");
    let task = kinds.task(&bench.agent, Arc::default()).unwrap();
    bench.agent.tools = bench.agent.tools.with(task);
    bench.model.replies.lock().unwrap().extend([
        calls(vec![call("1", TASK, json!({"description": "x", "prompt": "ls", "subagent_type": "bash"}))]),
        text_reply("done"),
    ]);
    bench.run(Some("go")).await;
    let refused = "tool: Error: there is no sub-agent bash; there are: general-purpose";
    assert_eq!(bench.asked()[1].last().unwrap(), refused);
    bench.agent.tools = bench.agent.tools.with(crate::fixture::ProbeTool::new("bash", false));
    assert!(about(&bench.agent).contains("\n- bash: "));
}

#[tokio::test]
async fn a_skill_that_is_active_binds_sub_agents_too() {
    for (tools, expect) in [(Some(["task", "reads"].as_slice()), "reads"), (None, "writes reads")] {
        let mut bench = Bench::new(vec![calls(vec![hand("1", "go")]), text_reply("ok"), text_reply("done")]);
        let kind = SubagentKind { without: Vec::new(), ..kind("helper") };
        bench.agent.tools = bench
            .agent
            .tools
            .with(Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, Arc::default()).unwrap());
        let mut run_state = RunState::new("t".into(), "r".into(), 0, ThreadState::default(), Arc::default());
        run_state.apply(human("h", "/look at it"));
        let mut chain =
            lead_chain(&bench.agent, SkillPolicy::new([skill(tools)].into(), Some("h".into())), Vec::new());
        crate::run(&bench.agent, &mut chain, &mut run_state, &bench.steering, &bench.cancel).await;
        assert_eq!(bench.model.tools.lock().unwrap()[1], expect);
    }
}

#[tokio::test]
async fn a_sub_agent_without_vision_has_no_image_tool() {
    for (sees, expect) in [(true, "reads view_image"), (false, "reads")] {
        let mut bench = Bench::new(vec![calls(vec![hand("1", "go")]), text_reply("done")]);
        bench.agent.tools = bench.agent.tools.with(crate::fixture::ProbeTool::new("view_image", true));
        let own = Arc::new(Seeing(sees, crate::fixture::ScriptedModel::default()));
        own.1.replies.lock().unwrap().push_back(text_reply("ok"));
        let kind = SubagentKind { model: Some(own.clone()), ..kind("helper") };
        bench.agent.tools = bench
            .agent
            .tools
            .with(Kinds::new(vec![kind], 3).unwrap().task(&bench.agent, Arc::default()).unwrap());
        bench.run(Some("go")).await;
        assert_eq!(*own.1.tools.lock().unwrap(), [expect]);
    }
}

/// A model with or without vision.
struct Seeing(bool, crate::fixture::ScriptedModel);

impl Model for Seeing {
    fn name(&self) -> &str {
        self.1.name()
    }

    fn supports_vision(&self) -> bool {
        self.0
    }

    fn stream(&self, request: pudu_base::Request) -> pudu_base::ModelStream {
        self.1.stream(request)
    }
}
