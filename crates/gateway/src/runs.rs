//! Runs: create, follow, stop and rate them, as LangGraph's clients do.

pub(crate) mod approvals;
pub(crate) mod body;
pub(crate) mod changes;
pub(crate) mod content;
pub(crate) mod control;
mod feedback;
pub(crate) mod follow_query;
pub(crate) mod input;
mod list;
pub(crate) mod options;
pub(crate) mod owned;
pub(crate) mod request;
pub(crate) mod stream;
mod temporary;
mod view;

use crate::{
    GatewayState,
    openapi::{RouteAbout, Routes, about, delete, get, post},
    threads::{branches, large, owned as own_threads},
};
use axum::middleware;

/// Error statuses of a refused run.
const RUN: &[u16] = &[404, 409];
/// Shape of the input that continues a thread from an earlier position.
const PREPARED: &str = "{input: object, checkpoint: object, metadata: object, target_run_id?: string}";

/// Returns the routes of runs.
pub(crate) fn routes(gateway: &GatewayState) -> Routes {
    thread_routes().merge(stateless_routes()).merge(approval_routes(gateway))
}

/// Returns the routes of runs on a thread in the path.
fn thread_routes() -> Routes {
    Routes::new("runs")
            .at(
                "/threads/{thread}/runs",
                large(
                    get(list::list, about("Lists the runs of a thread, newest first.").gives("[Run]"))
                        .post(control::create, about("Starts a run on a thread.").gives("Run").fails(RUN)),
                ),
            )
            .at(
                "/threads/{thread}/runs/stream",
                large(post(control::stream, about("Starts a run on a thread and streams it.").streams().fails(RUN))),
            )
            .at(
                "/threads/{thread}/runs/wait",
                large(post(
                    control::wait_for_end,
                    about("Starts a run on a thread and returns the thread's values at its end.")
                        .gives("object")
                        .fails(RUN),
                )),
            )
            .at(
                "/threads/{thread}/runs/{run}",
                get(control::show, about("Shows a run.").gives("Run"))
                    .delete(control::delete, about("Deletes a run that has ended.").gives_nothing(204).fails(&[409])),
            )
            .at(
                "/threads/{thread}/runs/{run}/join",
                get(
                    control::join,
                    about("Waits for the end of a run and returns the thread's values, or streams it.")
                        .gives("object")
                        .streams(),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/stream",
                get(control::follow, follows()).post(control::follow, follows()),
            )
            .at(
                "/threads/{thread}/runs/{run}/cancel",
                post(
                    control::cancel,
                    about("Stops a run: 202 at once, 204 after it has ended.").gives_nothing(202).gives_nothing(204).fails(&[409, 422]),
                ),
            )
            .at("/threads/{thread}/runs/{run}/workspace-changes", get(changes::show, about("Lists the files that a run changed.").gives("{available: boolean, reason: string | null, version: integer, summary: object, files: [object], limits: object}")))
            .at(
                "/threads/{thread}/runs/regenerate/prepare",
                post(
                    branches::regenerate,
                    about("Returns the request that regenerates the newest answer.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/edit-regenerate/prepare",
                post(
                    branches::edit,
                    about("Returns the request that replaces the newest question and answers it.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback",
                get(feedback::list, "Lists the caller's feedback on a run.")
                    .put(feedback::put, "Stores the caller's feedback on a run.")
                    .post(feedback::put, "Stores the caller's feedback on a run, like PUT.")
                    .delete(feedback::delete, "Deletes the caller's feedback on a run."),
            )
            .at(
                "/runs/{run}/feedback",
                get(
                    feedback::list,
                    "Lists the caller's feedback on a run by the run's id.",
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/stats",
                get(feedback::stats, "Counts the caller's feedback on a run."),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/{feedback}",
                delete(feedback::delete_one, "Deletes one of the caller's feedback entries."),
            )
}

/// Returns the routes that begin runs without a thread in the path.
fn stateless_routes() -> Routes {
    Routes::new("runs")
        .at(
            "/runs",
            large(post(control::create, about("Starts a run on a new thread.").gives("Run").fails(RUN))),
        )
        .at(
            "/runs/stream",
            large(post(
                control::stream,
                about("Starts a run on a new thread and streams it.").streams().fails(RUN),
            )),
        )
        .at(
            "/runs/wait",
            large(post(
                control::wait_for_end,
                about("Starts a run on a new thread and returns the thread's values at its end.")
                    .gives("object")
                    .fails(RUN),
            )),
        )
}

fn approval_routes(gateway: &GatewayState) -> Routes {
    Routes::new("runs")
        .at(
            "/threads/{thread}/approvals",
            get(
                approvals::list,
                about("Lists the pending approvals of a thread's runs, oldest first.").fails(&[422]),
            ),
        )
        .at(
            "/threads/{thread}/approvals/{approval}",
            post(
                approvals::decide,
                about("Approves or denies a pending call. The first decision counts.")
                    .fails(&[409, 410, 422]),
            ),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), own_threads::check))
}

fn follows() -> RouteAbout {
    about("Streams a run, from `Last-Event-ID` on.")
        .streams()
        .gives_nothing(204)
        .reads("Last-Event-ID", "The id of the last event that the client has.")
        .fails(&[409, 422])
}
