//! Routes of DeerFlow's API besides threads and runs. They answer below `/api`, and below `/api/langgraph`, where its
//! frontend asks with LangGraph's SDK.

use super::{
    GatewayState, agents, artifacts, assist, assistants, chat_links, mcp, memory, models, owned, profile,
    skills, unsupported,
};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{any, delete, get, patch, post, put},
};

impl GatewayState {
    /// Returns the routes, each below both prefixes.
    pub(super) fn resources(&self) -> Router<Self> {
        let routes = self.model_routes().merge(self.own_routes()).merge(Self::operated_routes());
        let routes = routes.merge(Self::unsupported_routes());
        Router::new().nest("/api", routes.clone()).nest("/api/langgraph", routes)
    }

    /// Routes about what the agent works with.
    fn model_routes(&self) -> Router<Self> {
        Router::new()
            .route("/models", get(models::list))
            .route("/models/{name}", get(models::show))
            .route("/features", get(models::features))
            .route("/suggestions/config", get(assist::config))
            .route("/threads/{thread}/suggestions", post(assist::suggest))
            .route("/input-polish", post(assist::polish))
            .route("/assistants/search", post(assistants::search))
            .route("/assistants/count", post(assistants::count))
            .route("/assistants/{assistant}", get(assistants::show))
            .route("/assistants/{assistant}/graph", get(assistants::graph))
            .route("/assistants/{assistant}/schemas", get(assistants::schemas))
            .route("/assistants/{assistant}/subgraphs", get(assistants::subgraphs))
            .route("/assistants/{assistant}/subgraphs/{namespace}", get(assistants::subgraphs))
    }

    /// Routes about what belongs to whoever asks.
    fn own_routes(&self) -> Router<Self> {
        let edited = put(artifacts::put).layer(DefaultBodyLimit::max(artifacts::MAX_EDIT_BODY_BYTES));
        let of_threads = Router::new()
            .route("/threads/{thread}/artifacts/{*path}", edited.get(artifacts::get))
            .route_layer(middleware::from_fn_with_state(self.clone(), owned::check));
        let profile = Router::new()
            .route("/user-profile", get(profile::show).put(profile::write))
            .route_layer(middleware::from_fn_with_state(self.clone(), agents::enabled));
        Router::new()
            .route("/memory", get(memory::show).delete(memory::clear))
            .route("/memory/reload", post(memory::reload))
            .route("/memory/export", get(memory::export))
            .route("/memory/import", post(memory::import))
            .route("/memory/config", get(memory::config))
            .route("/memory/status", get(memory::status))
            .route("/memory/facts", post(memory::add))
            .route("/memory/facts/{fact}", patch(memory::edit).delete(memory::forget))
            .route("/channels/providers", get(chat_links::providers))
            .route("/channels/connections", get(chat_links::list))
            .route("/channels/connections/{connection}", delete(chat_links::part))
            .route("/channels/{name}/connect", post(chat_links::connect))
            .merge(of_threads)
            .merge(profile)
    }

    /// Routes about what everybody's runs work with. Each handler sees to it that an admin asks.
    fn operated_routes() -> Router<Self> {
        Router::new()
            .route("/mcp/config", get(mcp::show).put(mcp::replace).patch(mcp::switch))
            .route("/mcp/cache/reset", post(mcp::reset))
            .route("/skills/{name}", put(skills::switch).get(skills::show))
            .route("/skills/reload", post(skills::reload))
            .route(
                "/skills/custom/{name}",
                get(skills::show_custom).put(skills::write_custom).delete(skills::remove_custom),
            )
    }

    /// Routes of parts that pudu does not have, which say so.
    fn unsupported_routes() -> Router<Self> {
        use unsupported::Part::{
            Batches, Browser, Console, Crons, Lark, McpTasks, OwnAssistants, Prune, RuntimeConfig, Schedules,
            Store, ThreadStreams,
        };
        let no = |part| any(move || std::future::ready(unsupported::answer(part)));
        let unmade = || std::future::ready(unsupported::answer(OwnAssistants));
        Router::new()
            .route("/integrations/lark/{*rest}", no(Lark))
            .route("/scheduled-tasks", no(Schedules))
            .route("/scheduled-tasks/{*rest}", no(Schedules))
            .route("/threads/{thread}/scheduled-tasks", no(Schedules))
            .route("/threads/{thread}/mcp-tasks", no(McpTasks))
            .route("/threads/{thread}/mcp-tasks/{*rest}", no(McpTasks))
            .route("/threads/{thread}/browser/{*rest}", no(Browser))
            .route("/threads/{thread}/runs/crons", no(Crons))
            .route("/runs/crons", no(Crons))
            .route("/runs/crons/{*rest}", no(Crons))
            .route("/console/{*rest}", no(Console))
            .route("/store/{*rest}", no(Store))
            .route("/channels/{name}/runtime-config", no(RuntimeConfig))
            .route("/assistants", no(OwnAssistants))
            .route("/assistants/{assistant}", patch(unmade).delete(unmade))
            .route("/assistants/{assistant}/latest", no(OwnAssistants))
            .route("/assistants/{assistant}/versions", no(OwnAssistants))
            .route("/runs/batch", no(Batches))
            .route("/runs/cancel", no(Batches))
            .route("/threads/prune", no(Prune))
            .route("/threads/{thread}/stream", no(ThreadStreams))
            .route("/threads/{thread}/stream/{*rest}", no(ThreadStreams))
            .route("/threads/{thread}/commands", no(ThreadStreams))
    }
}
