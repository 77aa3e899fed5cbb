//! Error responses of the API: a status, Discord's code, and the invalid field of a form.

use serde_json::{Value, json};

/// A refusal, by its documented code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: u32, message: &str) -> Self {
        Self { status, body: json!({"message": message, "code": code}), headers: Vec::new() }
    }

    /// 50035, with the invalid field.
    pub(crate) fn form(field: &str, code: &str, why: &str) -> Self {
        let mut errors = json!({"_errors": [{"code": code, "message": why}]});
        for part in field.rsplit('.') {
            errors = json!({ part: errors });
        }
        let body = json!({"message": "Invalid Form Body", "code": 50035, "errors": errors});
        Self { status: 400, body, headers: Vec::new() }
    }

    pub(crate) fn too_many(seconds: f64, global: bool) -> Self {
        let body =
            json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global});
        let mut headers = vec![("retry-after", format!("{:.0}", seconds.ceil()))];
        headers.push(("x-ratelimit-scope", if global { "global" } else { "user" }.to_owned()));
        if global {
            headers.push(("x-ratelimit-global", "true".to_owned()));
        }
        Self { status: 429, body, headers }
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, 0, "401: Unauthorized")
    }

    pub(crate) fn says(&self) -> String {
        self.body["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// The result of a method.
pub(crate) type Answer<T = (u16, Value)> = Result<T, Refusal>;
