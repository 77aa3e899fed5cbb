//! Calls that guardrails allow and refuse.

use crate::{
    ApprovalPolicy,
    fixture::{Bench, call, calls, says},
    subagent::{Kinds, builtin},
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, GuardedCall, Guardrail, GuardrailVerdict, Outcome, Tell,
};
use serde_json::json;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

/// Refuses calls of a tool from the second time on that it is asked about them, or from the first; remembers all.
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

/// Approves all, and counts how often.
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

const REFUSED: &str = "Error: a guardrail does not allow this call of writes (oap.denied): not today. Do not try to get \
                       around it; do it in another way that is allowed, or say what you would have done.";

#[tokio::test]
async fn a_refused_call_is_not_made_and_asks_nobody_and_its_neighbours_are_made() {
    let both = vec![call("1", "writes", json!({})), call("2", "reads", json!({}))];
    let mut bench = Bench::new(vec![calls(both), says("done")]);
    let (guard, yes) =
        (Arc::new(ScriptedGuard { refuses: "writes", ..Default::default() }), Arc::new(Yes::default()));
    bench.agent.guardrail = Some(guard.clone());
    bench.agent.approver = yes.clone();
    bench.agent.policy =
        Arc::new(ApprovalPolicy { tools: ["writes".to_owned()].into(), ..ApprovalPolicy::default() });
    let (outcome, _) = bench.run(Some("go")).await;
    assert_eq!(outcome, Outcome::Success);
    assert_eq!(bench.asked()[1][2..], [format!("tool: {REFUSED}"), "tool: worked".to_owned()]);
    let made = |tool: &crate::fixture::ProbeTool| tool.calls.load(Ordering::SeqCst);
    assert_eq!((made(&bench.writes), made(&bench.reads), yes.0.load(Ordering::SeqCst)), (0, 1, 0));
    assert_eq!(guard.asked.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn what_was_allowed_before_people_approved_it_is_asked_for_again_when_they_have() {
    let mut bench = Bench::new(vec![calls(vec![call("1", "writes", json!({}))]), says("done")]);
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
async fn a_call_that_is_refused_anyway_is_no_matter_of_a_guardrail() {
    let mut bench = Bench::new(vec![calls(vec![call("1", "flies", json!({}))]), says("done")]);
    let guard = Arc::new(ScriptedGuard::default());
    bench.agent.guardrail = Some(guard.clone());
    bench.run(Some("go")).await;
    assert_eq!(*guard.asked.lock().unwrap(), []);
}

#[tokio::test]
async fn calls_of_sub_agents_are_guarded_and_told_as_theirs() {
    let task = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    let mut bench = Bench::new(vec![
        calls(vec![call("1", "task", task)]),
        calls(vec![call("2", "writes", json!({}))]),
        says("I could not."),
        says("done"),
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
