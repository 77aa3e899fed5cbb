//! Token scopes required by each request. A token's scopes are read only from the stored token.
//!
//! A token can be used only for requests listed here: a new route is closed to tokens until it is added.

use crate::runs::follow_query::FollowQuery;
use axum::http::Method;

/// Scopes or caller that a request requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeNeed {
    /// These scopes; none if the response contains nothing about any user.
    Scopes(&'static [&'static str]),
    /// A signed-in person: no token is sufficient.
    Person,
}

/// Returns the requirement of a request.
pub(super) fn needed(method: &Method, path: &str, query: Option<&str>) -> ScopeNeed {
    let reads = matches!(*method, Method::GET | Method::HEAD) || path == "/api/assistants/search";
    // LangGraph's clients use their own prefix for the same routes.
    let path =
        path.strip_prefix("/api/langgraph/").map_or_else(|| path.to_owned(), |rest| format!("/api/{rest}"));
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        ["api", "models" | "commands" | "features", ..]
        | ["api", "v1", "auth", "me"]
        | ["api", "skills"]
        | ["api", "skills", _]
        | ["api", "assistants", _, ..]
            if reads =>
        {
            ScopeNeed::Scopes(&[])
        }
        ["api", "runs", rest @ ..] | ["api", "threads", _, "runs", rest @ ..] => {
            ScopeNeed::Scopes(run(method, rest, query))
        }
        // A decision determines how a run continues.
        ["api", "threads", _, "approvals", ..] => {
            ScopeNeed::Scopes(if reads { &["runs:read"] } else { &["runs:create"] })
        }
        // A command starts a run, decides how one continues, or reads the thread's state.
        ["api", "threads", _, "commands"] => ScopeNeed::Scopes(&["runs:create", "threads:read"]),
        ["api", "threads", _, "stream", "events"] => ScopeNeed::Scopes(&["runs:read"]),
        // Commands change a person's memory, secrets and agents.
        ["api", "threads", _, "slash-commands"] => ScopeNeed::Person,
        ["api", "scheduled-tasks", ..] if reads => ScopeNeed::Scopes(&["threads:read"]),
        // A task runs the agent.
        ["api", "scheduled-tasks", ..] => ScopeNeed::Scopes(&["threads:write", "runs:create"]),
        ["api", "threads", rest @ ..] => ScopeNeed::Scopes(thread(method, rest)),
        // All other requests require a person. Pressing a button, for example, decides on a person's behalf.
        _ => ScopeNeed::Person,
    }
}

fn run(method: &Method, rest: &[&str], query: Option<&str>) -> &'static [&'static str] {
    let follows = matches!(rest, [_, "stream" | "join"]);
    let stops = || match FollowQuery::read(query) {
        Ok(asked) => asked.stops(),
        // The effect of an unreadable query is unknown.
        Err(_) => true,
    };
    match *method {
        // Joins an existing run, and may stop it as well.
        _ if follows && stops() => &["runs:read", "runs:cancel"],
        Method::GET | Method::HEAD => &["runs:read"],
        // Feedback is a note on the thread.
        _ if matches!(rest, [_, "feedback", ..]) => &["threads:write"],
        Method::DELETE => &["runs:cancel"],
        _ if rest.last() == Some(&"cancel") => &["runs:cancel"],
        Method::POST if follows => &["runs:read"],
        _ => &["runs:create"],
    }
}

fn thread(method: &Method, rest: &[&str]) -> &'static [&'static str] {
    match (method.as_str(), rest) {
        ("GET" | "HEAD", _)
        | ("POST", ["search" | "count"] | [_, "history"] | [_, "state", "checkpoint"]) => &["threads:read"],
        ("DELETE", _) => &["threads:delete"],
        _ => &["threads:write"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_needs_its_scope_and_an_unknown_one_needs_a_session() {
        let check = |method: &str, address: &str, expected: ScopeNeed| {
            let (path, query) =
                address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
            assert_eq!(needed(&method.parse().unwrap(), path, query), expected, "{method} {address}");
        };
        let scopes = ScopeNeed::Scopes;
        check("GET", "/api/models", scopes(&[]));
        check("POST", "/api/threads/t/runs/r/stream?action=rollback", scopes(&["runs:read", "runs:cancel"]));
        check("GET", "/api/threads/t/runs/r/stream?cancel_on_disconnect=0", scopes(&["runs:read"]));
        check("POST", "/api/threads/search", scopes(&["threads:read"]));
        check("POST", "/api/threads/t/history", scopes(&["threads:read"]));
        check("GET", "/api/threads/t/artifacts/mnt/runs", scopes(&["threads:read"]));
        check("POST", "/api/threads", scopes(&["threads:write"]));
        check("POST", "/api/threads/t/state", scopes(&["threads:write"]));
        check("DELETE", "/api/threads/t", scopes(&["threads:delete"]));
        check("DELETE", "/api/threads/t/uploads/a", scopes(&["threads:delete"]));
        check("POST", "/api/threads/t/runs/stream", scopes(&["runs:create"]));
        check("POST", "/api/threads/t/runs/r/cancel", scopes(&["runs:cancel"]));
        check("DELETE", "/api/threads/t/runs/r/feedback/f", scopes(&["threads:write"]));
        check("GET", "/api/threads/t/runs/r/stream", scopes(&["runs:read"]));
        check("GET", "/api/threads/t/approvals", scopes(&["runs:read"]));
        check("POST", "/api/threads/t/approvals/a", scopes(&["runs:create"]));
        check("POST", "/api/threads/t/commands", scopes(&["runs:create", "threads:read"]));
        check("POST", "/api/langgraph/threads/t/stream/events", scopes(&["runs:read"]));
        check("POST", "/api/runs/stream", scopes(&["runs:create"]));
        check("POST", "/api/threads/t/copy", scopes(&["threads:write"]));
        check("POST", "/api/threads/t/state/checkpoint", scopes(&["threads:read"]));
        check("POST", "/api/langgraph/threads/search", scopes(&["threads:read"]));
        check("POST", "/api/langgraph/threads/t/runs/r/stream", scopes(&["runs:read"]));
        check("POST", "/api/langgraph/langgraph/threads", ScopeNeed::Person);
        for (method, path) in [
            ("POST", "/api/v1/auth/tokens"),
            ("POST", "/api/v1/auth/change-password"),
            ("PUT", "/api/skills/a"),
            ("GET", "/api/users"),
            ("GET", "/api/memory"),
            ("GET", "/"),
        ] {
            check(method, path, ScopeNeed::Person);
        }
    }
}
