//! One tool of a server, for the agent's loop.

use crate::{
    answer::{self, ToolAnswer},
    failure,
    keeper::KeeperHandle,
    listing::ListedTool,
    schema::ToolSchema,
    server::McpServer,
};
use pudu_base::{BoxFuture, ResultOrigin, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use rmcp::{
    model::{CallToolRequestParams, CallToolResponse},
    service::ServiceError,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::timeout;

/// One tool of a server.
pub(crate) struct McpTool {
    server: Arc<McpServer>,
    line: KeeperHandle,
    remote: String,
    schema: ToolSchema,
    spec: Arc<ToolSpec>,
}

impl McpTool {
    /// Creates a tool with the model's name for it, which may differ from the server's.
    pub(crate) fn new(server: Arc<McpServer>, line: KeeperHandle, name: String, tool: ListedTool) -> Self {
        let ListedTool { remote, description, schema } = tool;
        // A name in another script loses its meaning in the characters that models may use.
        let description = match remote.is_ascii() {
            true => description,
            false => format!("{remote}: {description}"),
        };
        // A server's claim that a call may be repeated after a crash is not trusted.
        let parameters = schema.parameters.clone();
        let spec = Arc::new(ToolSpec { name, description, parameters, idempotent: false });
        Self { server, line, remote, schema, spec }
    }

    async fn ask(&self, args: Value) -> Result<ToolOutput, ToolError> {
        let mut params = CallToolRequestParams::new(self.remote.clone());
        params.arguments = match self.schema.restore_names(args) {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            _ => return Err(self.error("the arguments must be an object")),
        };
        let wire = self.line.wire().await.map_err(|why| self.error(&why))?;
        let most = self.server.call_timeout;
        // Dropping the request cancels it on the server.
        let answer = timeout(most, wire.call_tool_once(params)).await;
        self.read(answer.map_err(|_| self.error(&format!("no answer within {most:?} (tool_call_timeout)")))?)
    }

    fn read(&self, answer: Result<CallToolResponse, ServiceError>) -> Result<ToolOutput, ToolError> {
        match answer {
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
                Err(ToolError(self.server.label.hide_in_tool_error(&answer::read(&result).text)))
            }
            Ok(CallToolResponse::Complete(result)) => {
                let ToolAnswer { text, images } = answer::read(&result);
                let (partial, cut) = (answer::is_cut(&text), Some(answer::SHOWN));
                Ok(ToolOutput { text, cut, partial, attached: images, ..ToolOutput::default() })
            }
            Ok(_) => Err(self.error("it asks for something that is not in this version")),
            Err(error) => Err(self.error(&failure::of_request(&error, &self.server.label))),
        }
    }

    fn error(&self, why: &str) -> ToolError {
        ToolError(format!("MCP server {}: {why}", self.server.name()))
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _cx: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.ask(args))
    }

    fn origin(&self) -> ResultOrigin {
        ResultOrigin::Strangers
    }
}
