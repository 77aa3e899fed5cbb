//! A client for the protocol's conformance suite, which starts it with the URL of a server for one scenario: it
//! connects to that server like the daemon, and makes the calls that the scenario names, or calls each tool once.

#[path = "../context.rs"]
mod context;

use pudu_base::{
    BoxFuture, CallHost, Decision, EffectRequest, MessageId, SamplePrompt, SampledText, Tool, ToolCx,
    ToolError, ToolOutput,
};
use pudu_mcp::{LoginVault, McpConfig, Servers};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    env,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = env::args().next_back() else { return ExitCode::FAILURE };
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let entry = entry(&url, &context);
    let file = json!({ "mcpServers": { "suite": entry } }).to_string();
    let vault: Arc<dyn LoginVault> = Arc::new(Logins::default());
    let mut skipped = Vec::new();
    for _ in 0..MAX_LOGINS {
        let config = match McpConfig::parse(&file, &HashMap::new()) {
            Ok(config) => config.with_logins(&vault),
            Err(error) => return failed(&error.to_string()),
        };
        let servers = Servers::connect(config).await;
        let mut problems: Vec<String> = servers.skipped().iter().map(ToString::to_string).collect();
        skipped.clone_from(&problems);
        for (tool, arguments) in calls(&servers.tools(), &context) {
            let name = &tool.spec().name;
            match answered(&*tool, arguments).await {
                Ok(output) => println!("{name}: {}", output.text),
                Err(error) => {
                    println!("{name}: {error}");
                    problems.push(error.to_string());
                }
            }
        }
        servers.close().await;
        if !problems.iter().any(|problem| problem.contains("401")) {
            break;
        }
        if let Err(why) = log_in(&file, vault.clone()).await {
            return failed(&why);
        }
    }
    if skipped.is_empty() { ExitCode::SUCCESS } else { failed(&skipped.join("\n")) }
}

/// Makes a call. A form is answered without any value, so that the server gets its own defaults.
async fn answered(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    let mut said = "Call it.".to_owned();
    for _ in 0..4 {
        let cx = ToolCx { host: Arc::new(Willing(said)), ..context::cx() };
        let output = tool.call(arguments.clone(), &cx).await?;
        match &output.question {
            Some(question) => {
                said = question.fields.iter().map(|field| format!("{}:\n", field.label)).collect()
            }
            None => return Ok(output),
        }
    }
    Err(ToolError("it asks again".to_owned()))
}

/// A person who allows everything, and whose newest message is this one.
struct Willing(String);

impl CallHost for Willing {
    fn can_ask(&self) -> bool {
        true
    }

    fn newest_message(&self) -> Option<(MessageId, Arc<str>)> {
        Some((self.0.as_str().into(), self.0.as_str().into()))
    }

    fn approve(&self, request: EffectRequest) -> BoxFuture<'_, Decision> {
        let by = Some("suite".to_owned());
        Box::pin(std::future::ready(Decision { request: request.line, approved: true, by, not_asked: false }))
    }

    fn sample(&self, _: SamplePrompt) -> BoxFuture<'_, Result<SampledText, String>> {
        Box::pin(std::future::ready(Ok(SampledText { text: "four".to_owned(), model: "suite".to_owned() })))
    }

    fn workspace(&self) -> Option<PathBuf> {
        None
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// Maximum number of logins, as of a patient person.
const MAX_LOGINS: usize = 3;

/// Logs in like a person whose browser follows the redirects of the authorization server.
async fn log_in(file: &str, vault: Arc<dyn LoginVault>) -> Result<(), String> {
    let config = McpConfig::parse(file, &HashMap::new()).map_err(|error| error.to_string())?;
    let login = config.login("suite", REDIRECT, vault).await?;
    let browser = pudu_net::client().map_err(|error| error.to_string())?;
    let shown = browser.get(login.address()).send().await.map_err(|error| error.to_string())?;
    let location = shown.headers().get("location").and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| format!("no redirect: {}", shown.status()))?;
    let (_, query) = location.split_once('?').ok_or("no answer in the redirect")?;
    login.finish(query).await
}

/// The address to which the browser returns. The suite does not open it.
const REDIRECT: &str = "http://127.0.0.1:9/callback";

/// Logins in memory.
#[derive(Default)]
struct Logins(Mutex<HashMap<String, SecretString>>);

impl LoginVault for Logins {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        let login = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned();
        Box::pin(std::future::ready(Ok(login)))
    }

    fn store<'a>(&'a self, server: &'a str, login: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), login);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the entry of the server, with the credentials that the scenario gives.
fn entry(url: &str, context: &Value) -> Value {
    let mut entry = json!({ "type": "http", "url": url, "tool_call_timeout": 20 });
    if let (Some(id), Some(secret)) = (context.get("client_id"), context.get("client_secret")) {
        entry["oauth"] =
            json!({ "grant_type": "authorization_code", "client_id": id, "client_secret": secret });
    }
    entry
}

/// Returns the calls to make: those of the scenario, or one of each tool.
fn calls(tools: &[Arc<dyn Tool>], context: &Value) -> Vec<(Arc<dyn Tool>, Value)> {
    let find = |name: &str| tools.iter().find(|tool| tool.spec().name == name).cloned();
    match context.get("toolCalls").and_then(Value::as_array) {
        Some(calls) => calls
            .iter()
            .filter_map(|call| {
                Some((find(&format!("suite_{}", call["name"].as_str()?))?, call["arguments"].clone()))
            })
            .collect(),
        None => tools.iter().map(|tool| (tool.clone(), arguments(tools, &tool.spec().parameters))).collect(),
    }
}

/// Returns a value for each required argument. An argument that asks for a schema gets that of the first tool.
fn arguments(tools: &[Arc<dyn Tool>], schema: &Value) -> Value {
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(3),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    let first = || tools.first().map(|tool| tool.spec().parameters.clone()).unwrap_or_default();
    let pairs = names.map(|name| match name {
        "schema" | "inputSchema" => (name.to_owned(), first()),
        _ => (name.to_owned(), value(&schema["properties"][name])),
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}
