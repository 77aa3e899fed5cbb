//! Scheduled tasks of the caller.

mod answer;
mod body;
mod tasks;

use crate::openapi::{Routes, about, get, post};

/// Returns the routes of scheduled tasks.
pub(crate) fn routes() -> Routes {
    Routes::new("scheduled tasks")
        .at(
            "/scheduled-tasks",
            get(tasks::list, "Lists the caller's scheduled tasks, the newest first.")
                .post(tasks::create, about("Creates a scheduled task.").fails(&[404, 409])),
        )
        .at(
            "/scheduled-tasks/{task}",
            get(tasks::show, "Shows a scheduled task.")
                .patch(tasks::edit, about("Changes a scheduled task.").fails(&[409]))
                .delete(tasks::delete, "Deletes a scheduled task. Its runs and threads are kept."),
        )
        .at(
            "/scheduled-tasks/{task}/pause",
            post(tasks::pause, about("Pauses a scheduled task.").fails(&[409])),
        )
        .at(
            "/scheduled-tasks/{task}/resume",
            post(
                tasks::resume,
                about("Resumes a scheduled task with its next time from now on.").fails(&[409]),
            ),
        )
        .at(
            "/scheduled-tasks/{task}/trigger",
            post(tasks::trigger, about("Starts a scheduled task now.").fails(&[409, 502])),
        )
        .at(
            "/scheduled-tasks/{task}/runs",
            get(tasks::runs, "Lists the runs of a scheduled task, the newest first."),
        )
        .at(
            "/threads/{thread}/scheduled-tasks",
            get(tasks::of_thread, "Lists the caller's scheduled tasks that use a thread."),
        )
}
