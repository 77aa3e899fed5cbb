//! One tool of a server, as the loop sees it.

use crate::{
    answer::{self, ToolAnswer},
    failure::{self, words},
    keeper::KeeperHandle,
    listing::ListedTool,
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
    spec: Arc<ToolSpec>,
}

impl McpTool {
    pub(crate) fn new(
        server: Arc<McpServer>,
        line: KeeperHandle,
        ListedTool { remote, spec }: ListedTool,
    ) -> Self {
        Self { server, line, remote, spec: Arc::new(spec) }
    }

    async fn ask(&self, args: Value) -> Result<ToolOutput, ToolError> {
        let mut params = CallToolRequestParams::new(self.remote.clone());
        params.arguments = match args {
            Value::Object(arguments) => Some(arguments),
            Value::Null => None,
            _ => return Err(self.error("the arguments must be an object")),
        };
        let wire = self.line.wire().await.map_err(|why| self.error(&why))?;
        // Dropping the request tells the server to stop.
        let asking = wire.call_tool_once(params);
        let answer = match self.server.call_timeout {
            None => asking.await,
            Some(most) => timeout(most, asking)
                .await
                .map_err(|_| self.error(&format!("no answer within {most:?} (tool_call_timeout)")))?,
        };
        self.read(answer)
    }

    fn read(&self, answer: Result<CallToolResponse, ServiceError>) -> Result<ToolOutput, ToolError> {
        match answer {
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
                Err(ToolError(words(&answer::read(&result).text)))
            }
            Ok(CallToolResponse::Complete(result)) => {
                let ToolAnswer { text, images } = answer::read(&result);
                let (partial, cut) = (answer::is_cut(&text), Some(answer::SHOWN));
                Ok(ToolOutput { text, cut, partial, attached: images, ..ToolOutput::default() })
            }
            Ok(_) => Err(self.error("it asks for something that is not in this version")),
            Err(error) => Err(self.error(&failure::of_request(&error))),
        }
    }

    fn error(&self, why: &str) -> ToolError {
        ToolError(format!("MCP server {}: {why}", self.server.name))
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
