use super::*;
use crate::Replay;
use pudu_base::{Assistant, Finish, SkillInvocation, SkillSecrets, ThreadState, ToolResult, Update};
use serde_json::json;

fn skill(name: &str, tools: Option<&[&str]>) -> Skill {
    Skill {
        name: name.into(),
        about: "x".into(),
        path: format!("/mnt/skills/public/{name}/SKILL.md"),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        text: format!("# How to {name}\n").into(),
        ..Skill::default()
    }
}

fn skills() -> Arc<[Skill]> {
    [
        skill("bound", Some(&["web_search"])),
        skill("wide-one", Some(&["bash"])),
        skill("free", None),
        skill("none", Some(&[])),
    ]
    .into()
}

/// A skill with secrets.
fn with_secret(name: &str, secret: &str, autonomous: bool) -> Skill {
    let required = vec![pudu_base::RequiredSecret { name: secret.into(), about: None }];
    Skill { secrets: SkillSecrets { required, autonomous }, ..skill(name, None) }
}

#[test]
fn secrets_are_available_to_requested_skills_and_to_autonomous_ones() {
    let skills: Arc<[Skill]> =
        [with_secret("mail", "MAIL_KEY", false), with_secret("erp", "ERP_KEY", true), skill("free", None)]
            .into();
    let read = |name: &str| call("c", "read_file", &format!("/mnt/skills/public/{name}/SKILL.md"));
    let secret_names = |updates: Vec<Update>| {
        let state = ThreadState::fold(updates);
        let run_state = RunState::new("t".into(), "r".into(), 0, state, Arc::new(Replay::default()));
        SkillPolicy::new(skills.clone(), Some("1".into())).secret_names(&run_state)
    };
    assert_eq!(secret_names(vec![human("1", "hello")]), [""; 0]);
    assert_eq!(secret_names(vec![human("1", "/mail send it")]), ["MAIL_KEY"]);
    assert_eq!(secret_names(vec![human("1", "/free do it")]), [""; 0]);
    let reads = |name: &str, error| vec![human("1", "go"), says("2", vec![read(name)]), result("c", error)];
    assert_eq!(secret_names(reads("mail", false)), [""; 0], "reading is not enough");
    assert_eq!(secret_names(reads("erp", false)), ["ERP_KEY"]);
    assert_eq!(secret_names(reads("erp", true)), [""; 0]);
    // Earlier runs no longer matter.
    assert_eq!(secret_names(vec![human("0", "/mail x"), human("1", "and now?")]), [""; 0]);
}

fn message(message: Message) -> Update {
    Update::Message(Arc::new(message))
}

fn human(id: &str, text: &str) -> Update {
    message(Message::Human(Human::new(id, text)))
}

fn call(id: &str, name: &str, path: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), args: json!({ "path": path }), garbled: None }
}

fn says(id: &str, calls: Vec<ToolCall>) -> Update {
    message(Message::Assistant(Assistant {
        id: id.into(),
        text: "x".into(),
        reasoning: None,
        provider_parts: None,
        calls,
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    }))
}

fn result(call: &str, error: bool) -> Update {
    message(Message::Tool(ToolResult {
        id: format!("r-{call}").as_str().into(),
        call: call.into(),
        tool: "read_file".into(),
        text: "…".into(),
        error,
        question: None,
        images: Vec::new(),
        decision: None,
        decisions: Vec::new(),
        task: None,
    }))
}

/// The messages with which the model reads a skill.
fn read(name: &str, error: bool) -> Vec<Update> {
    let path = format!("/mnt/skills/public/{name}/SKILL.md");
    vec![says(&format!("a-{name}"), vec![call(name, "read_file", &path)]), result(name, error)]
}

fn run_state(updates: impl IntoIterator<Item = Update>) -> RunState {
    RunState::new(
        "t".into(),
        "r".into(),
        Default::default(),
        ThreadState::fold(updates),
        Arc::new(Replay::default()),
    )
}

/// Returns which of these tools may be used.
fn allowed(first: &str, updates: Vec<Update>) -> Vec<&'static str> {
    let run_state = run_state(updates);
    let mut policy = SkillPolicy::new(skills(), Some(first.into()));
    let tools = ["read_file", "present_files", "bash", "web_search", "write_file"];
    let may = |tool: &&str| policy.before_tool(&run_state, &call("c", tool, "/x")) == Gate::Allow;
    tools.into_iter().filter(may).collect()
}

const ALL: [&str; 5] = ["read_file", "present_files", "bash", "web_search", "write_file"];

#[test]
fn tools_are_the_union_of_what_active_skills_declare() {
    let check = |updates: Vec<Vec<Update>>, expect: &[&str]| {
        assert_eq!(allowed("h", updates.into_iter().flatten().collect()), expect);
    };
    let ask = |text: &str| vec![human("h", text)];
    check(vec![ask("hello")], &ALL);
    check(vec![ask("/free do it")], &ALL);
    check(vec![ask("/bound do it")], &["read_file", "present_files", "web_search"]);
    check(vec![ask("/none do it")], &["read_file", "present_files"]);
    check(vec![ask("/wide_one do it")], &["read_file", "present_files", "bash"]);
    check(vec![ask("/BOUND")], &["read_file", "present_files", "web_search"]);
    check(vec![ask("/unknown")], &ALL);
    check(vec![ask("see /bound")], &ALL);
    check(vec![ask("/bound/x")], &ALL);
    // A skill without declared tools adds none and lifts no restriction.
    check(vec![ask("/bound"), read("free", false)], &["read_file", "present_files", "web_search"]);
    check(
        vec![ask("/bound"), read("wide-one", false)],
        &["read_file", "present_files", "bash", "web_search"],
    );
    check(vec![ask("hello"), read("wide-one", false)], &["read_file", "present_files", "bash"]);
    // Neither a failed nor an unfinished read makes a skill active.
    check(vec![ask("hello"), read("wide-one", true)], &ALL);
    check(vec![ask("hello"), vec![read("wide-one", false).remove(0)]], &ALL);
    // A steering message may start a skill.
    check(
        vec![ask("hello"), read("free", false), vec![human("s", "/none now")]],
        &["read_file", "present_files"],
    );
}

#[test]
fn the_next_run_begins_without_skills() {
    let mut updates = vec![human("h", "/bound do it")];
    updates.extend(read("wide-one", false));
    updates.push(human("next", "and now?"));
    assert_eq!(allowed("next", updates), ALL);
}

#[test]
fn a_refused_call_gives_the_reason() {
    let run_state = run_state([human("h", "/bound do it")]);
    let mut policy = SkillPolicy::new(skills(), Some("h".into()));
    let Gate::Deny(text) = policy.before_tool(&run_state, &call("c", "bash", "")) else {
        panic!("the tool is allowed")
    };
    assert_eq!(
        text,
        "Error: bash may not be used while the skill bound is active. It allows web_search, besides read_file, ls, glob, grep, \
         list_uploaded_files, tool_search, describe_skill, ask_clarification, present_files. Use those tools, or explain why they are not enough."
    );
}

#[tokio::test]
async fn the_skill_follows_the_requesting_message_and_stays_there() {
    let mut run_state =
        run_state([human("old", "/free before"), says("a", vec![]), human("h", "/bound the news")]);
    let messages: Vec<Arc<Message>> = run_state.state().messages.values().cloned().collect();
    let mut request = Request { messages: messages.clone(), ..Request::default() };
    let mut policy = SkillPolicy::new(skills(), Some("h".into()));
    policy.before_model(&mut run_state, &mut request).await.unwrap();
    let text_of = |message: &Arc<Message>| match &**message {
        Message::Human(human) => human.to_model_text().into_owned(),
        other => other.text().to_owned(),
    };
    let texts: Vec<String> = request.messages.iter().map(text_of).collect();
    let expect = "/bound the news\n\n<skill name=\"bound\" path=\"/mnt/skills/public/bound/SKILL.md\">\n# How to bound\n</skill>\n\n\
                  The message above requests the skill bound by its first word; the rest of the message is the request. Follow the \
                  skill for this request, and for later requests only if they continue it. Its other files are in /mnt/skills/public/bound. While it is active only these tools may be used: read_file, ls, \
                  glob, grep, list_uploaded_files, tool_search, describe_skill, ask_clarification, present_files, web_search.";
    assert_eq!(texts, ["/free before", "x", expect]);
    assert_eq!(run_state.state().messages.values().cloned().collect::<Vec<_>>(), request.messages);
    let Message::Human(asks) = &*run_state.state().messages[&MessageId::from("h")] else { unreachable!() };
    assert_eq!(asks.text, "/bound the news", "the text is the person's");
    // The next run sends the same bytes even if the skill was changed.
    let mut next = Request { messages: request.messages.clone(), ..Request::default() };
    let mut later = SkillPolicy::new(Arc::default(), Some("later".into()));
    later.before_model(&mut run_state, &mut next).await.unwrap();
    assert_eq!(next.messages, request.messages);
}

#[test]
fn a_skill_that_users_cannot_start_has_no_slash_name() {
    let hidden = SkillInvocation { by_model: true, by_people: false };
    let skills = [Skill { invocation: hidden, ..skill("helper", None) }, skill("free", None)];
    assert_eq!(named(&skills, "free").map(|skill| skill.name.as_str()), Some("free"));
    assert_eq!(named(&skills, "helper"), None);
}
