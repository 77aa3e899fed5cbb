//! Facts from DingTalk's documentation: failures, limits, permissions, and how an operator gets credentials.
//!
//! Two traps: HTTP 403 usually means "too fast" and only sometimes "not allowed", and HTTP 200 is a failure if its
//! `errcode` is not 0.

use crate::{
    doctor::DoctorFacts,
    reply::Capabilities,
    split::{Limit, Unit},
    transport::{
        CallError::{self, Auth, Refused, Special, StaleToken, Unknown},
        ErrorCase, FailureTable,
        Meaning::{Act, Pause, Wait},
        PlatformCase, RawResponse,
    },
};
use serde_json::Value;
use std::time::Duration;

/// Wait after too many calls in a second, as documented.
const TOO_FAST: Duration = Duration::from_secs(1);
/// Wait after a ban: DingTalk bans an IP address for five minutes if it makes far too many calls.
const BANNED: Duration = Duration::from_secs(5 * 60);
/// Delay after a session URL received too many messages. DingTalk asks for about ten minutes; pudu tries earlier.
const FLOODED: Duration = Duration::from_secs(60);

/// Why a call failed.
pub(super) type DingTalkError = CallError<DingTalkCase>;

/// Failures: <https://open.dingtalk.com/document/orgapp/server-api-error-codes-1>. An entry matches if all of its words
/// occur in the HTTP status followed by the code.
const FAILURES: FailureTable<&str, DingTalkCase> = FailureTable {
    codes: &[
        (&["QpsLimit", "Throttling"], Wait(TOO_FAST)),
        (&["invalidClientIdOrSecret", "authFailed"], Act(Auth)),
        (&["500 unknownError"], Act(|what| Special(DingTalkCase::Strange(what)))),
        (&["503 ServiceUnavailable"], Wait(Duration::from_secs(2))),
    ],
    statuses: &[
        (429..=429, Wait(TOO_FAST)),
        (401..=401, Act(StaleToken)),
        (403..=403, Act(|what| Special(DingTalkCase::Forbidden(what)))),
        (400..=499, Act(Refused)),
    ],
    otherwise: Act(Unknown),
    // From DingTalk's own gateway, or from an intermediary.
    unreadable: &[(403..=403, Pause(BANNED)), (429..=429, Wait(TOO_FAST))],
};

/// Failures of the older host, which arrive as HTTP 200:
/// <https://open.dingtalk.com/document/orgapp/server-api-error-codes-1>.
const NUMBERED: FailureTable<i64, DingTalkCase> = FailureTable {
    codes: &[
        (&[90_002, 90_018], Pause(TOO_FAST)),
        (&[130_101], Pause(FLOODED)),
        (&[40_001, 40_014, 42_001], Act(StaleToken)),
        (&[90_020], Act(|what| Special(DingTalkCase::Forbidden(what)))),
        (&[-1], Act(Unknown)),
    ],
    statuses: &[],
    otherwise: Act(Refused),
    unreadable: &[],
};

/// Capabilities of a reply in ordinary messages, which are sent when the reply is complete. Files:
/// <https://open.dingtalk.com/document/orgapp/upload-media-files>.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    platform: "DingTalk",
    // Cards with more than about 3,000 characters have been seen to stay blank.
    text: Limit { unit: Unit::Chars, max: 2800, columns: 40 },
    max_upload_bytes: 20_000_000,
    max_download_bytes: 50_000_000,
    edits: false,
    deletes: true,
    buttons: false,
    form_fields: 0,
    idempotent_send: false,
};

pub(super) const DOCTOR: DoctorFacts = DoctorFacts {
    credentials: "credentials",
    credentials_help: "copy Client ID and Client Secret from the app's page \"Credentials and basic information\"",
    url_key: "api_url",
    clock: "reply URLs are used after they expire, or not used while they are valid",
    grant_help: "apply for {} on the app's page \"Permissions\", then publish the app's version",
};

/// Permissions to send messages, and to create and write cards.
pub(super) const SEND_PERMISSION: &str = "qyapi_robot_sendmsg (企业内机器人发送消息权限)";
pub(super) const CARD_PERMISSIONS: &str = "Card.Streaming.Write and Card.Instance.Write";

/// Failures specific to DingTalk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DingTalkCase {
    /// This user currently receives too many messages. Nothing was done.
    #[error("DingTalk rate-limits messages to this user for {0:?}")]
    Flooded(Duration),
    /// The app lacks the permission, or the monthly call quota is used up. Nothing was done.
    #[error("{0}")]
    Forbidden(String),
    /// `unknownError`. From a card's stream it usually means that the template lacks the variable.
    #[error("{0}")]
    Strange(String),
}

impl ErrorCase for DingTalkCase {
    fn general(self) -> CallError {
        let what = self.to_string();
        match self {
            Self::Flooded(wait) => CallError::Wait(wait),
            Self::Forbidden(_) => Refused(what),
            Self::Strange(_) => Unknown(what),
        }
    }

    fn is_outage(&self) -> bool {
        matches!(self, Self::Strange(_))
    }
}

impl PlatformCase for DingTalkCase {}

/// Returns whether DingTalk rejects a card. Ordinary messages may still be accepted.
pub(super) fn rules_out_cards(error: &DingTalkError) -> bool {
    let special = |case: &DingTalkCase| matches!(case, DingTalkCase::Forbidden(_) | DingTalkCase::Strange(_));
    matches!(error, Refused(_)) || matches!(error, Special(case) if special(case))
}

/// Reads a response: its content, or the failure.
pub(super) fn read(response: &RawResponse) -> Result<Value, DingTalkError> {
    read_parts(response.status, response.wait(), &response.body)
}

fn read_parts(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Result<Value, DingTalkError> {
    let content: Option<Value> = crate::lenient::from_bytes(body).ok();
    let Some(content) = content.filter(Value::is_object) else {
        return Err(FAILURES.unreadable(status, slowly(retry_after)));
    };
    if content["punish"] == "deny" {
        return Err(CallError::Wait(BANNED));
    }
    match (status, number(&content)) {
        (200..300, None | Some(0)) => Ok(content),
        (200..300, Some(number)) => {
            let what = format!("{} ({number})", text(&content, "errmsg"));
            Err(NUMBERED.error(|known| *known == number, status, what, None))
        }
        _ => {
            let coded = format!("{status} {}", text(&content, "code"));
            let what = format!("{} ({}, HTTP {status})", text(&content, "message"), text(&content, "code"));
            Err(FAILURES.error(|words| has(&coded, words), status, what, slowly(retry_after)))
        }
    }
}

/// Reads the older host's error number, sent as a number or as text.
fn number(content: &Value) -> Option<i64> {
    let number = &content["errcode"];
    number.as_i64().or_else(|| number.as_str()?.parse().ok())
}

fn text(content: &Value, name: &str) -> String {
    let text = content[name].as_str().unwrap_or_default();
    text.chars().take(300).collect()
}

/// Raises a wait to at least a second: DingTalk counts calls per second, so a shorter wait would be useless.
fn slowly(retry_after: Option<Duration>) -> Option<Duration> {
    retry_after.map(|wait| wait.max(TOO_FAST))
}

/// Returns whether a status with its code contains all of these words.
fn has(coded: &str, words: &str) -> bool {
    words.split(' ').all(|word| coded.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor::tests::check_facts, transport::check_table};
    use serde_json::json;

    fn seconds(seconds: u64) -> DingTalkError {
        CallError::Wait(Duration::from_secs(seconds))
    }

    #[test]
    fn each_row_of_the_tables_is_reached() {
        check_table(&FAILURES, |words, coded| has(coded, words));
        check_table(&NUMBERED, |code, other| code == other);
        check_facts(&DOCTOR, &[]);
    }

    #[test]
    fn each_response_maps_to_its_error() {
        let api = |status: u16, code: &str| {
            let body = json!({"requestid": "r", "code": code, "message": "m"}).to_string();
            let what = format!("m ({code}, HTTP {status})");
            (read_parts(status, None, body.as_bytes()), what)
        };
        let check = |status, code: &str, meaning: fn(String) -> DingTalkError| {
            let (found, what) = api(status, code);
            assert_eq!(found, Err(meaning(what)), "{status} {code}");
        };
        check(401, "InvalidAuthentication", StaleToken);
        check(400, "invalidClientIdOrSecret", Auth);
        check(401, "authFailed", Auth);
        check(403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.QpsLimitForApi", |_| seconds(1));
        check(403, "Forbidden.AccessDenied.ApiCountLimitForOrg", |what| {
            Special(DingTalkCase::Forbidden(what))
        });
        check(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied", |what| {
            Special(DingTalkCase::Forbidden(what))
        });
        check(400, "invalidParameter.msgParam", Refused);
        check(404, "InvalidAction.NotFound", Refused);
        check(500, "unknownError", |what| Special(DingTalkCase::Strange(what)));
        check(500, "InternalError", Unknown);
        check(503, "ServiceUnavailable", |_| seconds(2));
        check(429, "x", |_| seconds(1));
    }

    #[test]
    fn http_200_is_a_failure_if_errcode_is_not_0() {
        let old = |number: Value| {
            read_parts(200, None, json!({"errcode": number, "errmsg": "m"}).to_string().as_bytes())
        };
        let check =
            |number: i64, meaning: DingTalkError| assert_eq!(old(number.into()), Err(meaning), "{number}");
        assert!(old(0.into()).is_ok() && old("0".into()).is_ok());
        check(90_018, seconds(1));
        check(90_002, seconds(1));
        check(130_101, seconds(60));
        check(40_014, StaleToken("m (40014)".into()));
        check(90_020, Special(DingTalkCase::Forbidden("m (90020)".into())));
        check(300_001, Refused("m (300001)".into()));
        check(-1, Unknown("m (-1)".into()));
        assert_eq!(old("90018".into()), Err(seconds(1)));
    }

    #[test]
    fn a_response_without_a_code_maps_to_an_error() {
        let ban = json!({"status": 1111, "wait": 5, "punish": "deny"}).to_string();
        let check = |status, body: &str, meaning: DingTalkError| {
            assert_eq!(read_parts(status, None, body.as_bytes()), Err(meaning), "{status} {body}");
        };
        check(200, &ban, seconds(300));
        check(403, &ban, seconds(300));
        check(403, "<html>403</html>", seconds(300));
        check(502, "<html>502</html>", Unknown("an unreadable response (HTTP 502)".into()));
        check(200, "{\"ok\":tru", Unknown("an unreadable response (HTTP 200)".into()));
        check(200, "[]", Unknown("an unreadable response (HTTP 200)".into()));
        check(413, "", Refused("the request is too large".into()));
        assert_eq!(read_parts(429, Some(Duration::from_secs(7)), b""), Err(seconds(7)));
    }
}
