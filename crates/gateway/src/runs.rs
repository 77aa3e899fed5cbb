//! Runs: begun, followed, stopped and judged, as LangGraph's clients use them.

mod approvals;
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
pub(crate) mod readers;
pub(crate) mod request;
mod stream;
mod temporary;
mod view;

use crate::{
    GatewayState,
    openapi::{RouteAbout, Routes, about, delete, get, post},
    threads::{branches, large, owned as own_threads},
};
use axum::middleware;

/// Statuses with which a run may be refused.
const RUN: &[u16] = &[404, 409];
/// Input with which a client continues a thread differently.
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
                        .post(control::create, about("Begins a run on a thread.").gives("Run").fails(RUN)),
                ),
            )
            .at(
                "/threads/{thread}/runs/stream",
                large(post(control::stream, about("Begins a run on a thread and streams it.").streams().fails(RUN))),
            )
            .at(
                "/threads/{thread}/runs/wait",
                large(post(
                    control::wait_for_end,
                    about("Begins a run on a thread and answers with the thread's values at its end.")
                        .gives("object")
                        .fails(RUN),
                )),
            )
            .at(
                "/threads/{thread}/runs/{run}",
                get(control::show, about("Shows a run.").gives("Run"))
                    .delete(control::delete, about("Forgets a run that has ended.").gives_nothing(204).fails(&[409])),
            )
            .at(
                "/threads/{thread}/runs/{run}/join",
                get(
                    control::join,
                    about("Waits for the end of a run and answers with the thread's values, or follows it as a stream.")
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
                    about("Stops a run: 202 at once, 204 when it is over.").gives_nothing(202).gives_nothing(204).fails(&[409, 422]),
                ),
            )
            .at("/threads/{thread}/runs/{run}/workspace-changes", get(changes::show, about("Tells which files a run changed.").gives("{available: boolean, reason: string | null, version: integer, summary: object, files: [object], limits: object}")))
            .at(
                "/threads/{thread}/runs/regenerate/prepare",
                post(
                    branches::regenerate,
                    about("Tells what to send to have the newest answer made once more.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/edit-regenerate/prepare",
                post(
                    branches::edit,
                    about("Tells what to send to have the newest question put otherwise.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback",
                get(feedback::list, "Lists the caller's judgements on a run.")
                    .put(feedback::put, "Keeps the caller's judgement on a run.")
                    .post(feedback::put, "Keeps the caller's judgement on a run, as PUT does.")
                    .delete(feedback::delete, "Deletes the caller's judgement on a run."),
            )
            .at(
                "/runs/{run}/feedback",
                get(
                    feedback::list,
                    "Lists the caller's judgements on a run by its id alone.",
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/stats",
                get(feedback::stats, "Counts the caller's judgements on a run."),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/{feedback}",
                delete(feedback::delete_one, "Deletes one judgement of the caller's."),
            )
}

/// Returns the routes of runs whose path names no thread.
fn stateless_routes() -> Routes {
    Routes::new("runs")
        .at(
            "/runs",
            large(post(
                control::create,
                about("Begins a run on a thread of its own.").gives("Run").fails(RUN),
            )),
        )
        .at(
            "/runs/stream",
            large(post(
                control::stream,
                about("Begins a run on a thread of its own and streams it.").streams().fails(RUN),
            )),
        )
        .at(
            "/runs/wait",
            large(post(
                control::wait_for_end,
                about("Begins a run on a thread of its own and answers with the values at its end.")
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
                about("Lists what a thread's runs wait to have approved, oldest first.").fails(&[422]),
            ),
        )
        .at(
            "/threads/{thread}/approvals/{approval}",
            post(
                approvals::decide,
                about("Approves or denies a call that waits. The first decision stays.")
                    .fails(&[409, 410, 422]),
            ),
        )
        .behind(middleware::from_fn_with_state(gateway.clone(), own_threads::check))
}

fn follows() -> RouteAbout {
    about("Follows a run as a stream, from `Last-Event-ID` on.")
        .streams()
        .gives_nothing(204)
        .reads("Last-Event-ID", "The id behind which the stream goes on.")
        .fails(&[409, 422])
}
