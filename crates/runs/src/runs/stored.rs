//! The stored form of a client's request: the fields that clients see, and the task for resuming the run, under `task`.

use pudu_agent::{RunTask, agents::is_lead};
use pudu_store::RunRow;
use serde_json::{Map, Value, json};

/// Returns the stored form of a request and its task.
pub(super) fn request(mut request: Map<String, Value>, task: &RunTask) -> String {
    request.insert("task".to_owned(), json!(task));
    Value::Object(request).to_string()
}

/// Reads the task of a stored run; `None` if it is missing or unreadable.
pub(super) fn task(row: &RunRow) -> Option<RunTask> {
    let mut request: Map<String, Value> = serde_json::from_str(&row.request).ok()?;
    let Some(Value::Object(mut task)) = request.remove("task") else { return None };
    if !task.contains_key("thread") {
        complete(&mut task, row);
    }
    let task = serde_json::from_value(Value::Object(task)).ok()?;
    Some(RunTask { suspended: row.suspended, ..task })
}

/// Completes a task stored by version 0.1, which kept some fields elsewhere or under other names.
fn complete(task: &mut Map<String, Value>, row: &RunRow) {
    let mut take = |key: &str| task.remove(key).unwrap_or_default();
    let (first, fields, builds) = (take("input"), take("fields"), take("builds"));
    let shows_approvals = take("shows_approvals") == Value::Bool(true);
    let authoring = match builds.as_str() {
        Some(name) if is_lead(name) => json!("lead"),
        Some(name) => json!({ "new": name }),
        None => json!("nothing"),
    };
    let user = &row.user;
    let asker = json!({ "account": "api", "person": user, "name": user, "cannot_approve": !shows_approvals });
    let added = json!({
        "thread": row.thread, "run": row.id, "user": user, "secrets_of": user, "asker": asker,
        "first": first.get(0).map(|human| human["id"].clone()), "input": first, "client_fields": fields,
        "authoring": authoring, "finds_own_agents": true, "compact": false,
    });
    task.extend(added.as_object().cloned().unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_agent::{Asker, Authoring, RunSecrets};
    use pudu_base::{Human, MessageId, Thinking, UserId};
    use pudu_store::RunOrigin;
    use std::sync::Arc;

    fn row(request: String) -> RunRow {
        RunRow {
            id: "r".into(),
            thread: "t".into(),
            origin: RunOrigin::Api,
            user: "ada".to_owned(),
            assistant: String::new(),
            model: String::new(),
            request,
            metadata: String::new(),
            multitask: String::new(),
            created: 1,
            begun: None,
            ended: None,
            outcome: None,
            cancelled: None,
            suspended: true,
            resumed: 0,
            goal_dropped: false,
            stop_reason: String::new(),
            first_words: String::new(),
            last_words: String::new(),
            messages: 0,
        }
    }

    fn task_of(authoring: Authoring) -> RunTask {
        let user = UserId::from_raw("ada").unwrap();
        let asker = Asker {
            account: "api".to_owned(),
            person: "ada".to_owned(),
            name: "ada".to_owned(),
            cannot_approve: false,
        };
        RunTask {
            input: vec![Human::new("h", "hello")],
            first: Some("h".into()),
            client_fields: vec![(MessageId::from("h"), Arc::new(json!({ "n": 1 })))],
            thinking: Some(Thinking::High),
            authoring,
            asker: Some(asker),
            finds_own_agents: true,
            secrets_of: user.clone(),
            user,
            from: Some(3),
            at: Some("noon".to_owned()),
            ..RunTask::new("t".into(), "r".into())
        }
    }

    #[test]
    fn a_stored_task_is_read_back_without_its_secrets() {
        let task_before = task_of(Authoring::New("owl".to_owned()));
        let secrets = json!({ "secrets": { "KEY": "open-sesame-42" } });
        let own_secrets = RunSecrets::read(secrets.as_object().unwrap()).unwrap();
        let stored = request(Map::new(), &RunTask { own_secrets, ..task_before.clone() });
        assert!(!stored.contains("open-sesame-42"), "{stored}");
        assert_eq!(task(&row(stored)), Some(RunTask { suspended: true, ..task_before }));
    }

    #[test]
    fn task_stored_by_version_0_1_is_read() {
        let human = json!(Human::new("h", "hello"));
        for (builds, authoring) in [
            (Value::Null, Authoring::Nothing),
            (json!("lead_agent"), Authoring::Lead),
            (json!("owl"), Authoring::New("owl".to_owned())),
        ] {
            let old = json!({ "kwargs": {}, "task": {
                "input": [human], "fields": [["h", { "n": 1 }]], "model": null, "thinking": "high", "agent": null,
                "builds": builds, "from": 3, "goal": null, "steps": null, "at": "noon", "shows_approvals": true,
                "features": {}, "again": null,
            } });
            let expect = RunTask { suspended: true, ..task_of(authoring) };
            assert_eq!(task(&row(old.to_string())), Some(expect));
        }
    }

    #[test]
    fn a_request_without_a_readable_task_is_none() {
        for text in ["", "{", "[]", "{}", r#"{"task":null}"#, r#"{"task":[]}"#, r#"{"task":{"thread":7}}"#] {
            assert_eq!(task(&row(text.to_owned())), None, "{text}");
        }
    }
}
