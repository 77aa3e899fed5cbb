//! Findings of a tool before users are asked.

use crate::{
    ApprovalPolicy,
    fixture::{Bench, call, calls, text_reply},
};
use pudu_base::{
    ApprovalRequest, Approver, BoxFuture, Decision, Tell, Tool, ToolCx, ToolError, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// Approves everything and records the full calls.
#[derive(Default)]
struct Reader(Mutex<Vec<Option<String>>>);

impl Approver for Reader {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest, _: &'a Tell) -> BoxFuture<'a, Decision> {
        self.0.lock().unwrap().push(request.whole.as_deref().map(str::to_owned));
        let by = Some("Ada".to_owned());
        let decision = Decision { request: request.line.clone(), approved: true, by, not_asked: false };
        Box::pin(std::future::ready(decision))
    }

    fn refused<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Finds that a call is impossible, adds a text for users, or panics.
struct Careful(Arc<ToolSpec>);

impl Tool for Careful {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn call<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok("made".to_owned().into())))
    }
    fn examine<'a>(&'a self, args: &'a Value) -> BoxFuture<'a, Result<Option<String>, ToolError>> {
        Box::pin(async move {
            match args["finds"].as_str() {
                Some("wrong") => Err(ToolError("it is wrong".to_owned())),
                Some("panic") => panic!("in the tool"),
                Some(more) => Ok(Some(more.to_owned())),
                None => Ok(None),
            }
        })
    }
}

async fn made(args: Value) -> (String, Vec<Option<String>>) {
    let mut bench = Bench::new(vec![calls(vec![call("1", "careful", args)]), text_reply("done")]);
    let reader = Arc::new(Reader::default());
    let (name, description) = ("careful".to_owned(), String::new());
    let spec = ToolSpec { name, description, parameters: json!({"type": "object"}), idempotent: false };
    bench.agent.tools = bench.agent.tools.with(Arc::new(Careful(Arc::new(spec))));
    bench.agent.approver = reader.clone();
    bench.agent.policy =
        Arc::new(ApprovalPolicy { tools: ["careful".to_owned()].into(), ..ApprovalPolicy::default() });
    bench.run(Some("go")).await;
    let read = std::mem::take(&mut *reader.0.lock().unwrap());
    (bench.asked()[1].last().unwrap().clone(), read)
}

#[tokio::test]
async fn no_user_is_asked_about_an_impossible_call() {
    assert_eq!(made(json!({"finds": "wrong"})).await, ("tool: Error: it is wrong".to_owned(), vec![]));
    assert_eq!(
        made(json!({"finds": "panic"})).await,
        ("tool: Error: careful failed with an internal error".to_owned(), vec![])
    );
}

#[tokio::test]
async fn users_read_findings_beyond_the_arguments() {
    assert_eq!(made(json!({})).await, ("tool: made".to_owned(), vec![None]));
    assert_eq!(made(json!({"finds": "more"})).await.1, [Some("more".to_owned())]);
    let long = json!({"finds": "more", "text": "x".repeat(2_000)});
    let read = made(long).await.1.remove(0).unwrap();
    assert!(read.starts_with("careful\n") && read.ends_with("\n\nmore"), "{read}");
}
