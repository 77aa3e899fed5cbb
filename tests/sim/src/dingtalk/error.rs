//! Refusals of the platform: two hosts, two formats.

use crate::{
    calls::Outcome,
    fault::Fault,
    stage::{self, Reply},
};
use serde_json::{Value, json};

/// Result of a call.
pub(crate) type Answer<T = Value> = Result<T, Refusal>;

/// Code for too many calls per second.
pub(crate) const QPS: &str = "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi";
/// Code for too many calls per month.
pub(crate) const MONTH: &str = "Forbidden.AccessDenied.ApiCountLimitForOrg";

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// An HTTP status, a code and a message: the newer host.
    Api(u16, String, String),
    /// HTTP 200 with a number other than 0: the older host and session webhooks.
    Errcode(i64, String),
    /// The page for a banned address. It has no code.
    Ban,
}

impl Refusal {
    pub(crate) fn api(status: u16, code: &str, text: &str) -> Self {
        Self::Api(status, code.to_owned(), text.to_owned())
    }

    pub(crate) fn errcode(code: i64, text: &str) -> Self {
        Self::Errcode(code, text.to_owned())
    }

    pub(crate) fn missing(name: &str) -> Self {
        Self::Api(400, format!("Missing{name}"), format!("{name} is mandatory for this action."))
    }

    pub(crate) fn invalid(name: &str, text: &str) -> Self {
        Self::Api(400, format!("invalidParameter.{name}"), text.to_owned())
    }

    pub(crate) fn planned(fault: &Fault) -> Self {
        match fault {
            Fault::TooMany(_) => Self::api(403, QPS, "the app calls this API too often"),
            Fault::Refused(status, text) => Self::api(*status, text, text),
            _ => Self::api(503, "ServiceUnavailable", "The request has failed due to a temporary failure."),
        }
    }

    pub(crate) fn reply(self) -> stage::Answer {
        match self {
            Self::Api(status, code, text) => {
                let body = json!({"requestid": "5A0E1B7C-SIM", "code": code, "message": text});
                (Reply::Json(status, body), Outcome::Refused(status, format!("{code}: {text}")))
            }
            Self::Errcode(code, text) => {
                let body = json!({"errcode": code, "errmsg": text});
                (Reply::Json(200, body), Outcome::Refused(200, format!("{code}: {text}")))
            }
            Self::Ban => {
                let body =
                    json!({"status": 1111, "wait": 5, "source": "x5", "punish": "deny", "uuid": "5a0e"});
                (Reply::Json(403, body), Outcome::Refused(403, "the address is banned".to_owned()))
            }
        }
    }
}
