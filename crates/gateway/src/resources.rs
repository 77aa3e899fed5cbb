//! Routes of DeerFlow's API besides threads and runs. They answer below `/api`, and below `/api/langgraph`, where its
//! frontend asks with LangGraph's SDK.

use super::{
    GatewayState, agents, artifacts, assist, assistants, chat_links, mcp, memory, models,
    openapi::{Routes, delete, get, patch, post, put, says},
    owned, profile, skills,
    unsupported::Part,
};
use axum::middleware;

/// Statuses with which a memory document may be refused.
const REMEMBERED: &[u16] = &[409, 422];

impl GatewayState {
    /// Returns the routes, each below both prefixes.
    pub(super) fn resources(&self) -> Routes {
        let routes = Self::model_routes().merge(self.own_routes()).merge(Self::operated_routes());
        let routes = routes.merge(Self::unsupported_routes());
        Routes::new("").nest("/api", routes.clone()).nest("/api/langgraph", routes)
    }

    /// Routes about models, assistants and other resources of the agent.
    fn model_routes() -> Routes {
        let of_assistants = Routes::new("assistants")
            .at(
                "/assistants/search",
                post(assistants::search, says("Finds assistants.").gives("[Assistant]")),
            )
            .at("/assistants/count", post(assistants::count, says("Counts assistants.")))
            .at(
                "/assistants/{assistant}",
                get(assistants::show, says("Shows an assistant."))
                    .patch(
                        assistants::fixed,
                        says("Is not offered: assistants are the agents.").fails(&[404]),
                    )
                    .delete(
                        assistants::fixed,
                        says("Is not offered: assistants are the agents.").fails(&[404]),
                    ),
            )
            .at(
                "/assistants/{assistant}/graph",
                get(assistants::graph, says("Shows an empty graph of an assistant.")),
            )
            .at(
                "/assistants/{assistant}/subgraphs",
                get(
                    assistants::subgraphs,
                    says("Shows the subgraphs of an assistant, which has none.").gives("object"),
                ),
            )
            .at(
                "/assistants/{assistant}/subgraphs/{namespace}",
                get(
                    assistants::subgraph,
                    says("Shows a subgraph of an assistant, which has none.").gives("object"),
                ),
            )
            .at(
                "/assistants/{assistant}/schemas",
                get(assistants::schemas, says("Shows empty schemas of an assistant.")),
            );
        Routes::new("models")
            .at("/models", get(models::list, says("Lists the models.")))
            .at("/models/{name}", get(models::show, says("Shows a model.")))
            .at("/features", get(models::features, says("Tells which parts are switched on.")))
            .at("/suggestions/config", get(assist::config, says("Tells whether questions are suggested.")))
            .at(
                "/threads/{thread}/suggestions",
                post(assist::suggest, says("Suggests questions that may follow.")),
            )
            .at("/input-polish", post(assist::polish, says("Words a text anew.").fails(&[404])))
            .merge(of_assistants)
    }

    /// Routes about the caller's own data.
    fn own_routes(&self) -> Routes {
        let of_threads = Routes::new("files")
            .at(
                "/threads/{thread}/artifacts/{*path}",
                put(
                    artifacts::put,
                    says("Writes a text file of a thread's outputs anew.").fails(&[409, 412]),
                )
                .limit(artifacts::MAX_EDIT_BODY_BYTES)
                .get(
                    artifacts::get,
                    says("Fetches a file of a thread; it may be of any media type.")
                        .sends_file()
                        .fails(&[422]),
                ),
            )
            .behind(middleware::from_fn_with_state(self.clone(), owned::check));
        let profile = Routes::new("profile")
            .at(
                "/user-profile",
                get(profile::show, says("Shows what the caller wrote of themselves."))
                    .put(profile::write, says("Keeps what the caller writes of themselves.")),
            )
            .behind(middleware::from_fn_with_state(self.clone(), agents::enabled));
        of_threads.merge(profile).merge(Self::memory_routes()).merge(Self::link_routes())
    }

    fn memory_routes() -> Routes {
        Routes::new("memory")
            .at(
                "/memory",
                get(memory::show, says("Shows what is remembered.").gives("Memory").fails(&[422])).delete(
                    memory::clear,
                    says("Forgets everything that is remembered.").gives("Memory").fails(REMEMBERED),
                ),
            )
            .at(
                "/memory/reload",
                post(
                    memory::reload,
                    says("Shows what is remembered, read anew.").gives("Memory").fails(&[422]),
                ),
            )
            .at(
                "/memory/export",
                get(
                    memory::export,
                    says("Returns what is remembered as one document.").gives("Memory").fails(&[422]),
                ),
            )
            .at(
                "/memory/import",
                post(memory::import, says("Replaces what is remembered.").gives("Memory").fails(REMEMBERED))
                    .limit(memory::MAX_IMPORT_BYTES),
            )
            .at("/memory/config", get(memory::config, says("Tells how memory is set up.").gives(SETTINGS)))
            .at(
                "/memory/status",
                get(
                    memory::status,
                    says("Tells how memory is set up, and what is remembered.")
                        .gives("{config: object, data: Memory}")
                        .fails(&[422]),
                ),
            )
            .at(
                "/memory/facts",
                post(memory::add, says("Remembers a fact.").gives("Memory").fails(REMEMBERED)),
            )
            .at(
                "/memory/facts/{fact}",
                patch(memory::edit, says("Changes a fact.").gives("Memory").fails(REMEMBERED))
                    .delete(memory::forget, says("Forgets a fact.").gives("Memory").fails(REMEMBERED)),
            )
    }

    fn link_routes() -> Routes {
        Routes::new("channels")
            .at(
                "/channels/providers",
                get(chat_links::providers, says("Lists the accounts whose people can be linked with users.")),
            )
            .at(
                "/channels/connections",
                get(chat_links::list, says("Lists the people of chats who are the caller.")),
            )
            .at(
                "/channels/connections/{connection}",
                delete(
                    chat_links::part,
                    says("Parts a person of a chat from the caller.").gives_nothing(204),
                ),
            )
            .at(
                "/channels/{name}/connect",
                post(chat_links::connect, says("Makes a code that links a person of a chat.").fails(&[409])),
            )
    }

    /// Routes about resources that the runs of all users share. Each handler checks that the caller is an
    /// administrator.
    fn operated_routes() -> Routes {
        let of_skills = Routes::new("skills")
            .at(
                "/skills/{name}",
                put(skills::switch, says("Switches a skill on or off."))
                    .get(skills::show, says("Shows a skill.")),
            )
            .at("/skills/reload", post(skills::reload, says("Reads the skills anew.")))
            .at(
                "/skills/custom/{name}",
                get(skills::show_custom, says("Shows a skill with its text."))
                    .put(skills::write_custom, says("Writes a skill's text anew.").fails(&[409]))
                    .delete(skills::remove_custom, says("Deletes a skill.").fails(&[409])),
            );
        Routes::new("MCP servers")
            .at(
                "/mcp/config",
                get(mcp::show, says("Shows the MCP servers without secrets."))
                    .put(mcp::replace, says("Replaces the MCP servers.").fails(&[409]))
                    .patch(mcp::switch, says("Switches an MCP server on or off.").fails(&[404, 409])),
            )
            .at("/mcp/cache/reset", post(mcp::reset, says("Connects all MCP servers anew.")))
            .merge(of_skills)
    }

    /// Routes of parts that pudu does not have, which say so.
    fn unsupported_routes() -> Routes {
        Routes::new("")
            .missing("/integrations/lark/{*rest}", Part::Lark)
            .missing("/webhooks/github", Part::GithubEvents)
            .missing("/scheduled-tasks", Part::Schedules)
            .missing("/scheduled-tasks/{*rest}", Part::Schedules)
            .missing("/threads/{thread}/scheduled-tasks", Part::Schedules)
            .missing("/threads/{thread}/mcp-tasks", Part::McpTasks)
            .missing("/threads/{thread}/mcp-tasks/{*rest}", Part::McpTasks)
            .missing("/threads/{thread}/browser/{*rest}", Part::Browser)
            .missing("/threads/{thread}/runs/crons", Part::Crons)
            .missing("/runs/crons", Part::Crons)
            .missing("/runs/crons/{*rest}", Part::Crons)
            .missing("/console/{*rest}", Part::Console)
            .missing("/store/{*rest}", Part::Store)
            .missing("/channels/{name}/runtime-config", Part::RuntimeConfig)
            .missing("/assistants", Part::OwnAssistants)
            .missing("/assistants/{assistant}/latest", Part::OwnAssistants)
            .missing("/assistants/{assistant}/versions", Part::OwnAssistants)
            .missing("/runs/batch", Part::Batches)
            .missing("/runs/cancel", Part::Batches)
            .missing("/threads/prune", Part::Prune)
            .missing("/threads/{thread}/stream", Part::ThreadStreams)
            .missing("/threads/{thread}/stream/{*rest}", Part::ThreadStreams)
            .missing("/threads/{thread}/commands", Part::ThreadStreams)
    }
}

/// How memory is set up; further keys come where it is on.
const SETTINGS: &str = "{enabled: boolean, injection_enabled: boolean, manager_class: string}";
