//! Routes about a user's data: memory, profile, and identities on chat platforms.

pub(crate) mod links;
mod memory;
pub(crate) mod pairing;
mod profile;

use crate::{
    GatewayState, agent,
    openapi::{Routes, about, delete, get, patch, post},
};
use axum::middleware;

/// Error statuses for a memory document.
const REMEMBERED: &[u16] = &[409, 422];
/// Shape of the memory settings; there are further keys if memory is enabled.
const SETTINGS: &str = "{enabled: boolean, injection_enabled: boolean, manager_class: string}";

/// Returns the routes of a user's own data.
pub(crate) fn routes(gateway: &GatewayState) -> Routes {
    profile_routes(gateway).merge(memory_routes()).merge(link_routes())
}

fn profile_routes(gateway: &GatewayState) -> Routes {
    Routes::new("profile")
        .at(
            "/user-profile",
            get(profile::show, "Shows the caller's profile.")
                .put(profile::write, "Stores the caller's profile."),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), agent::enabled))
}

fn memory_routes() -> Routes {
    Routes::new("memory")
        .at(
            "/memory",
            get(memory::show, about("Shows the caller's memory.").gives("Memory").fails(&[422])).delete(
                memory::clear,
                about("Deletes the caller's memory.").gives("Memory").fails(REMEMBERED),
            ),
        )
        .at(
            "/memory/reload",
            post(
                memory::reload,
                about("Reloads and shows the caller's memory.").gives("Memory").fails(&[422]),
            ),
        )
        .at(
            "/memory/export",
            get(
                memory::export,
                about("Returns the caller's memory as one document.").gives("Memory").fails(&[422]),
            ),
        )
        .at(
            "/memory/import",
            post(memory::import, about("Replaces the caller's memory.").gives("Memory").fails(REMEMBERED))
                .limit(memory::MAX_IMPORT_BYTES),
        )
        .at("/memory/config", get(memory::config, about("Returns the settings of memory.").gives(SETTINGS)))
        .at(
            "/memory/status",
            get(
                memory::status,
                about("Returns the settings of memory and its content.")
                    .gives("{config: object, data: Memory}")
                    .fails(&[422]),
            ),
        )
        .at("/memory/facts", post(memory::add, about("Adds a fact.").gives("Memory").fails(REMEMBERED)))
        .at(
            "/memory/facts/{fact}",
            patch(memory::edit, about("Changes a fact.").gives("Memory").fails(REMEMBERED))
                .delete(memory::forget, about("Deletes a fact.").gives("Memory").fails(REMEMBERED)),
        )
}

fn link_routes() -> Routes {
    Routes::new("channels")
        .at("/channels/providers", get(links::providers, "Lists the bots whose chat users can be linked."))
        .at("/channels/connections", get(links::list, "Lists the chat users linked to the caller."))
        .at(
            "/channels/connections/{connection}",
            delete(links::part, about("Unlinks a chat user from the caller.").gives_nothing(204)),
        )
        .at(
            "/channels/{name}/connect",
            post(links::connect, about("Creates a code that links a chat user to the caller.").fails(&[409])),
        )
}
