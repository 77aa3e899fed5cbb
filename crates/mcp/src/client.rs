//! pudu as a client: its notifications, and a server's own requests, which the call that they belong to answers.

#![expect(
    deprecated,
    reason = "servers of earlier versions of the protocol send logs and ask for roots and samples"
)]

use crate::{
    asks::{AskKind, RunningCalls},
    server::ServerLabel,
};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest,
        CustomResult, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData,
        FormElicitationCapability, Implementation, ListRootsResult, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, RootsCapabilities, SamplingCapability,
        UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;

/// The client's side of a session.
#[derive(Clone)]
pub(crate) struct McpClient {
    pub(crate) label: ServerLabel,
    pub(crate) calls: RunningCalls,
    /// Notified when the server says that its tools or prompts changed.
    pub(crate) tools_changed: Arc<Notify>,
}

impl McpClient {
    pub(crate) fn new(label: ServerLabel, tools_changed: Arc<Notify>) -> Self {
        Self { label, calls: RunningCalls::default(), tools_changed }
    }
}

impl ClientHandler for McpClient {
    fn get_info(&self) -> ClientConfig {
        let info = Implementation::new("pudu", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        capabilities.elicitation = Some(elicitation.with_url(UrlElicitationCapability::default()));
        capabilities.sampling = Some(SamplingCapability::default());
        capabilities.roots = Some(RootsCapabilities::default());
        ClientConfig::new(capabilities, info)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        typed(self.calls.ask(AskKind::Elicitation, json!(request), &context.meta).await?)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        typed(self.calls.ask(AskKind::Sampling, json!(request), &context.meta).await?)
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        typed(self.calls.ask(AskKind::Roots, Value::Null, &context.meta).await?)
    }

    /// Answers requests whose parameters have parts that the protocol does not have.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let kind = match request.method.as_str() {
            "elicitation/create" => AskKind::Elicitation,
            "sampling/createMessage" => AskKind::Sampling,
            _ => return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        };
        let params = request.params.unwrap_or_default();
        self.calls.ask(kind, params, &context.meta).await.map(CustomResult::new)
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.progress(&progress);
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = match &message.data {
            Value::String(text) => self.label.hide_and_cut(text),
            data => self.label.hide_and_cut(&data.to_string()),
        };
        let server = self.label.name();
        match message.level {
            LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::debug!(server, "MCP server logs: {text}");
            }
            LoggingLevel::Warning => tracing::info!(server, "MCP server warns: {text}"),
            _ => tracing::warn!(server, "MCP server reports an error: {text}"),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

fn typed<T: DeserializeOwned>(answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
