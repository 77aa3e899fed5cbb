//! Routes of LangGraph's clients about threads and their runs. They answer below `/api` and below `/api/langgraph`.

use super::{
    GatewayState, approvals, branches, changes, chat, client_runs, feedback, health, messages,
    openapi::{MethodRoutes, Routes, delete, get, post, says},
    owned, run_list, slash_commands, thread_edits, thread_facts, thread_state, threads,
};
use axum::middleware;

/// Returns LangGraph's routes about the server itself.
pub(super) fn server_routes() -> Routes {
    Routes::new("daemon").at("/ok", get(health::ok, says("Reports that the server answers."))).at(
        "/info",
        get(health::info, says("Returns the version and the optional parts of LangGraph's API.")),
    )
}

impl GatewayState {
    /// Returns the routes with their descriptions.
    pub(super) fn threads(&self) -> Routes {
        Self::thread_routes()
            .merge(Self::state_routes())
            .merge(Self::run_routes())
            .merge(Self::stateless_run_routes())
            .merge(Self::message_routes())
            .merge(server_routes())
            .merge(self.approval_routes())
    }

    fn thread_routes() -> Routes {
        Routes::new("threads")
            .at("/threads", post(threads::create, says("Makes a thread.").fails(&[409])))
            .at(
                "/threads/search",
                post(
                    threads::search,
                    says("Finds the caller's threads; `select` leaves some of their keys.").gives("[object]"),
                ),
            )
            .at("/threads/count", post(threads::count, says("Counts the caller's threads.")))
            .at(
                "/threads/{thread}",
                get(threads::show, says("Shows a thread with its values."))
                    .patch(threads::patch, says("Changes the notes of a thread."))
                    .delete(threads::delete, says("Deletes a thread with its files and runs.").fails(&[409])),
            )
            .at("/threads/{thread}/copy", post(thread_edits::copy, says("Copies a thread.").fails(&[409])))
            .at(
                "/threads/{thread}/branches",
                post(
                    branches::branch,
                    says("Makes a thread of another one's messages up to one of them.").fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/token-usage",
                get(thread_facts::tokens, says("Tells what a thread's runs spent.")),
            )
            .at(
                "/threads/{thread}/goal",
                get(thread_facts::show_goal, says("Shows the goal of a thread's runs.").gives("Goal"))
                    .put(
                        thread_facts::set_goal,
                        says("Sets the goal of a thread's runs.").gives("Goal").fails(&[409]),
                    )
                    .delete(
                        thread_facts::clear_goal,
                        says("Clears the goal of a thread's runs.").gives("Goal").fails(&[409]),
                    ),
            )
            .at(
                "/threads/{thread}/compact",
                post(
                    thread_facts::compact,
                    says("Summarises the older messages of a thread for the model.").fails(&[409, 502]),
                ),
            )
    }

    fn state_routes() -> Routes {
        Routes::new("threads")
            .at(
                "/threads/{thread}/slash-commands",
                post(
                    slash_commands::run,
                    says("Runs a slash command of chats on a thread, which may not exist yet.")
                        .fails(&[403, 409]),
                ),
            )
            .at(
                "/threads/{thread}/state",
                large(
                    get(
                        thread_state::state,
                        says("Shows the newest checkpoint of a thread.").gives("ThreadState"),
                    )
                    .post(
                        thread_edits::update_state,
                        says("Writes values of a thread.").gives("ThreadState").fails(&[409]),
                    ),
                ),
            )
            .at(
                "/threads/{thread}/state/checkpoint",
                post(
                    thread_state::state_of_checkpoint,
                    says("Shows the checkpoint that the body names.").gives("ThreadState"),
                ),
            )
            .at(
                "/threads/{thread}/state/{checkpoint}",
                get(thread_state::state_at, says("Shows a checkpoint of a thread.").gives("ThreadState")),
            )
            .at(
                "/threads/{thread}/history",
                post(
                    thread_state::history,
                    says("Lists the checkpoints of a thread, newest first.").gives("[ThreadState]"),
                ),
            )
    }

    fn run_routes() -> Routes {
        Routes::new("runs")
            .at(
                "/threads/{thread}/runs",
                large(
                    get(run_list::list, says("Lists the runs of a thread, newest first.").gives("[Run]"))
                        .post(client_runs::create, says("Begins a run on a thread.").gives("Run").fails(RUN)),
                ),
            )
            .at(
                "/threads/{thread}/runs/stream",
                large(post(client_runs::stream, says("Begins a run on a thread and streams it.").streams().fails(RUN))),
            )
            .at(
                "/threads/{thread}/runs/wait",
                large(post(
                    client_runs::wait_for_end,
                    says("Begins a run on a thread and answers with the thread's values at its end.")
                        .gives("object")
                        .fails(RUN),
                )),
            )
            .at(
                "/threads/{thread}/runs/{run}",
                get(client_runs::show, says("Shows a run.").gives("Run"))
                    .delete(client_runs::delete, says("Forgets a run that has ended.").gives_nothing(204).fails(&[409])),
            )
            .at(
                "/threads/{thread}/runs/{run}/join",
                get(
                    client_runs::join,
                    says("Waits for the end of a run and answers with the thread's values, or follows it as a stream.")
                        .gives("object")
                        .streams(),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/stream",
                get(client_runs::follow, follows()).post(client_runs::follow, follows()),
            )
            .at(
                "/threads/{thread}/runs/{run}/cancel",
                post(
                    client_runs::cancel,
                    says("Stops a run: 202 at once, 204 when it is over.").gives_nothing(202).gives_nothing(204).fails(&[409, 422]),
                ),
            )
            .at("/threads/{thread}/runs/{run}/workspace-changes", get(changes::show, says("Tells which files a run changed.").gives("{available: boolean, reason: string | null, version: integer, summary: object, files: [object], limits: object}")))
            .at(
                "/threads/{thread}/runs/regenerate/prepare",
                post(
                    branches::regenerate,
                    says("Tells what to send to have the newest answer made once more.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/edit-regenerate/prepare",
                post(
                    branches::edit,
                    says("Tells what to send to have the newest question put otherwise.").gives(PREPARED).fails(&[409]),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback",
                get(feedback::list, says("Lists the caller's judgements on a run."))
                    .put(feedback::put, says("Keeps the caller's judgement on a run."))
                    .post(feedback::put, says("Keeps the caller's judgement on a run, as PUT does."))
                    .delete(feedback::delete, says("Deletes the caller's judgement on a run.")),
            )
            .at(
                "/runs/{run}/feedback",
                get(
                    feedback::list,
                    says("Lists the caller's judgements on a run by its id alone."),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/stats",
                get(feedback::stats, says("Counts the caller's judgements on a run.")),
            )
            .at(
                "/threads/{thread}/runs/{run}/feedback/{feedback}",
                delete(feedback::delete_one, says("Deletes one judgement of the caller's.")),
            )
    }

    fn approval_routes(&self) -> Routes {
        Routes::new("runs")
            .at(
                "/threads/{thread}/approvals",
                get(
                    approvals::list,
                    says("Lists what a thread's runs wait to have approved, oldest first.").fails(&[422]),
                ),
            )
            .at(
                "/threads/{thread}/approvals/{approval}",
                post(
                    approvals::decide,
                    says("Approves or denies a call that waits. The first decision stays.")
                        .fails(&[409, 410, 422]),
                ),
            )
            .behind(middleware::from_fn_with_state(self.clone(), owned::check))
    }

    fn stateless_run_routes() -> Routes {
        Routes::new("runs")
            .at(
                "/runs",
                large(post(
                    client_runs::create,
                    says("Begins a run on a thread of its own.").gives("Run").fails(RUN),
                )),
            )
            .at(
                "/runs/stream",
                large(post(
                    client_runs::stream,
                    says("Begins a run on a thread of its own and streams it.").streams().fails(RUN),
                )),
            )
            .at(
                "/runs/wait",
                large(post(
                    client_runs::wait_for_end,
                    says("Begins a run on a thread of its own and answers with the values at its end.")
                        .gives("object")
                        .fails(RUN),
                )),
            )
    }

    fn message_routes() -> Routes {
        Routes::new("messages")
            .at(
                "/threads/{thread}/messages",
                get(messages::list, says("Lists the messages of a thread.").gives("[Row]").fails(&[422])),
            )
            .at(
                "/threads/{thread}/messages/page",
                get(
                    messages::page,
                    says("Lists a page of a thread's messages, from the newest back.")
                        .gives("{data: [Row], has_more: boolean, next_before_seq: integer|null}")
                        .fails(&[422]),
                ),
            )
            .at(
                "/threads/{thread}/runs/{run}/messages",
                get(messages::of_run, says("Lists the messages of a run.").gives(PAGE).fails(&[422])),
            )
            .at(
                "/threads/{thread}/runs/{run}/events",
                get(messages::events, says("Lists the events of a run.").gives("[Row]").fails(&[422])),
            )
            .at(
                "/runs/{run}/messages",
                get(
                    messages::of_run,
                    says("Lists the messages of a run by its id alone.").gives(PAGE).fails(&[422]),
                ),
            )
    }
}

/// Statuses with which a run may be refused.
const RUN: &[u16] = &[404, 409];
/// Input with which a client continues a thread differently.
const PREPARED: &str = "{input: object, checkpoint: object, metadata: object, target_run_id?: string}";
/// A page of a run's messages.
const PAGE: &str = "{data: [Row], has_more: boolean}";

fn follows() -> super::openapi::RouteAbout {
    says("Follows a run as a stream, from `Last-Event-ID` on.")
        .streams()
        .gives_nothing(204)
        .reads("Last-Event-ID", "The id behind which the stream goes on.")
        .fails(&[409, 422])
}

/// Takes bodies with images in them.
fn large(handlers: MethodRoutes) -> MethodRoutes {
    handlers.limit(chat::MAX_BODY_BYTES)
}
