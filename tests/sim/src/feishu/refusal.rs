//! Errors of the platform: a code and a message, with HTTP statuses that do not always match.

use crate::{
    calls::Outcome,
    fault::Fault,
    stage::{self, Reply},
};
use serde_json::{Map, Value, json};

/// Reason why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) code: i64,
    pub(crate) msg: String,
    /// Seconds until the gateway's rate limit is reset.
    pub(crate) reset: Option<u64>,
}

impl Refusal {
    /// An error with status 400, like most.
    pub(crate) fn new(code: i64, msg: impl Into<String>) -> Self {
        Self { status: 400, code, msg: msg.into(), reset: None }
    }

    /// An error with status 200.
    pub(crate) fn fine(code: i64, msg: impl Into<String>) -> Self {
        Self { status: 200, ..Self::new(code, msg) }
    }

    pub(crate) fn field(what: &str) -> Self {
        Self::new(99_992_402, format!("field validation failed: {what}"))
    }

    pub(crate) fn params(what: &str) -> Self {
        Self::new(230_001, format!("Your request contains an invalid request parameter, ext={what}"))
    }

    pub(crate) fn card(inner: i64, what: &str) -> Self {
        let ext = format!("ErrCode: {inner}; ErrMsg: {what}");
        Self::new(230_099, format!("Failed to create card content, ext={ext}"))
    }

    /// The gateway's rate limit: 400, not 429.
    pub(crate) fn gateway(seconds: u64) -> Self {
        Self { reset: Some(seconds), ..Self::new(99_991_400, "request trigger frequency limit") }
    }

    pub(crate) fn answer(self) -> stage::Answer {
        let body = json!({"code": self.code, "msg": self.msg, "error": {"log_id": "20261120-sim"}});
        let outcome = Outcome::Refused(self.status, format!("{} {}", self.code, self.msg));
        let mut headers = vec![("x-tt-logid", "20261120-sim".to_owned())];
        headers.extend(self.reset.map(|seconds| ("x-ogw-ratelimit-reset", seconds.to_string())));
        (Reply::Headed(self.status, headers, body), outcome)
    }

    /// Returns a planned error. A number at the beginning of the text is the platform's code.
    pub(crate) fn planned(fault: &Fault) -> Self {
        match fault {
            Fault::TooMany(seconds) => Self::gateway(*seconds),
            Fault::Refused(status, text) => {
                let (code, msg) = text.split_once(' ').unwrap_or((text, ""));
                let (code, msg) = code.parse().map_or((230_013, text.as_str()), |code: i64| (code, msg));
                Self { status: *status, ..Self::new(code, msg) }
            }
            _ => Self { status: 500, ..Self::new(2200, "Internal Error") },
        }
    }
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Done {
    /// Under `data`.
    Data(Value),
    /// At the top of the response.
    Top(Map<String, Value>),
    /// A file.
    Bytes(bytes::Bytes),
}

/// Result of a call, or the reason for its refusal.
pub(crate) type Answer<T = Done> = Result<T, Refusal>;

/// Formats the result of a call.
pub(crate) fn answer(result: Answer) -> stage::Answer {
    match result {
        Ok(Done::Data(data)) => {
            let body = json!({"code": 0, "msg": "success", "data": data});
            (Reply::Json(200, body), Outcome::Answered(data))
        }
        Ok(Done::Top(mut fields)) => {
            let told = Value::Object(fields.clone());
            fields.insert("code".to_owned(), 0.into());
            fields.insert("msg".to_owned(), "ok".into());
            (Reply::Json(200, Value::Object(fields)), Outcome::Answered(told))
        }
        Ok(Done::Bytes(bytes)) => {
            let told = json!({"bytes": bytes.len()});
            (Reply::Bytes(bytes), Outcome::Answered(told))
        }
        Err(refusal) => refusal.answer(),
    }
}
