//! Routes for administrators, and the list of channels.

mod audit;
mod channels;
mod storage;
pub(crate) mod usage;
mod users;

pub use audit::AUDIT_ENTRIES;
pub use storage::{LISTED_THREADS, MAX_LISTED_THREADS, log_pruned};
pub use usage::DAYS;

use crate::{
    GatewayState, agent, auth,
    auth::admit,
    openapi::{RouteAccess, Routes, about, delete, get, post},
    people::pairing,
    threads::tasks,
};
use axum::middleware;

/// Returns the routes for administrators, with full paths.
pub(crate) fn routes(gateway: &GatewayState) -> Routes {
    Routes::new("administration")
            .at("/api/audit", get(audit::list, about("Lists the agents' actions and the decisions on them.").gives("{deeds: [object]}")))
            .at(
                "/api/usage",
                get(
                    usage::list,
                    about("Lists model spending by user, group, bot and model.")
                        .gives("{days: integer, people: [object], rooms: [object], accounts: [object], models: [object], budgets: [object]}"),
                ),
            )
            .at("/api/storage", get(storage::show, about("Lists the stored data of each bot.").gives("{retention: object, accounts: [object]}")))
            .at(
                "/api/storage/prune",
                post(
                    storage::prune,
                    about("Deletes data that exceeds the `retention` limits.")
                        .gives("{threads: integer, threads_without_files: integer, bytes: integer, audit_rows: integer}"),
                ),
            )
            .at("/api/users", get(users::list, about("Lists all users with stored data.").gives("{users: [object]}")))
            .at(
                "/api/users/{user}",
                delete(
                    users::forget,
                    about("Deletes all data of a user.")
                        .gives("{threads: integer, room_messages: integer, room_facts: integer, rooms: any, left: any}")
                        .fails(&[409]),
                ),
            )
            .at(
                "/api/users/{user}/export",
                get(users::export, about("Returns all data of a user as an archive.").sends(200, "application/zip")),
            )
            .at("/api/threads", get(storage::threads, about("Lists the threads of a bot, or of all bots.").gives("{threads: [object]}").fails(&[422])))
            .at(
                "/api/storage/threads/{thread}",
                delete(storage::delete, about("Deletes a thread of any user.").fails(&[409, 422])),
            )
            .at(
                "/api/threads/{thread}/tasks",
                get(
                    tasks::list,
                    about("Lists the steps of a thread's sub-agents.")
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
        .at("/api/channels/{name}/restart", post(channels::restart, about("Reconnects a bot.").fails(&[422])))
        .at("/api/channels/{name}/people", get(pairing::list, "Lists the users who paired with a code."))
        .at(
            "/api/channels/{name}/people/{person}",
            delete(pairing::forget, "Removes a user who paired with a code."),
        )
}

/// Returns the routes that list the channels, with full paths.
pub(crate) fn channel_list_routes() -> Routes {
    let channels = || {
        let state = "{service_running: boolean, channels: object}";
        get(channels::channels, about("Lists the channels and their state.").gives(state))
    };
    Routes::new("channels").at("/api/channels", channels()).at("/api/channels/", channels())
}
