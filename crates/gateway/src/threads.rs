//! Threads: create, find, read and change. Routes of LangGraph's clients are served under `/api` and `/api/langgraph`.

pub(crate) mod artifacts;
pub(crate) mod branches;
mod cursor;
mod edits;
mod goal;
pub(crate) mod lifecycle;
mod messages;
pub(crate) mod owned;
pub(crate) mod search;
mod slash_commands;
mod spending;
pub(crate) mod state;
mod summary;
pub(crate) mod tasks;
pub mod thread;
pub(crate) mod uploads;

use crate::{
    GatewayState,
    openapi::{MethodRoutes, Routes, about, delete, get, post, put},
};
use axum::middleware;

/// A page of a run's messages.
const PAGE: &str = "{data: [Row], has_more: boolean}";

/// Returns the routes of threads.
pub(crate) fn routes() -> Routes {
    Routes::new("threads")
        .at("/threads", post(lifecycle::create, about("Creates a thread.").fails(&[409])))
        .at(
            "/threads/search",
            post(
                search::search,
                about("Finds the caller's threads; `select` limits the returned keys.").gives("[object]"),
            ),
        )
        .at("/threads/count", post(search::count, "Counts the caller's threads."))
        .at(
            "/threads/{thread}",
            get(lifecycle::show, "Shows a thread with its values.")
                .patch(lifecycle::patch, "Changes the metadata of a thread.")
                .delete(lifecycle::delete, about("Deletes a thread with its files and runs.").fails(&[409])),
        )
        .at("/threads/{thread}/copy", post(edits::copy, about("Copies a thread.").fails(&[409])))
        .at(
            "/threads/{thread}/branches",
            post(
                branches::branch,
                about("Creates a thread with the messages of another thread up to one message.")
                    .fails(&[409]),
            ),
        )
        .at(
            "/threads/{thread}/token-usage",
            get(spending::tokens, "Returns the spending of a thread's runs."),
        )
        .at(
            "/threads/{thread}/goal",
            get(goal::show, about("Shows the goal of a thread's runs.").gives("Goal"))
                .put(goal::set, about("Sets the goal of a thread's runs.").gives("Goal").fails(&[409]))
                .delete(
                    goal::clear,
                    about("Clears the goal of a thread's runs.").gives("Goal").fails(&[409]),
                ),
        )
        .at(
            "/threads/{thread}/compact",
            post(
                summary::compact,
                about("Summarises the older messages of a thread for the model.").fails(&[409, 502]),
            ),
        )
        .merge(state_routes())
        .merge(message_routes())
}

fn state_routes() -> Routes {
    Routes::new("threads")
        .at(
            "/threads/{thread}/slash-commands",
            post(
                slash_commands::run,
                about("Runs a slash command of chats on a thread, which may not exist yet.")
                    .fails(&[403, 409]),
            ),
        )
        .at(
            "/threads/{thread}/state",
            large(
                get(state::state, about("Shows the newest checkpoint of a thread.").gives("ThreadState"))
                    .post(
                        edits::update_state,
                        about("Changes values of a thread.").gives("ThreadState").fails(&[409]),
                    ),
            ),
        )
        .at(
            "/threads/{thread}/state/checkpoint",
            post(
                state::state_of_checkpoint,
                about("Shows the checkpoint named in the body.").gives("ThreadState"),
            ),
        )
        .at(
            "/threads/{thread}/state/{checkpoint}",
            get(state::state_at, about("Shows a checkpoint of a thread.").gives("ThreadState")),
        )
        .at(
            "/threads/{thread}/history",
            post(
                state::history,
                about("Lists the checkpoints of a thread, newest first.").gives("[ThreadState]"),
            ),
        )
}

fn message_routes() -> Routes {
    Routes::new("messages")
        .at(
            "/threads/{thread}/messages",
            get(messages::list, about("Lists the messages of a thread.").gives("[Row]").fails(&[422])),
        )
        .at(
            "/threads/{thread}/messages/page",
            get(
                messages::page,
                about("Lists a page of a thread's messages, newest first.")
                    .gives("{data: [Row], has_more: boolean, next_before_seq: integer|null}")
                    .fails(&[422]),
            ),
        )
        .at(
            "/threads/{thread}/runs/{run}/messages",
            get(messages::of_run, about("Lists the messages of a run.").gives(PAGE).fails(&[422])),
        )
        .at(
            "/threads/{thread}/runs/{run}/events",
            get(messages::events, about("Lists the events of a run.").gives("[Row]").fails(&[422])),
        )
        .at(
            "/runs/{run}/messages",
            get(
                messages::of_run,
                about("Lists the messages of a run by the run's id.").gives(PAGE).fails(&[422]),
            ),
        )
}

/// Returns the routes of files that the agent made or received.
pub(crate) fn artifact_routes(gateway: &GatewayState) -> Routes {
    Routes::new("files")
        .at(
            "/threads/{thread}/artifacts/{*path}",
            put(artifacts::put, about("Replaces a text file of a thread's outputs.").fails(&[409, 412]))
                .limit(artifacts::MAX_EDIT_BODY_BYTES)
                .get(
                    artifacts::get,
                    about("Fetches a file of a thread; it may be of any media type.")
                        .sends_file()
                        .fails(&[422]),
                ),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), owned::check))
}

/// Returns the routes of uploads, with full paths.
pub(crate) fn upload_routes(gateway: &GatewayState) -> Routes {
    Routes::new("files")
        .at(
            "/api/threads/{thread}/uploads",
            // The configuration limits the size of files.
            post(uploads::put, "Adds files to a thread's uploads.").without_limit(),
        )
        .at(
            "/api/threads/{thread}/uploads/list",
            get(uploads::list, about("Lists the uploads of a thread.").fails(&[422])),
        )
        .at(
            "/api/threads/{thread}/uploads/{name}",
            delete(uploads::remove, about("Deletes an upload.").fails(&[422])),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), owned::check))
        .merge(Routes::new("files").at(
            "/api/threads/{thread}/uploads/limits",
            get(uploads::limits, about("Returns the limits of uploads.").fails(&[422])),
        ))
}

/// Returns the route that lists the slash commands, with its full path.
pub(crate) fn command_routes() -> Routes {
    Routes::new("chat")
        .at("/api/commands", get(slash_commands::list, "Lists the slash commands, followed by the skills."))
}

/// Maximum size of a body with images, in bytes.
const MAX_LARGE_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Accepts bodies with images.
pub(crate) fn large(handlers: MethodRoutes) -> MethodRoutes {
    handlers.limit(MAX_LARGE_BODY_BYTES)
}
