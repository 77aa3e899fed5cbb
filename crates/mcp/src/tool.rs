//! A tool of a server, for the agent's loop.

use crate::{
    answer,
    call::{OngoingCall, ServerStep},
    failure,
    handle::KeeperHandle,
    listing::ListedTool,
    parked::{ParkedCall, ParkedKey},
    people::{self, AskOutcome},
    schema::ToolSchema,
    server::McpServer,
};
use pudu_base::{BoxFuture, Question, ResultOrigin, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use rmcp::model::{CallToolRequestParams, CallToolResult};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::timeout;

/// Maximum number of requests of a server during a call.
const MAX_ASKS: usize = 64;

/// A tool of a server.
pub(crate) struct McpTool {
    server: Arc<McpServer>,
    line: KeeperHandle,
    remote: String,
    schema: ToolSchema,
    spec: Arc<ToolSpec>,
}

impl McpTool {
    /// Creates a tool. `name` is the name for the model, which may differ from the server's.
    pub(crate) fn new(server: Arc<McpServer>, line: KeeperHandle, name: String, tool: ListedTool) -> Self {
        let ListedTool { remote, description, schema } = tool;
        // A name in another script loses its meaning when it is reduced to the characters that providers accept.
        let description = match remote.is_ascii() {
            true => description,
            false => format!("{remote}: {description}"),
        };
        // A server's claim that its calls are idempotent is not trusted.
        let parameters = schema.parameters.clone();
        let spec = Arc::new(ToolSpec { name, description, parameters, idempotent: false });
        Self { server, line, remote, schema, spec }
    }

    async fn ask(&self, args: Value, cx: &ToolCx) -> Result<ToolOutput, ToolError> {
        let key = (cx.thread.clone(), self.spec.name.clone());
        // A call with other arguments is another call, and ends the one that waits.
        if let Some(parked) = self.line.parked.take(&key).filter(|parked| parked.args == args) {
            return self.resume(parked, &key, cx).await;
        }
        let mut params = CallToolRequestParams::new(self.remote.clone());
        params.arguments = match self.schema.restore_names(args.clone()) {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            _ => return Err(self.error("the arguments must be an object")),
        };
        let wire = self.line.wire().await.map_err(|why| self.error(&why))?;
        self.follow(wire.begin(params, &cx.call, &cx.events), args, &key, cx).await
    }

    /// Continues a call with the answers in the message of a person.
    async fn resume(
        &self,
        parked: ParkedCall,
        key: &ParkedKey,
        cx: &ToolCx,
    ) -> Result<ToolOutput, ToolError> {
        let newest = cx.host.newest_message();
        let Some((id, text)) = newest.filter(|(id, _)| Some(id) != parked.asked_after.as_ref()) else {
            self.line.parked.park(key, parked);
            return Err(self.error("people have not answered its question yet"));
        };
        match parked.form.answers(&text) {
            Ok(content) => {
                parked.ask.answer(Ok(json!({ "action": "accept", "content": content })));
                self.follow(parked.ongoing, parked.args, key, cx).await
            }
            Err(problem) => {
                let message = format!("{}\n\n⚠️ {problem}", parked.message);
                let question = parked.form.question(self.server.name(), &message);
                self.line.parked.park(key, ParkedCall { asked_after: Some(id), ..parked });
                Ok(self.asks(question))
            }
        }
    }

    /// Follows a call until it has a result or asks people. Each step of the server has its own timeout.
    async fn follow(
        &self,
        mut ongoing: OngoingCall,
        args: Value,
        key: &ParkedKey,
        cx: &ToolCx,
    ) -> Result<ToolOutput, ToolError> {
        let (limit, mut declined) = (self.server.call_timeout, Vec::new());
        for _ in 0..MAX_ASKS {
            // Dropping the call cancels it on the server.
            let step = timeout(limit, ongoing.next()).await;
            let step =
                step.map_err(|_| self.error(&format!("no answer within {limit:?} (tool_call_timeout)")))?;
            match step {
                Ok(ServerStep::Asks(ask)) => match people::handle(ask, &self.server, &*cx.host).await {
                    AskOutcome::Answered => {}
                    AskOutcome::Declined(message) => declined.push(message),
                    AskOutcome::Form { ask, form, message } => {
                        let asked_after = cx.host.newest_message().map(|(id, _)| id);
                        let question = form.question(self.server.name(), &message);
                        let parked = ParkedCall { args, ongoing, ask, form, message, asked_after };
                        return match self.line.parked.park(key, parked) {
                            true => Ok(self.asks(question)),
                            false => Err(self.error("too many of its calls wait for people")),
                        };
                    }
                },
                Ok(ServerStep::Complete(result)) => return self.read(&result, &declined),
                Ok(ServerStep::Unsupported) => {
                    return Err(self.error("it asks for something that is not in this version"));
                }
                Err(error) => {
                    return Err(self.error(&failure::of_request(&error, &self.server.label)));
                }
            }
        }
        Err(self.error("it asks too often"))
    }

    /// Ends the run with a question to people.
    fn asks(&self, question: Question) -> ToolOutput {
        let (server, name) = (self.server.name(), &self.spec.name);
        let text = format!(
            "{}\n\nThe server {server} asks this before it continues. The question is asked, and the answer is the next \
             message. Then call {name} again with exactly the same arguments: the call continues, and {server} gets the \
             answers from that message. If people do not want to answer, do not call it again.",
            question.as_text()
        );
        ToolOutput { text, question: Some(question), ..ToolOutput::default() }
    }

    fn read(&self, result: &CallToolResult, declined: &[String]) -> Result<ToolOutput, ToolError> {
        let note = note(declined);
        if result.is_error == Some(true) {
            let text = answer::read(result).text + &note;
            return Err(ToolError(self.server.label.hide_in_tool_error(&text)));
        }
        Ok(answer::output(result, &note))
    }

    fn error(&self, why: &str) -> ToolError {
        ToolError(format!("MCP server {}: {why}", self.server.name()))
    }
}

/// Returns a note for the model on questions of the server that were declined.
fn note(asked: &[String]) -> String {
    if asked.is_empty() {
        return String::new();
    }
    let questions = asked.join("\n- ");
    format!(
        "\n\nDuring the call the server asked people, and pudu declined for them:\n- {questions}\nIf you need the \
         answer, ask people yourself, and call the tool again with it."
    )
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.ask(args, cx))
    }

    fn origin(&self) -> ResultOrigin {
        ResultOrigin::Strangers
    }
}
