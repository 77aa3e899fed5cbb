//! Data of a user: memory, profile, and identities on chat platforms.

pub(crate) mod links;
mod memory;
pub(crate) mod pairing;
mod profile;

use crate::{
    GatewayState, agent,
    openapi::{Routes, about, delete, get, patch, post},
};
use axum::middleware;

/// Statuses with which a memory document may be refused.
const REMEMBERED: &[u16] = &[409, 422];
/// How memory is set up; further keys come where it is on.
const SETTINGS: &str = "{enabled: boolean, injection_enabled: boolean, manager_class: string}";

/// Returns the routes of a user's own data.
pub(crate) fn routes(gateway: &GatewayState) -> Routes {
    profile_routes(gateway).merge(memory_routes()).merge(link_routes())
}

fn profile_routes(gateway: &GatewayState) -> Routes {
    Routes::new("profile")
        .at(
            "/user-profile",
            get(profile::show, "Shows what the caller wrote of themselves.")
                .put(profile::write, "Keeps what the caller writes of themselves."),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), agent::enabled))
}

fn memory_routes() -> Routes {
    Routes::new("memory")
        .at(
            "/memory",
            get(memory::show, about("Shows what is remembered.").gives("Memory").fails(&[422])).delete(
                memory::clear,
                about("Forgets everything that is remembered.").gives("Memory").fails(REMEMBERED),
            ),
        )
        .at(
            "/memory/reload",
            post(memory::reload, about("Shows what is remembered, read anew.").gives("Memory").fails(&[422])),
        )
        .at(
            "/memory/export",
            get(
                memory::export,
                about("Returns what is remembered as one document.").gives("Memory").fails(&[422]),
            ),
        )
        .at(
            "/memory/import",
            post(memory::import, about("Replaces what is remembered.").gives("Memory").fails(REMEMBERED))
                .limit(memory::MAX_IMPORT_BYTES),
        )
        .at("/memory/config", get(memory::config, about("Tells how memory is set up.").gives(SETTINGS)))
        .at(
            "/memory/status",
            get(
                memory::status,
                about("Tells how memory is set up, and what is remembered.")
                    .gives("{config: object, data: Memory}")
                    .fails(&[422]),
            ),
        )
        .at("/memory/facts", post(memory::add, about("Remembers a fact.").gives("Memory").fails(REMEMBERED)))
        .at(
            "/memory/facts/{fact}",
            patch(memory::edit, about("Changes a fact.").gives("Memory").fails(REMEMBERED))
                .delete(memory::forget, about("Forgets a fact.").gives("Memory").fails(REMEMBERED)),
        )
}

fn link_routes() -> Routes {
    Routes::new("channels")
        .at(
            "/channels/providers",
            get(links::providers, "Lists the accounts whose people can be linked with users."),
        )
        .at("/channels/connections", get(links::list, "Lists the people of chats who are the caller."))
        .at(
            "/channels/connections/{connection}",
            delete(links::part, about("Parts a person of a chat from the caller.").gives_nothing(204)),
        )
        .at(
            "/channels/{name}/connect",
            post(links::connect, about("Makes a code that links a person of a chat.").fails(&[409])),
        )
}
