//! Routes about the agent: custom agents, assistants, models, skills and MCP servers.

mod agents;
mod assist;
mod assistants;
mod mcp;
mod mcp_edit;
mod models;
mod skills;

pub(crate) use agents::enabled;

use crate::{
    GatewayState,
    auth::admit,
    openapi::{RouteAccess, Routes, about, get, post, put},
};
use axum::middleware;

/// Returns the routes that are served under two prefixes.
pub(crate) fn routes() -> Routes {
    model_routes().merge(assistant_routes()).merge(skill_routes()).merge(mcp_routes())
}

fn model_routes() -> Routes {
    Routes::new("models")
        .at("/models", get(models::list, "Lists the models."))
        .at("/models/{name}", get(models::show, "Shows a model."))
        .at("/features", get(models::features, "Returns the enabled features."))
        .at("/suggestions/config", get(assist::config, "Returns whether follow-up questions are suggested."))
        .at("/threads/{thread}/suggestions", post(assist::suggest, "Suggests follow-up questions."))
        .at("/input-polish", post(assist::polish, about("Rewords a text.").fails(&[404])))
}

fn assistant_routes() -> Routes {
    Routes::new("assistants")
        .at("/assistants/search", post(assistants::search, about("Finds assistants.").gives("[Assistant]")))
        .at("/assistants/count", post(assistants::count, "Counts assistants."))
        .at(
            "/assistants/{assistant}",
            get(assistants::show, "Shows an assistant.")
                .patch(assistants::fixed, about("Not supported: assistants are agents.").fails(&[404]))
                .delete(assistants::fixed, about("Not supported: assistants are agents.").fails(&[404])),
        )
        .at(
            "/assistants/{assistant}/versions",
            post(assistants::versions, "Lists the only version of an assistant."),
        )
        .at(
            "/assistants/{assistant}/latest",
            post(assistants::set_latest, "Confirms the only version of an assistant."),
        )
        .at("/assistants/{assistant}/graph", get(assistants::graph, "Shows an empty graph of an assistant."))
        .at(
            "/assistants/{assistant}/subgraphs",
            get(
                assistants::subgraphs,
                about("Shows the subgraphs of an assistant; there are none.").gives("object"),
            ),
        )
        .at(
            "/assistants/{assistant}/subgraphs/{namespace}",
            get(
                assistants::subgraph,
                about("Shows a subgraph of an assistant; there are none.").gives("object"),
            ),
        )
        .at(
            "/assistants/{assistant}/schemas",
            get(assistants::schemas, "Shows empty schemas of an assistant."),
        )
}

/// Returns the routes of skills. Each handler checks that the caller is an administrator.
fn skill_routes() -> Routes {
    Routes::new("skills")
        .at(
            "/skills/{name}",
            put(skills::switch, "Switches a skill on or off.").get(skills::show, "Shows a skill."),
        )
        .at("/skills/reload", post(skills::reload, "Reloads the skills."))
        .at(
            "/skills/custom/{name}",
            get(skills::show_custom, "Shows a skill with its text.")
                .put(skills::write_custom, about("Replaces a skill's text.").fails(&[409]))
                .delete(skills::remove_custom, about("Deletes a skill.").fails(&[409])),
        )
}

/// Returns the routes of MCP servers. Each handler checks that the caller is an administrator.
fn mcp_routes() -> Routes {
    Routes::new("MCP servers")
        .at(
            "/mcp/config",
            get(mcp::show, "Shows the MCP servers without secrets.")
                .put(mcp::replace, about("Replaces the MCP servers.").fails(&[409]))
                .patch(mcp::switch, about("Switches an MCP server on or off.").fails(&[404, 409])),
        )
        .at("/mcp/cache/reset", post(mcp::reset, "Reconnects all MCP servers."))
        .at("/mcp/servers", get(mcp::report, "Reports the state of each MCP server."))
        .at(
            "/mcp/test",
            post(mcp::test, about("Connects to MCP servers and lists their tools.").fails(&[404, 409])),
        )
}

/// Returns the route that lists the skills, with its full path.
pub(crate) fn skill_list_routes() -> Routes {
    Routes::new("skills").at("/api/skills", get(skills::list, "Lists the skills."))
}

/// Returns the skill routes of administrators, with full paths.
pub(crate) fn operator_routes() -> Routes {
    Routes::new("skills")
        .at(
            "/api/skills/install",
            post(skills::install, about("Installs a skill from a thread's files.").fails(&[403, 404, 409])),
        )
        .at("/api/skills/custom", get(skills::custom, "Lists the skills that can be changed."))
        .at("/api/skills/custom/{name}/history", get(skills::history, "Lists the changes of a skill."))
        .at(
            "/api/skills/custom/{name}/rollback",
            post(skills::rollback, about("Restores a skill to its state before a change.").fails(&[409])),
        )
}

/// Returns the routes of custom agents, which the operator can enable, with full paths.
pub(crate) fn agent_routes(gateway: &GatewayState) -> Routes {
    let owner = middleware::from_fn_with_state(gateway.clone(), admit::owner);
    let writing = Routes::new("agents")
        .at("/api/agents", post(agents::create, about("Creates an agent.").fails(&[409])))
        .at(
            "/api/agents/{name}",
            put(agents::update, "Changes an agent.")
                .delete(agents::remove, about("Deletes an agent.").gives_nothing(204)),
        )
        .admitted(RouteAccess::Known, owner);
    Routes::new("agents")
        .at("/api/agents", get(agents::list, "Lists the custom agents."))
        .at(
            "/api/agents/check",
            get(agents::check, about("Returns whether a name is available.").fails(&[409, 422])),
        )
        .at("/api/agents/{name}", get(agents::show, about("Shows an agent.").fails(&[422])))
        .merge(writing)
        .behind(middleware::from_fn_with_state(gateway.clone(), enabled))
}
