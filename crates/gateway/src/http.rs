//! Code that all routes share: bodies, queries, errors, limits and connections. Also contains the routes about the
//! server itself.

mod answers;
pub(crate) mod body_limit;
pub(crate) mod cors;
pub(crate) mod errors;
pub(crate) mod failures;
pub(crate) mod file;
pub(crate) mod guests;
pub(crate) mod health;
pub(crate) mod ignored;
pub(crate) mod json;
pub(crate) mod language;
pub(crate) mod paced;
mod query;
pub(crate) mod serve;
pub(crate) mod unsupported;
pub(crate) mod urlencoded;
mod webhook;
pub(crate) mod wrong_value;

pub(crate) use {
    answers::{Confirmation, Created, NoticeAnswer, Scrubbed},
    errors::ApiError,
    json::{Form, Json},
    query::Query,
};

use crate::openapi::{Routes, about, get, post};
use unsupported::Part;

/// Fields of the readiness report.
const READY: &str = "{ready: boolean, store: boolean, inbox_has_room: boolean, full: [string], model: boolean, draining: boolean, away: [string], channels: object}";

/// Returns LangGraph's routes about the server itself.
pub(crate) fn server_routes() -> Routes {
    Routes::new("daemon")
        .at("/ok", get(health::ok, "Reports that the server answers."))
        .at("/info", get(health::info, "Returns the version and the optional parts of LangGraph's API."))
}

/// Returns the routes for health probes, with full paths.
pub(crate) fn probe_routes() -> Routes {
    Routes::new("daemon").at("/health", get(health::health, "Reports that the process is alive.")).at(
        "/ready",
        get(health::ready, about("Reports whether the daemon can work.").gives(READY).gives_with(503, READY)),
    )
}

/// Returns the routes of requests that prove themselves by a secret or a signature. They may use any host name of this
/// machine.
pub(crate) fn proved_routes() -> Routes {
    Routes::new("daemon")
        .at(
            "/api/webhooks/{platform}/{account}",
            post(
                webhook::take,
                about("Receives a platform's events.").sends(200, "*/*").fails(&[400, 401, 408, 413, 429]),
            ),
        )
        .at(
            "/files/{token}",
            get(
                file::linked,
                about("Fetches a file by a signed link.").sends_file().sends(404, "text/plain"),
            ),
        )
}

/// Returns routes for unsupported parts, which answer with the reason.
pub(crate) fn unsupported_routes() -> Routes {
    Routes::new("")
        .missing("/integrations/lark/{*rest}", Part::Lark)
        .missing("/webhooks/github", Part::GithubEvents)
        .missing("/threads/{thread}/mcp-tasks", Part::McpTasks)
        .missing("/threads/{thread}/mcp-tasks/{*rest}", Part::McpTasks)
        .missing("/threads/{thread}/browser/{*rest}", Part::Browser)
        .missing("/threads/{thread}/runs/crons", Part::Crons)
        .missing("/runs/crons", Part::Crons)
        .missing("/runs/crons/{*rest}", Part::Crons)
        .missing("/console/{*rest}", Part::Console)
        .missing("/store/{*rest}", Part::Store)
        .missing("/channels/{name}/runtime-config", Part::RuntimeConfig)
        .missing("/assistants", Part::OwnAssistants)
        .missing("/runs/batch", Part::Batches)
        .missing("/runs/cancel", Part::Batches)
        .missing("/threads/prune", Part::Prune)
        .missing("/threads/{thread}/stream", Part::ThreadStreams)
}
