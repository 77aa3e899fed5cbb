//! LangGraph's protocol of event streams (version 2), which `threads.stream` of its SDKs uses: commands on a thread, and
//! the stream of the thread's events.

mod command;
mod commands;
mod events;
mod input;

use crate::{
    openapi::{Routes, about, post},
    threads::large,
};

/// Shape of the answer to a command.
const ANSWER: &str =
    "{type: string, id: integer|null, result?: object, meta?: object, error?: string, message?: string}";

/// Returns the routes of the protocol.
pub(crate) fn routes() -> Routes {
    Routes::new("runs")
        .at(
            "/threads/{thread}/commands",
            large(post(
                commands::answer,
                about(
                    "Carries out a command of LangGraph's protocol. A command that fails is answered with 200 as well.",
                )
                .gives(ANSWER),
            )),
        )
        .at(
            "/threads/{thread}/stream/events",
            post(
                events::stream,
                about("Streams the events of a thread in LangGraph's protocol, without an end.").streams(),
            ),
        )
}
