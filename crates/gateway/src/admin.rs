//! Routes of administrators, and the list of channels.

pub mod audit;
mod channels;
pub mod storage;
pub mod usage;
mod users;

use crate::{
    GatewayState, agent, auth,
    auth::admit,
    openapi::{RouteAccess, Routes, about, delete, get, post},
    people::pairing,
    threads::tasks,
};
use axum::middleware;

/// Returns the routes of administrators, with the whole address.
pub(crate) fn routes(gateway: &GatewayState) -> Routes {
    Routes::new("administration")
            .at("/api/audit", get(audit::list, about("Lists the agents' actions and the decisions on them.").gives("{deeds: [object]}")))
            .at(
                "/api/usage",
                get(
                    usage::list,
                    about("Lists what everybody spent on models.")
                        .gives("{days: integer, people: [object], rooms: [object], accounts: [object], models: [object], budgets: [object]}"),
                ),
            )
            .at("/api/storage", get(storage::show, about("Lists the stored data of each account.").gives("{retention: object, accounts: [object]}")))
            .at(
                "/api/storage/prune",
                post(
                    storage::prune,
                    about("Deletes the data beyond the limits of `retention`.")
                        .gives("{threads: integer, threads_without_files: integer, bytes: integer, audit_rows: integer}"),
                ),
            )
            .at("/api/users", get(users::list, about("Lists everybody of whom something is stored.").gives("{users: [object]}")))
            .at(
                "/api/users/{user}",
                delete(
                    users::forget,
                    about("Deletes everything of one person.")
                        .gives("{threads: integer, room_messages: integer, room_facts: integer, rooms: any, left: any}")
                        .fails(&[409]),
                ),
            )
            .at(
                "/api/users/{user}/export",
                get(users::export, about("Returns everything of one person as an archive.").sends(200, "application/zip")),
            )
            .at("/api/threads", get(storage::threads, about("Lists the threads of an account, or of all.").gives("{threads: [object]}").fails(&[422])))
            .at(
                "/api/storage/threads/{thread}",
                delete(storage::delete, about("Deletes anybody's thread.").fails(&[409, 422])),
            )
            .at(
                "/api/threads/{thread}/tasks",
                get(
                    tasks::list,
                    about("Lists what the sub-agents of a thread did.")
                        .gives("{events: [object], next: integer|null}")
                        .fails(&[422]),
                ),
            )
            .merge(auth::operator_routes())
            .merge(agent::operator_routes())
            .merge(channel_routes())
            .admitted(RouteAccess::Admin, middleware::from_fn_with_state(gateway.clone(), admit::operator))
}

fn channel_routes() -> Routes {
    Routes::new("channels")
        .at(
            "/api/channels/{name}/restart",
            post(channels::restart, about("Reconnects an account.").fails(&[422])),
        )
        .at("/api/channels/{name}/people", get(pairing::list, "Lists the people admitted by a code."))
        .at(
            "/api/channels/{name}/people/{person}",
            delete(pairing::forget, "Removes a person admitted by a code."),
        )
}

/// Returns the routes that list the channels, with the whole address.
pub(crate) fn channel_list_routes() -> Routes {
    let channels = || {
        let state = "{service_running: boolean, channels: object}";
        get(channels::channels, about("Lists the channels and their state.").gives(state))
    };
    Routes::new("channels").at("/api/channels", channels()).at("/api/channels/", channels())
}
