//! Requests that a server makes during a call: questions to people and to the model, and the folders it may work in.

use crate::desk::{connect, cx, fixture, tool, works};
use pudu_base::{
    BoxFuture, CallHost, Decision, EffectRequest, MessageId, SamplePrompt, SampledText, ToolCx, ToolError,
    ToolOutput,
};
use pudu_mcp::Servers;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

/// A run in which a person wrote a message and answers approvals.
#[derive(Default)]
struct Host {
    said: &'static str,
    /// The decision on approvals; `None` if there are no people.
    approves: Option<bool>,
    shown: Mutex<Vec<EffectRequest>>,
}

impl CallHost for Host {
    fn can_ask(&self) -> bool {
        self.approves.is_some()
    }

    fn newest_message(&self) -> Option<(MessageId, Arc<str>)> {
        Some((self.said.into(), self.said.into()))
    }

    fn approve(&self, request: EffectRequest) -> BoxFuture<'_, Decision> {
        let (approved, not_asked) = (self.approves == Some(true), self.approves.is_none());
        let by = (!not_asked).then(|| "Ada".to_owned());
        let decision = Decision { request: request.line.clone(), approved, by, not_asked };
        self.shown.lock().unwrap().push(request);
        Box::pin(std::future::ready(decision))
    }

    fn sample(&self, prompt: SamplePrompt) -> BoxFuture<'_, Result<SampledText, String>> {
        let text = format!("{} messages, at most {:?}", prompt.messages.len(), prompt.max_tokens);
        Box::pin(std::future::ready(Ok(SampledText { text, model: "m".to_owned() })))
    }

    fn workspace(&self) -> Option<PathBuf> {
        Some("/srv/a b/workspace".into())
    }
}

fn host(said: &'static str, approves: Option<bool>) -> Arc<Host> {
    Arc::new(Host { said, approves, ..Host::default() })
}

async fn ask(servers: &Servers, request: &Value, host: Arc<Host>) -> Result<ToolOutput, ToolError> {
    ask_then(servers, request, "", host).await
}

async fn ask_then(
    servers: &Servers,
    request: &Value,
    then: &str,
    host: Arc<Host>,
) -> Result<ToolOutput, ToolError> {
    let args = json!({ "text": request.to_string(), "then": then });
    tool(servers, "s_ask").call(args, &ToolCx { host, ..cx() }).await
}

fn elicitation(properties: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": properties, "required": ["who"] });
    json!({ "method": "elicitation/create", "params": { "message": "Whose?", "requestedSchema": schema } })
}

/// A field that the protocol has, and one that it does not have.
fn fields() -> Value {
    json!({ "who": { "type": "string", "title": "Name" }, "where": { "type": "geo-point", "maximum": "far" } })
}

#[tokio::test]
async fn a_form_ends_the_run_and_its_answer_continues_the_call() {
    let servers = connect(&fixture("")).await;
    let request = elicitation(&fields());
    let asked = ask(&servers, &request, host("book it", Some(true))).await.unwrap();
    let question = asked.question.unwrap();
    assert_eq!(question.text, "❓ **s**: Whose?");
    let labels: Vec<String> = question.fields.iter().map(|field| field.as_text()).collect();
    assert!(labels.contains(&"Name *".to_owned()) && labels.contains(&"where".to_owned()), "{labels:?}");
    assert!(asked.text.contains("call s_ask again with exactly the same arguments"), "{}", asked.text);
    // Nobody answered yet.
    let error = ask(&servers, &request, host("book it", Some(true))).await.unwrap_err();
    assert!(error.0.contains("people have not answered its question yet"), "{error}");
    // The answer has a mistake, and the form is shown again.
    let again = ask(&servers, &request, host("where: here", Some(true))).await.unwrap();
    let again = again.question.unwrap();
    assert!(again.text.contains("Name: an answer is needed"), "{}", again.text);
    let done = ask(&servers, &request, host("Name: Ada\nwhere: here", Some(true))).await.unwrap();
    let told: Value = serde_json::from_str(&done.text).unwrap();
    assert_eq!(told, json!({ "action": "accept", "content": { "who": "Ada", "where": "here" } }));
    servers.close().await;
}

#[tokio::test]
async fn another_call_ends_the_waiting_one_and_a_server_that_dies_meanwhile_fails_its_call() {
    let servers = connect(&fixture("")).await;
    let request = elicitation(&fields());
    let ask = async |then: &str, said| ask_then(&servers, &request, then, host(said, Some(true))).await;
    assert!(ask("", "go").await.unwrap().question.is_some());
    // The server hears that the first question is cancelled, and its answer is late.
    assert!(ask("die", "go").await.unwrap().question.is_some());
    let error = ask("die", "Name: Ada").await.unwrap_err();
    assert!(error.0.contains("the connection ended before the answer"), "{error}");
    let fresh = ask("", "Name: Ada").await.unwrap();
    assert!(fresh.question.is_some(), "a new call asks again");
    servers.close().await;
}

#[tokio::test]
async fn a_process_that_is_gone_while_a_person_thinks_fails_its_call() {
    let servers = connect(&fixture("")).await;
    let pid = crate::desk::call(&servers, "s_pid", json!({})).await.unwrap();
    let request = elicitation(&fields());
    assert!(ask(&servers, &request, host("go", Some(true))).await.unwrap().question.is_some());
    std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    crate::desk::ended(&pid).await;
    assert!(!works(&pid));
    let error = ask(&servers, &request, host("Name: Ada", Some(true))).await.unwrap_err();
    assert!(error.0.contains("the connection ended before the answer"), "{error}");
    servers.close().await;
}

#[tokio::test]
async fn links_and_confirmations_need_an_approval() {
    let servers = connect(&fixture("")).await;
    let check = async |request: &Value, approves, shown: &[&str], action: &str| {
        let host = host("go", approves);
        let output = ask(&servers, request, host.clone()).await.unwrap();
        let lines: Vec<String> =
            host.shown.lock().unwrap().iter().map(|effect| effect.line.clone()).collect();
        assert_eq!(lines, shown, "{request}");
        let told = output.text.lines().next().unwrap();
        let told: Value = serde_json::from_str(told).unwrap();
        assert_eq!(told["action"], action, "{request}");
    };
    let link = |url: &str| {
        let params = json!({ "mode": "url", "message": "Sign in", "url": url, "elicitationId": "1" });
        json!({ "method": "elicitation/create", "params": params })
    };
    let pay = link("https://pay.example/x");
    let shown = ["`s: Sign in` → https://pay.example/x"];
    check(&pay, Some(true), &shown, "accept").await;
    check(&pay, Some(false), &shown, "decline").await;
    check(&pay, None, &shown, "decline").await;
    check(&link("javascript:alert(1)"), Some(true), &[], "decline").await;
    let confirm = json!({ "method": "elicitation/create", "params": { "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } } });
    check(&confirm, Some(true), &["`s: Sure?`"], "accept").await;
    check(&confirm, Some(false), &["`s: Sure?`"], "decline").await;
    // A form cannot be shown: there are no people, or it is too large.
    check(&elicitation(&fields()), None, &[], "decline").await;
    let giant: serde_json::Map<_, _> =
        (0..5_000).map(|n| (format!("f{n}"), json!({ "type": "string" }))).collect();
    check(&elicitation(&Value::Object(giant)), Some(true), &[], "decline").await;
    servers.close().await;
}

#[tokio::test]
async fn the_model_answers_after_an_approval_and_the_workspace_is_a_root() {
    let servers = connect(&fixture("")).await;
    let messages = json!([{ "role": "user", "content": { "type": "text", "text": "2 + 2?" } }]);
    let sample =
        json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 9 } });
    let told = async |request: &Value, approves| {
        let output = ask(&servers, request, host("go", approves)).await.unwrap();
        serde_json::from_str::<Value>(&output.text).unwrap()
    };
    let text = json!({ "type": "text", "text": "1 messages, at most Some(9)" });
    let answer = told(&sample, Some(true)).await;
    assert_eq!((&answer["content"], &answer["model"]), (&text, &json!("m")), "{answer}");
    for approves in [Some(false), None] {
        assert_eq!(told(&sample, approves).await["code"], -1);
    }
    let roots = told(&json!({ "method": "roots/list" }), None).await;
    assert_eq!(roots["roots"][0]["uri"], "file:///srv/a%20b/workspace", "{roots}");
    servers.close().await;
}

#[tokio::test]
async fn a_request_that_may_belong_to_several_calls_is_declined() {
    let servers = connect(&fixture("")).await;
    let (hang, hang_cx) = (tool(&servers, "s_hang"), cx());
    let request = elicitation(&fields());
    let asked = tokio::select! {
        biased;
        _ = hang.call(json!({}), &hang_cx) => panic!("it answers"),
        asked = ask(&servers, &request, host("go", Some(true))) => asked.unwrap(),
    };
    assert!(asked.question.is_none() && asked.text.contains(r#""action":"decline""#), "{}", asked.text);
    servers.close().await;
}
