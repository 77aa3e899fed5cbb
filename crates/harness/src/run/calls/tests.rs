//! Calls that guardrails allow or refuse.

use crate::{
    ApprovalPolicy,
    fixture::{Bench, call, calls, text_reply},
    subagent::{Kinds, builtin},
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, GuardedCall, Guardrail, GuardrailVerdict, Message,
    Outcome, Tell, ThreadState, Tool, ToolCx, ToolError, ToolOutput, ToolSpec, Update,
};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Refuses calls of a tool from the first or the second request on, and records all requests.
#[derive(Default)]
struct ScriptedGuard {
    refuses: &'static str,
    lets_through: AtomicU32,
    asked: Mutex<Vec<(String, bool)>>,
}

impl Guardrail for ScriptedGuard {
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict> {
        self.asked.lock().unwrap().push((call.tool.clone(), call.is_subagent));
        let left = self.lets_through.load(Ordering::SeqCst);
        let verdict = match call.tool == self.refuses && left == 0 {
            true => GuardrailVerdict::Deny { code: "oap.denied".into(), reason: "not today".into() },
            false => GuardrailVerdict::Allow,
        };
        if call.tool == self.refuses {
            self.lets_through.store(left.saturating_sub(1), Ordering::SeqCst);
        }
        Box::pin(std::future::ready(verdict))
    }
}

/// Approves everything, and counts the requests.
#[derive(Default)]
struct Yes(AtomicU32);

impl Approver for Yes {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, _: &'a Tell) -> BoxFuture<'a, Decision> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let (request, by) = (request.line.clone(), Some("Ada".to_owned()));
        Box::pin(std::future::ready(Decision { request, approved: true, by, not_asked: false }))
    }

    fn refused<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        unreachable!()
    }
}

const REFUSED: &str = "Error: a guardrail does not allow this call of writes (oap.denied): not today. Do not try to bypass \
                       it; use another way that is allowed, or describe what you would have done.";

#[tokio::test]
async fn a_refused_call_asks_no_user_and_other_calls_are_made() {
    let both = vec![call("1", "writes", json!({})), call("2", "reads", json!({}))];
    let mut bench = Bench::new(vec![calls(both), text_reply("done")]);
    let (guard, yes) =
        (Arc::new(ScriptedGuard { refuses: "writes", ..Default::default() }), Arc::new(Yes::default()));
    bench.agent.guardrail = Some(guard.clone());
    bench.agent.approver = yes.clone();
    bench.agent.policy =
        Arc::new(ApprovalPolicy { tools: ["writes".to_owned()].into(), ..ApprovalPolicy::default() });
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!(outcome, Outcome::Success);
    assert_eq!(bench.asked()[1][2..], [format!("tool: {REFUSED}"), "tool: worked".to_owned()]);
    let count = |tool: &crate::fixture::ProbeTool| tool.calls.load(Ordering::SeqCst);
    assert_eq!((count(&bench.writes), count(&bench.reads), yes.0.load(Ordering::SeqCst)), (0, 1, 0));
    assert_eq!(guard.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn guardrails_are_evaluated_again_after_an_approval() {
    let mut bench = Bench::new(vec![calls(vec![call("1", "writes", json!({}))]), text_reply("done")]);
    let guard = ScriptedGuard { refuses: "writes", lets_through: AtomicU32::new(1), ..Default::default() };
    bench.agent.guardrail = Some(Arc::new(guard));
    let yes = Arc::new(Yes::default());
    bench.agent.approver = yes.clone();
    bench.agent.policy =
        Arc::new(ApprovalPolicy { tools: ["writes".to_owned()].into(), ..ApprovalPolicy::default() });
    bench.run(Some("go")).await;
    assert_eq!(bench.thread()[2], REFUSED);
    assert_eq!((bench.writes.calls.load(Ordering::SeqCst), yes.0.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn a_refused_call_is_not_passed_to_guardrails() {
    let mut bench = Bench::new(vec![calls(vec![call("1", "flies", json!({}))]), text_reply("done")]);
    let guard = Arc::new(ScriptedGuard::default());
    bench.agent.guardrail = Some(guard.clone());
    bench.run(Some("go")).await;
    assert_eq!(*guard.asked.lock().unwrap(), []);
}

#[tokio::test]
async fn calls_of_sub_agents_are_guarded_and_marked() {
    let task = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    let mut bench = Bench::new(vec![
        calls(vec![call("1", "task", task)]),
        calls(vec![call("2", "writes", json!({}))]),
        text_reply("I could not."),
        text_reply("done"),
    ]);
    let guard = Arc::new(ScriptedGuard { refuses: "writes", ..Default::default() });
    bench.agent.guardrail = Some(guard.clone());
    let kinds = Kinds::new(builtin(), 3).unwrap();
    bench.agent.tools = bench.agent.tools.with(kinds.task(&bench.agent, Arc::default()).unwrap());
    bench.run(Some("go")).await;
    assert_eq!(bench.writes.calls.load(Ordering::SeqCst), 0);
    assert_eq!(*guard.asked.lock().unwrap(), [("task".to_owned(), false), ("writes".to_owned(), true)]);
    assert_eq!(bench.asked()[2].last().unwrap(), &format!("tool: {REFUSED}"));
}

/// Records the arguments of its calls.
struct TypedProbe {
    spec: Arc<ToolSpec>,
    called: Mutex<Vec<Value>>,
}

impl TypedProbe {
    fn new(name: &str) -> Arc<Self> {
        let parameters = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}, "q": {"type": "string"}}});
        let spec = ToolSpec { name: name.into(), description: name.into(), parameters, idempotent: true };
        Arc::new(Self { spec: Arc::new(spec), called: Mutex::default() })
    }
}

impl Tool for TypedProbe {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.called.lock().unwrap().push(args);
        Box::pin(std::future::ready(Ok("done".to_owned().into())))
    }
}

/// Refuses arguments that are not in their final form.
struct FinalArguments(Value);

impl Guardrail for FinalArguments {
    fn evaluate<'a>(&'a self, call: &'a GuardedCall) -> BoxFuture<'a, GuardrailVerdict> {
        assert_eq!(call.args, self.0, "the checked arguments are the executed ones");
        Box::pin(std::future::ready(GuardrailVerdict::Allow))
    }
}

#[tokio::test]
async fn arguments_are_coerced_and_garbled_tool_names_are_repaired() {
    let (raw, expect) =
        (json!({"n": "3", "tags": "[\"x\",\"y\"]", "q": "5"}), json!({"n": 3, "tags": ["x", "y"], "q": "5"}));
    for name in ["typed_go", "typed_go<|channel|>commentary", "functions.typed_go"] {
        let mut bench = Bench::new(vec![calls(vec![call("1", name, raw.clone())]), text_reply("done")]);
        let probe = TypedProbe::new("typed_go");
        bench.agent.tools = bench.agent.tools.with(probe.clone());
        bench.agent.guardrail = Some(Arc::new(FinalArguments(expect.clone())));
        assert_eq!(bench.run(Some("go")).await.0, Outcome::Success, "{name}");
        assert_eq!(*probe.called.lock().unwrap(), std::slice::from_ref(&expect), "{name}");
        let log = ThreadState::fold(bench.log.updates.lock().unwrap().clone());
        let logged = log.messages.values().find_map(|message| match &**message {
            Message::Assistant(reply) => {
                reply.calls.first().map(|call| (call.name.clone(), call.args.clone()))
            }
            _ => None,
        });
        assert_eq!(
            logged,
            Some(("typed_go".to_owned(), raw.clone())),
            "the thread keeps the original arguments"
        );
    }
}

#[tokio::test]
async fn a_call_that_ended_the_process_is_recognised_after_coercion() {
    let raw = json!({"n": "3"});
    let open_call = call("1", "typed_go", raw);
    let mut past = vec![crate::fixture::human("h", "go"), crate::fixture::assistant(vec![open_call])];
    past.extend([Update::Begin("1".into()), Update::Interrupt("1".into()), Update::Begin("1".into())]);
    let mut bench = Bench::new(vec![text_reply("done")]).past(past);
    let probe = TypedProbe::new("typed_go");
    bench.agent.tools = bench.agent.tools.with(probe.clone());
    bench.run(None).await;
    assert_eq!(*probe.called.lock().unwrap(), [] as [Value; 0], "the call is not made a third time");
}
