//! Scopes of tokens: what each request needs. They come from the stored token and from nowhere else.
//!
//! Only what is named here may be asked with a token: a new route is closed until somebody says what it needs.

use axum::http::Method;

/// The need of a request, of the token that it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeNeed {
    /// None: it tells nothing about anybody.
    Nothing,
    /// This scope.
    Scope(&'static str),
    /// A person: no token is enough.
    Person,
}

/// Returns what a request needs.
pub(super) fn needed(method: &Method, path: &str) -> ScopeNeed {
    let reads = matches!(*method, Method::GET | Method::HEAD) || path == "/api/assistants/search";
    // LangGraph's clients have a prefix of their own for the same routes.
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
            ScopeNeed::Nothing
        }
        ["api", "runs" | "active-runs", rest @ ..] | ["api", "threads", _, "runs", rest @ ..] => {
            run(method, rest)
        }
        ["api", "threads", rest @ ..] => thread(method, rest),
        ["api", "chat", _, "messages"] => ScopeNeed::Scope("runs:create"),
        // To press a button is to decide for a person, and stays theirs.
        ["api", "chat", _, "events"] if reads => ScopeNeed::Scope("runs:read"),
        ["api", "chat", _, "files", ..] if reads => ScopeNeed::Scope("threads:read"),
        _ => ScopeNeed::Person,
    }
}

fn run(method: &Method, rest: &[&str]) -> ScopeNeed {
    ScopeNeed::Scope(match *method {
        Method::GET | Method::HEAD => "runs:read",
        // A judgement is a note on the thread.
        _ if matches!(rest, [_, "feedback", ..]) => "threads:write",
        Method::DELETE => "runs:cancel",
        _ if rest.last() == Some(&"cancel") => "runs:cancel",
        // To join a run that is there.
        Method::POST if matches!(rest, [_, "stream"]) => "runs:read",
        _ => "runs:create",
    })
}

fn thread(method: &Method, rest: &[&str]) -> ScopeNeed {
    ScopeNeed::Scope(match (method.as_str(), rest) {
        ("GET" | "HEAD", _)
        | ("POST", ["search" | "count"] | [_, "history"] | [_, "state", "checkpoint"]) => "threads:read",
        ("DELETE", _) => "threads:delete",
        _ => "threads:write",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_needs_its_scope_and_an_unknown_one_needs_a_person() {
        let check = |method: &str, path: &str, expected: ScopeNeed| {
            assert_eq!(needed(&method.parse().unwrap(), path), expected, "{method} {path}");
        };
        let scope = ScopeNeed::Scope;
        check("GET", "/api/models", ScopeNeed::Nothing);
        check("POST", "/api/threads/search", scope("threads:read"));
        check("POST", "/api/threads/t/history", scope("threads:read"));
        check("GET", "/api/threads/t/artifacts/mnt/runs", scope("threads:read"));
        check("POST", "/api/threads", scope("threads:write"));
        check("POST", "/api/threads/t/state", scope("threads:write"));
        check("DELETE", "/api/threads/t", scope("threads:delete"));
        check("DELETE", "/api/threads/t/uploads/a", scope("threads:delete"));
        check("POST", "/api/threads/t/runs/stream", scope("runs:create"));
        check("POST", "/api/threads/t/runs/r/cancel", scope("runs:cancel"));
        check("DELETE", "/api/threads/t/runs/r/feedback/f", scope("threads:write"));
        check("GET", "/api/threads/t/runs/r/stream", scope("runs:read"));
        check("GET", "/api/active-runs/r/events", scope("runs:read"));
        check("POST", "/api/runs/stream", scope("runs:create"));
        check("POST", "/api/threads/t/copy", scope("threads:write"));
        check("POST", "/api/threads/t/state/checkpoint", scope("threads:read"));
        check("POST", "/api/langgraph/threads/search", scope("threads:read"));
        check("POST", "/api/langgraph/threads/t/runs/r/stream", scope("runs:read"));
        check("POST", "/api/langgraph/langgraph/threads", ScopeNeed::Person);
        check("POST", "/api/chat/c/messages", scope("runs:create"));
        for (method, path) in [
            ("POST", "/api/v1/auth/tokens"),
            ("POST", "/api/v1/auth/change-password"),
            ("PUT", "/api/skills/a"),
            ("GET", "/api/users"),
            ("GET", "/api/memory"),
            ("POST", "/api/chat/c/events"),
            ("POST", "/api/chat/c/press"),
            ("GET", "/"),
        ] {
            check(method, path, ScopeNeed::Person);
        }
    }
}
