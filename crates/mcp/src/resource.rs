//! The resources of a server as two tools for the model: one lists them, the other reads one.

use crate::{answer, failure, handle::KeeperHandle, server::McpServer};
use pudu_base::{BoxFuture, Cut, ResultOrigin, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};
use rmcp::{
    RoleClient,
    model::{
        CallToolResult, ContentBlock, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, Resource,
    },
    service::{Peer, ServiceError},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::timeout;

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 16;
/// Maximum number of resources in a list.
const MAX_LISTED: usize = 500;
/// Maximum length of a resource's description in a list, in characters.
const MAX_ABOUT_CHARS: usize = 300;

/// Kind of access to the resources.
#[derive(Clone, Copy)]
pub(crate) enum ResourceRequest {
    List,
    Read,
}

impl ResourceRequest {
    pub(crate) const ALL: [Self; 2] = [Self::List, Self::Read];

    /// Returns the tool's name without the server's.
    pub(crate) fn remote(self) -> &'static str {
        match self {
            Self::List => "list_resources",
            Self::Read => "read_resource",
        }
    }

    fn spec(self, name: String, server: &str) -> ToolSpec {
        let (description, parameters) = match self {
            Self::List => (
                format!("Lists the resources (documents, records, files) that the server {server} offers."),
                json!({ "type": "object", "properties": {} }),
            ),
            Self::Read => (
                format!(
                    "Reads a resource of the server {server}: one that it lists, or one that a result links to."
                ),
                json!({
                    "type": "object",
                    "properties": { "uri": { "type": "string", "description": "URI of the resource." } },
                    "required": ["uri"],
                }),
            ),
        };
        ToolSpec { name, description, parameters, idempotent: true }
    }
}

/// A tool for the resources of one server.
pub(crate) struct ResourceTool {
    server: Arc<McpServer>,
    line: KeeperHandle,
    request: ResourceRequest,
    spec: Arc<ToolSpec>,
}

impl ResourceTool {
    pub(crate) fn new(
        server: Arc<McpServer>,
        line: KeeperHandle,
        name: String,
        request: ResourceRequest,
    ) -> Self {
        let spec = Arc::new(request.spec(name, server.name()));
        Self { server, line, request, spec }
    }

    async fn ask(&self, args: &Value) -> Result<ToolOutput, ToolError> {
        let wire = self.line.wire().await.map_err(|why| self.error(&why))?;
        let limit = self.server.call_timeout;
        let request = async {
            match (self.request, args.get("uri").and_then(Value::as_str)) {
                (ResourceRequest::List, _) => list(&wire.peer).await,
                (ResourceRequest::Read, Some(uri)) => read(&wire.peer, uri).await,
                (ResourceRequest::Read, None) => Ok(Err("`uri` is missing".to_owned())),
            }
        };
        let answer = timeout(limit, request).await;
        let answer =
            answer.map_err(|_| self.error(&format!("no answer within {limit:?} (tool_call_timeout)")))?;
        let answer = answer.map_err(|error| self.error(&failure::of_request(&error, &self.server.label)))?;
        answer.map_err(|why| self.error(&why))
    }

    fn error(&self, why: &str) -> ToolError {
        ToolError(format!("MCP server {}: {why}", self.server.name()))
    }
}

impl Tool for ResourceTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, args: Value, _: &'a ToolCx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.ask(&args).await })
    }

    fn origin(&self) -> ResultOrigin {
        ResultOrigin::Strangers
    }
}

/// Lists resources, one a line.
async fn list(peer: &Peer<RoleClient>) -> Result<Result<ToolOutput, String>, ServiceError> {
    let (mut lines, mut cursor) = (Vec::new(), None);
    for _ in 0..MAX_PAGES {
        let page = peer.list_resources(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        lines.extend(page.resources.iter().map(line));
        cursor = page.next_cursor;
        if cursor.is_none() || page.resources.is_empty() || lines.len() >= MAX_LISTED {
            break;
        }
    }
    let left = lines.len().saturating_sub(MAX_LISTED);
    lines.truncate(MAX_LISTED);
    if left > 0 || cursor.is_some() {
        lines.push("(there are more)".to_owned());
    }
    let text = if lines.is_empty() { "(no resources)".to_owned() } else { lines.join("\n") };
    Ok(Ok(ToolOutput { text, cut: Some(answer::SHOWN), ..ToolOutput::default() }))
}

fn line(resource: &Resource) -> String {
    let mime = resource.mime_type.as_ref().map(|mime| format!(" ({mime})")).unwrap_or_default();
    let about = resource.description.as_deref().or(resource.title.as_deref()).unwrap_or_default();
    let about = Cut::Middle(MAX_ABOUT_CHARS).apply(about.replace('\n', " "));
    let about = if about.is_empty() { about } else { format!(": {about}") };
    format!("{} {}{mime}{about}", resource.uri, resource.name)
}

/// Reads a resource, like the resources in results of tools.
async fn read(peer: &Peer<RoleClient>, uri: &str) -> Result<Result<ToolOutput, String>, ServiceError> {
    match peer.read_resource_once(ReadResourceRequestParams::new(uri)).await? {
        ReadResourceResponse::Complete(result) => {
            let blocks = result.contents.into_iter().map(ContentBlock::resource).collect();
            Ok(Ok(answer::output(&CallToolResult::success(blocks), "")))
        }
        _ => Ok(Err("it asks for something that is not in this version".to_owned())),
    }
}
